"""Teams of processes: forks that find in their environment what torchrun puts there."""

import atexit
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore

from tests.commands import FORKS, Command

STORES: list[TCPStore] = []
"""Where teams meet; they outlive each process, as torchrun's do."""


def new_store() -> int:
    """The port of a place to meet."""
    STORES.append(TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
    return STORES[-1].port


def become(rank: int, size: int, port: int) -> None:
    """Set what torchrun sets."""
    os.environ |= {
        "TORCHELASTIC_RUN_ID": "test",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
    }


def start_team(size: int, *arguments: object) -> list[Command]:
    """An `mrn` command in each of so many processes."""
    port = new_store()
    return [Command(*arguments, prepare=partial(become, rank, size, port)) for rank in range(size)]


def finish(ranks: list[Command], timeout: float = 120) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each process, once all have ended."""
    shown = [process.communicate(timeout) for process in ranks]
    return [(process.returncode, *said) for process, said in zip(ranks, shown, strict=True)]


def in_team(size: int, folder: Path, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What a function, of a module, returns in each of so many processes."""
    port = new_store()
    files = [folder / f"result-{rank}" for rank in range(size)]
    members = [
        FORKS.Process(target=_member, args=(function, arguments, rank, size, port, file))
        for rank, file in enumerate(files)
    ]
    for member in members:
        member.start()
    for member in members:
        member.join(120)
        member.kill()  # if it hangs
        member.join()
    assert [member.exitcode for member in members] == [0] * size
    # Written just now, into the test's own folder, by the forks above: nothing else is unpickled.
    return [pickle.loads(file.read_bytes()) for file in files]


def _member(
    function: Callable[..., Any], arguments: tuple, rank: int, size: int, port: int, file: Path
) -> None:
    become(rank, size, port)
    file.write_bytes(pickle.dumps(function(*arguments)))
    atexit._run_exitfuncs()  # which a fork of multiprocessing does not come to
