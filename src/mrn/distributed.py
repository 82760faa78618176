"""Data-parallel training: the ranks of one run, started by torchrun.

Each rank has its own environments and its share of the replay buffer. Together they compute what a
single process would. A single process is one rank, without any communication.
"""

import atexit
import itertools
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mrn.utils.errors import Interrupted, RunError, UserError

COLLECTIVE_TIMEOUT = timedelta(minutes=10)
"""Timeout of a collective operation. The exit of a rank is detected immediately."""
EXIT_TIMEOUT = timedelta(seconds=10)
"""How long an exiting rank waits for another rank to report the error."""
_JOIN_COUNT = itertools.count()  # a process may train several runs in succession


class Ranks:
    """All ranks of a run, as seen by one of them. All ranks call the same methods in order."""

    def __init__(self, rank: int = 0, size: int = 1, store: Any = None) -> None:
        """Describe this rank.

        Args:
            rank: Index of this rank.
            size: Number of ranks.
            store: Key-value store shared by all ranks.
        """
        self.rank, self.size, self._store = rank, size, store

    @property
    def is_main(self) -> bool:
        """Whether this rank writes the run's files and prints the progress."""
        return self.rank == 0

    def divide(self, **totals: int) -> list[int]:
        """Return one rank's share of settings that apply to the whole run.

        Raises:
            UserError: A setting is not divisible by the number of ranks; suggests the nearest
                value.
        """
        nearest = {
            name: max(round(total / self.size), 1) * self.size
            for name, total in totals.items()
            if total % self.size
        }
        if nearest:
            given = " and ".join(f"{name} {total}" for name, total in totals.items())
            remedy = " and ".join(f"{name} {value}" for name, value in nearest.items())
            raise UserError(
                f"{self.size} processes cannot divide {given} equally; use {remedy}, or another "
                "number of processes"
            )
        return [total // self.size for total in totals.values()]

    def all_gather(self, value: Tensor) -> list[Tensor]:
        """Return the tensors of all ranks, which must have the same shape."""
        if self.size == 1:
            return [value]
        values = [torch.empty_like(value) for _ in range(self.size)]
        with self._detect_failure():
            dist.all_gather(values, value)
        return values

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """Return the sum over all ranks, bit-identical on each."""
        if self.size == 1:
            return value
        value = value.clone()
        with self._detect_failure():
            dist.all_reduce(value)
        return value

    def all_reduce_mean(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return the means of tensors over all ranks, in a single all-reduce."""
        if self.size == 1:
            return tensors
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with self._detect_failure():
            dist.all_reduce(flat)
        parts = flat.div_(self.size).split([tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def all_reduce_max(self, number: int) -> int:
        """Return the maximum over all ranks."""
        return max(int(value) for value in self.all_gather(torch.tensor(int(number))))

    def all_gather_text(self, text: str) -> list[str]:
        """Return the strings of all ranks, which must not contain null characters."""
        content = text.encode()
        padded = content.ljust(self.all_reduce_max(len(content)), b"\0")
        values = self.all_gather(torch.tensor(list(padded), dtype=torch.uint8))
        return [bytes(value.tolist()).rstrip(b"\0").decode() for value in values]

    def barrier(self) -> None:
        """Wait until all ranks get here."""
        self.all_reduce_max(0)

    def _claim_report(self) -> bool:
        """Return whether this rank is the first to fail, and therefore reports the error."""
        with suppress(RuntimeError):  # the store may be gone as well
            return self._store.add("failures", 1) == 1
        return True

    def _leave(self, reports: bool) -> None:
        """Exit after the rank that reports the error: torchrun kills all when the first exits."""
        store, self._store, self.size = self._store, None, 1
        with suppress(RuntimeError):
            if reports:
                atexit.register(_suppress_errors(store.set), "reported", "")
            else:
                store.wait(["reported"], EXIT_TIMEOUT)

    @contextmanager
    def _detect_failure(self) -> Iterator[None]:
        """Raise a readable error if another rank exits or times out."""
        try:
            yield
        except RuntimeError as error:
            minutes = COLLECTIVE_TIMEOUT.seconds // 60
            raise RunError(
                f"one of the run's {self.size} processes exited, or timed out after {minutes} "
                f"minutes (detected by rank {self.rank}: {_first_line(error)}); the last "
                "checkpoint is valid"
            ) from error


SINGLE_PROCESS = Ranks()
"""The only rank of a run without torchrun."""


@contextmanager
def join_ranks() -> Iterator[Ranks]:
    """Join the ranks that torchrun started; without torchrun, yield a single rank.

    An error on one rank ends all of them, and only the first to fail reports it.

    Raises:
        UserError: The ranks cannot connect, or torch.distributed is already initialized.
    """
    if world_size() == 1:
        yield SINGLE_PROCESS
        return
    if dist.is_initialized():
        raise UserError(
            "torch.distributed is already initialized; training initializes it and shuts it down"
        )
    ranks = _connect()
    try:
        yield ranks
    except UserError as error:
        error.already_reported = not ranks._claim_report()
        ranks._leave(reports=not error.already_reported)
        raise
    except Interrupted as interrupted:
        ranks._leave(reports=not interrupted.already_reported)
        raise
    finally:
        dist.destroy_process_group()
        ranks.size = 1  # optimizers still refer to it, and must not communicate any more


def _connect() -> Ranks:
    """Connect to the other ranks.

    Raises:
        UserError: The connection failed.
    """
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    gpus = torch.cuda.is_available() and dist.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    # The store outlives a run and a restart by torchrun, so its keys need a unique prefix.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    try:
        store, rank, size = next(rendezvous("env://", timeout=COLLECTIVE_TIMEOUT))
        store = PrefixStore(f"mrn-{attempt}-{next(_JOIN_COUNT)}", store)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT
        )
        # A rank that exits early, after a wrong setting, must not leave others unconnected.
        dist.all_reduce(torch.zeros(1))
    except RuntimeError as error:
        raise UserError(
            f"the {world_size()} processes of the run cannot connect: {_first_line(error)}"
        ) from error
    return Ranks(rank, size, store)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _suppress_errors(function: Callable[..., Any]) -> Callable[..., None]:
    def wrapped(*arguments: Any) -> None:
        with suppress(RuntimeError):
            function(*arguments)

    return wrapped


def world_size() -> int:
    """Return the number of ranks that torchrun started on all machines, or 1 without it."""
    started = dist.is_available() and dist.is_torchelastic_launched()
    return int(os.environ["WORLD_SIZE"]) if started else 1


def is_main() -> bool:
    """Return whether this process is rank 0, before the ranks join."""
    return world_size() == 1 or os.environ["RANK"] == "0"


def local_world_size() -> int:
    """Return the number of ranks on this machine."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if world_size() > 1 else 1


def local_rank() -> int:
    """Return the index of this rank on this machine."""
    return int(os.environ["LOCAL_RANK"]) if world_size() > 1 else 0


def launch_command(count: int) -> str:
    """Return the shell command that starts `mrn` with a number of processes."""
    local = local_world_size() if count == world_size() else count
    machines = f"--nnodes {count // local} " if count > local else ""
    return f"torchrun {machines}--nproc-per-node {local} -m mrn" if count > 1 else "mrn"


def command_here(count: int = 1) -> str:
    """Return `launch_command`, with the path of `mrn` if the shell would not find this one."""
    started, found = Path(sys.argv[0]), shutil.which("mrn")
    on_path = found is not None and started.exists() and started.samefile(found)
    if count == 1 and started.name == "mrn" and not on_path:
        return shlex.quote(str(started))
    if count == 1 and started.name == "__main__.py" and found is None:
        return f"{shlex.quote(sys.executable)} -m mrn"
    return launch_command(count)
