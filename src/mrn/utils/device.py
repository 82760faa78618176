"""Where tensors live, how many threads work on them, and who keeps their memory."""

import ctypes
import gc
import math
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mrn.distributed import local_rank, local_world_size
from mrn.utils.errors import UserError, unknown_name

ANY_GPU = ("auto", "cuda")
"""How a run asks for whichever GPU there is."""
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux says how much time of its cores a container has, of how much."""


def find_device(name: str | torch.device) -> torch.device:
    """The device of that name; `auto` is the GPU if there is one.

    Of several processes of a run on this machine each has a GPU of its own.

    Raises:
        UserError: There is no such device here, or not one for each process; lists those there are.
    """
    name = str(name)
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["auto", "cpu", *(["cuda"] if cuda else []), *cuda]
    if name.startswith("cuda") and not cuda:
        raise UserError(
            f"device {name!r}: PyTorch finds no GPU here (torch.cuda.is_available() is False). Use "
            "cpu, or install a build of PyTorch for your GPU"
        )
    if name not in known:
        raise unknown_name("device", name, known)
    if name == "auto":
        name = "cuda" if cuda else "cpu"
    count = local_world_size()
    if name == "cpu" or count == 1:
        return torch.device(name)
    if name != "cuda" or count > len(cuda):
        raise UserError(
            f"device {name!r}: each of the {count} processes here needs a GPU of its own, of which "
            f"there are {len(cuda)}; give --device cuda and so many processes, or --device cpu"
        )
    return torch.device("cuda", local_rank())


def visible_gpus() -> list[str]:
    """The GPUs that PyTorch finds here, by the names that CUDA_VISIBLE_DEVICES takes."""
    count = torch.cuda.device_count()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return chosen.split(",")[:count] if chosen else [str(index) for index in range(count)]


def describe_machine() -> dict[str, str]:
    """The hardware of this process, in a person's words."""
    found = {"cpu": cpu_name(), "cores": str(_cores())}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def cpu_name() -> str:
    """The processor's name, as Linux tells it, else as Python does."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def default_threads() -> int:
    """The cores for this process: its share, where a run has more processes here."""
    return max(_cores() // local_world_size(), 1)


def _cores() -> int:
    """The cores this process may use, of a container as many as its time is worth."""
    known = hasattr(os, "sched_getaffinity")
    there = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    try:
        quota, period = CPU_QUOTA.read_text().split()
        return min(there, max(math.ceil(int(quota) / int(period)), 1))
    except (OSError, ValueError):  # no control groups, or "max": no limit
        return there


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use this many threads for matrix products in this block.

    One is right while environments run: the idle threads of a larger pool spin, and take the
    cores that the simulation's threads need.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def memory_errors(remedy: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """What needs more memory than there is becomes an error that says the remedy."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise kind(f"not enough memory: {remedy}") from error
    except RuntimeError as error:  # how PyTorch says it of a CPU
        if "can't allocate memory" not in str(error):
            raise
        raise kind(f"not enough memory: {remedy}") from error


def tune_allocator() -> None:
    """Prepare this process for many updates, each of which needs the memory of the one before.

    Left alone, glibc hands the tens of megabytes that an update frees back to the system, and
    every page of them is mapped and cleared anew in the next; and Python's collector walks
    through all that was imported, again and again.
    """
    libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if hasattr(libc, "mallopt"):
        trim_threshold, mmap_threshold = -1, -3  # from malloc.h
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 32 * 2**20)  # the most it takes
    gc.freeze()
