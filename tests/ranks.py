"""Ranks for tests: forked processes with the environment variables that torchrun sets."""

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
"""Rendezvous stores, which outlive the ranks like those of torchrun."""


def new_store() -> int:
    """Start a rendezvous store and return its port."""
    STORES.append(TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
    return STORES[-1].port


def set_torchrun_env(rank: int, size: int, port: int) -> None:
    """Set the environment variables that torchrun sets."""
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


def start_ranks(size: int, *arguments: object) -> list[Command]:
    """Start an `mrn` command in each of `size` ranks."""
    port = new_store()
    return [
        Command(*arguments, prepare=partial(set_torchrun_env, rank, size, port))
        for rank in range(size)
    ]


def wait_for_ranks(ranks: list[Command], timeout: float = 120) -> list[tuple[int, str, str]]:
    """Wait for all ranks; return exit code, stdout and stderr of each."""
    outputs = [process.communicate(timeout) for process in ranks]
    return [(process.returncode, *output) for process, output in zip(ranks, outputs, strict=True)]


def run_in_ranks(
    size: int, folder: Path, function: Callable[..., Any], *arguments: Any
) -> list[Any]:
    """Call a module-level function in each of `size` ranks; return the results by rank."""
    port = new_store()
    files = [folder / f"result-{rank}" for rank in range(size)]
    processes = [
        FORKS.Process(target=_run_rank, args=(function, arguments, rank, size, port, file))
        for rank, file in enumerate(files)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        process.kill()  # if it hangs
        process.join()
    assert [process.exitcode for process in processes] == [0] * size
    # Unpickling is safe: the forks above wrote these files to the test's own folder.
    return [pickle.loads(file.read_bytes()) for file in files]


def _run_rank(
    function: Callable[..., Any], arguments: tuple, rank: int, size: int, port: int, file: Path
) -> None:
    set_torchrun_env(rank, size, port)
    file.write_bytes(pickle.dumps(function(*arguments)))
    atexit._run_exitfuncs()  # multiprocessing skips them in a fork
