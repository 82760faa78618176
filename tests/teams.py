"""Teams of processes: forks that find in their environment what torchrun puts there."""

import os
import pickle
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.commands import FORKS, Command


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def become(rank: int, size: int, port: int) -> None:
    """Set what torchrun sets."""
    os.environ |= {
        "TORCHELASTIC_RUN_ID": "test",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
    }


def start_team(size: int, *arguments: object) -> list[Command]:
    """An `mrn` command in each of so many processes."""
    port = free_port()
    return [Command(*arguments, prepare=partial(become, rank, size, port)) for rank in range(size)]


def finish(team: list[Command], timeout: float = 120) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each process, once all have ended."""
    shown = [process.communicate(timeout) for process in team]
    return [(process.returncode, *said) for process, said in zip(team, shown, strict=True)]


def in_team(size: int, folder: Path, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What a function, of a module, returns in each of so many processes."""
    port = free_port()
    files = [folder / f"result-{rank}" for rank in range(size)]
    members = [
        FORKS.Process(target=_member, args=(function, arguments, rank, size, port, file))
        for rank, file in enumerate(files)
    ]
    for member in members:
        member.start()
    for member in members:
        member.join(120)
    assert [member.exitcode for member in members] == [0] * size
    return [pickle.loads(file.read_bytes()) for file in files]


def _member(
    function: Callable[..., Any], arguments: tuple, rank: int, size: int, port: int, file: Path
) -> None:
    become(rank, size, port)
    file.write_bytes(pickle.dumps(function(*arguments)))
