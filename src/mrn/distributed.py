"""The processes of one run, which torchrun has started: what they share, and what they say.

Each has its environments and its part of the replay; together they compute what one process would.
A run of a single process is a single rank, for which nothing here costs anything.
"""

import atexit
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mrn.utils.errors import Interrupted, RunError, UserError

COLLECTIVE_TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others; one that has ended is noticed at once."""
EXIT_TIMEOUT = timedelta(seconds=10)
"""How long a process that ends waits for another one's last words."""
_JOINED = itertools.count()  # teams of this process, one after the other


class Ranks:
    """All processes of a run, seen by one of them. Each method is called by all, in one order."""

    def __init__(self, rank: int = 0, size: int = 1, store: Any = None) -> None:
        """Say which of how many this process is, and where they leave messages."""
        self.rank, self.size, self._store = rank, size, store

    @property
    def is_main(self) -> bool:
        """Whether this process writes the run's files and shows how it goes."""
        return self.rank == 0

    def divide(self, **totals: int) -> list[int]:
        """How much of each setting, which is for the whole run, one process takes.

        Raises:
            UserError: They cannot be divided equally; says the nearest that can.
        """
        nearest = {
            name.replace("_", "-"): max(round(total / self.size), 1) * self.size
            for name, total in totals.items()
            if total % self.size
        }
        if nearest:
            given = " and ".join(f"--{name.replace('_', '-')} {n}" for name, n in totals.items())
            remedy = " ".join(f"--{name} {number}" for name, number in nearest.items())
            raise UserError(
                f"{self.size} processes cannot divide {given} equally: give {remedy}, or start "
                "another number of processes"
            )
        return [total // self.size for total in totals.values()]

    def all_gather(self, value: Tensor) -> list[Tensor]:
        """The tensors of all processes, which have the same shape, by rank."""
        if self.size == 1:
            return [value]
        values = [torch.empty_like(value) for _ in range(self.size)]
        with self._noticing():
            dist.all_gather(values, value)
        return values

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """The sum over all processes, the same bits in each."""
        if self.size == 1:
            return value
        value = value.clone()
        with self._noticing():
            dist.all_reduce(value)
        return value

    def all_reduce_mean(self, tensors: list[Tensor]) -> list[Tensor]:
        """The means over all processes of tensors, exchanged as one."""
        if self.size == 1:
            return tensors
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with self._noticing():
            dist.all_reduce(flat)
        parts = flat.div_(self.size).split([tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def all_reduce_max(self, number: int) -> int:
        """The largest of the processes' numbers."""
        return max(int(value) for value in self.all_gather(torch.tensor(int(number))))

    def all_gather_text(self, text: str) -> list[str]:
        """The texts of all processes, by rank; they hold no null character."""
        content = text.encode()
        padded = content.ljust(self.all_reduce_max(len(content)), b"\0")
        values = self.all_gather(torch.tensor(list(padded), dtype=torch.uint8))
        return [bytes(value.tolist()).rstrip(b"\0").decode() for value in values]

    def barrier(self) -> None:
        """Go on when all processes have come here."""
        self.all_reduce_max(0)

    def _speaks(self) -> bool:
        """Whether this process is the first to end, and says why."""
        with suppress(RuntimeError):  # the store may have ended, too
            return self._store.add("ends", 1) == 1
        return True

    def _leave(self, speaks: bool) -> None:
        """End after the one that says why: torchrun ends all as soon as one has ended."""
        store, self._store, self.size = self._store, None, 1
        with suppress(RuntimeError):
            if speaks:
                atexit.register(_quietly(store.set), "said", "")
            else:
                store.wait(["said"], EXIT_TIMEOUT)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """A process that is gone, or silent, becomes an error of those that wait for it."""
        try:
            yield
        except RuntimeError as error:
            raise RunError(
                f"one of the run's {self.size} processes has ended without a word, or did not "
                f"answer for {COLLECTIVE_TIMEOUT.seconds // 60} minutes (process {self.rank} waited for it: "
                f"{_first_line(error)}); the last checkpoint is whole"
            ) from error


SINGLE_PROCESS = Ranks()
"""A run of one process."""


@contextmanager
def join_ranks() -> Iterator[Ranks]:
    """Join the ranks that torchrun started; without torchrun, return a single rank.

    What ends one process ends the others, which wait for it: only the first one says why.
    """
    if world_size() == 1:
        yield SINGLE_PROCESS
        return
    if dist.is_initialized():
        raise UserError(
            "torch.distributed is initialised already: leave that, and its end, to the training"
        )
    ranks = _meet()
    try:
        yield ranks
    except UserError as error:
        error.already_reported = not ranks._speaks()
        ranks._leave(speaks=not error.already_reported)
        raise
    except Interrupted as interrupted:
        ranks._leave(speaks=not interrupted.already_reported)
        raise
    finally:
        dist.destroy_process_group()
        ranks.size = 1  # what is left of it, an optimiser's, is of one process


def _meet() -> Ranks:
    """Find the other processes.

    Raises:
        UserError: They cannot be found.
    """
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    gpus = torch.cuda.is_available() and dist.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    # The store outlives a ranks, and a restart by torchrun: what earlier ones left is not ours.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    try:
        store, rank, size = next(rendezvous("env://", timeout=COLLECTIVE_TIMEOUT))
        store = PrefixStore(f"mrn-{attempt}-{next(_JOINED)}", store)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT
        )
        # One that ends at once, by a wrong setting, would leave slower ones without a connection.
        dist.all_reduce(torch.zeros(1))
    except RuntimeError as error:
        raise UserError(
            f"the {world_size()} processes of the run cannot reach each other: {_first_line(error)}"
        ) from error
    return Ranks(rank, size, store)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _quietly(call: Callable[..., Any]) -> Callable[..., None]:
    def quiet(*arguments: Any) -> None:
        with suppress(RuntimeError):
            call(*arguments)

    return quiet


def world_size() -> int:
    """How many torchrun has started, on all machines; 1 without it."""
    started = dist.is_available() and dist.is_torchelastic_launched()
    return int(os.environ["WORLD_SIZE"]) if started else 1


def is_main() -> bool:
    """Whether this process writes a run's files and speaks for the others, before they join."""
    return world_size() == 1 or os.environ["RANK"] == "0"


def local_world_size() -> int:
    """How many of them are on this machine."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if world_size() > 1 else 1


def local_rank() -> int:
    """Which of those on this machine this one is, from 0."""
    return int(os.environ["LOCAL_RANK"]) if world_size() > 1 else 0


def launch_command(count: int) -> str:
    """How `mrn` is typed for a run of so many processes."""
    here = local_world_size() if count == world_size() else count
    machines = f"--nnodes {count // here} " if count > here else ""
    return f"torchrun {machines}--nproc-per-node {here} -m mrn" if count > 1 else "mrn"
