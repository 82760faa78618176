"""Devices, CPU threads and memory."""

import ctypes
import gc
import math
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mrn.distributed import local_rank, local_world_size
from mrn.utils.errors import UserError, is_memory_error, unknown_name

ANY_GPU = "cuda"
"""Device name that selects any available GPU."""
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""CPU quota and period of a Linux container (cgroup v2)."""
CPUINFO = Path("/proc/cpuinfo")
"""Description of the processor on Linux."""
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
"""Flags of processors with bfloat16 products: x86 with AVX-512 or AMX, and ARM."""
MAX_SLOWDOWN = 2.0
"""Slowdown by more threads that counts as a stall; it is ten times or more on a busy machine."""


def find_device(name: str | torch.device) -> torch.device:
    """Return the torch device for a name; `auto` is the CPU, as no GPU has been measured yet.

    With several ranks on this machine, each rank gets its own GPU.

    Raises:
        UserError: The device does not exist, or there are fewer GPUs than local ranks.
    """
    name = str(name)
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["auto", "cpu", *(["cuda"] if cuda else []), *cuda]
    if name.startswith("cuda") and not cuda:
        raise UserError(
            f"device {name!r}: PyTorch finds no GPU here (torch.cuda.is_available() is False). Use "
            "cpu, or install a PyTorch build for your GPU"
        )
    if name not in known:
        raise unknown_name("device", name, known)
    if name in ("auto", "cpu"):
        return torch.device("cpu")
    count = local_world_size()
    if count == 1:
        return torch.device(name)
    if name != "cuda" or count > len(cuda):
        raise UserError(
            f"device {name!r}: each of the {count} processes on this machine needs its own GPU, "
            f"but there are {len(cuda)}. Set device to 'cuda' with at most one process per GPU, or "
            "set it to 'cpu'"
        )
    return torch.device("cuda", local_rank())


def visible_gpus() -> list[str]:
    """Return the visible GPUs, named as in CUDA_VISIBLE_DEVICES."""
    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:count] if visible else [str(index) for index in range(count)]


def describe_machine() -> dict[str, str]:
    """Return CPU model, number of cores and GPU model."""
    machine = {"cpu": cpu_name(), "cores": str(_cores())}
    if torch.cuda.is_available():
        machine["gpu"] = torch.cuda.get_device_name()
    return machine


def cpu_name() -> str:
    """Return the CPU model."""
    return _cpuinfo("model name") or platform.processor()


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for bfloat16 products; on Linux or a GPU only.

    Without them, PyTorch emulates these products, which is slower than float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    flags = f"{_cpuinfo('flags')} {_cpuinfo('Features')}".split()  # on x86, and on ARM
    return torch.backends.mkldnn.is_available() and not BFLOAT16_FLAGS.isdisjoint(flags)


def _cpuinfo(name: str) -> str:
    """Return an entry of the first core in /proc/cpuinfo, or an empty string."""
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    entries = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in entries if key.strip() == name), "")


def default_threads() -> int:
    """Return the number of cores for this process, divided among local ranks."""
    return max(_cores() // local_world_size(), 1)


def _cores() -> int:
    """Return the number of usable cores: CPU affinity, limited by the container's quota."""
    has_affinity = hasattr(os, "sched_getaffinity")
    available = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    try:
        quota, period = CPU_QUOTA.read_text(encoding="utf-8").split()
        return min(available, max(math.ceil(int(quota) / int(period)), 1))
    except (OSError, ValueError):  # no cgroup, or "max" (unlimited)
        return available


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set the number of PyTorch threads within this block.

    Use 1 while environments run: idle threads of a larger pool spin, which takes cores away from
    the simulation.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads_stall(count: int) -> bool:
    """Return whether PyTorch is much slower with `count` threads than with one.

    On a busy machine a matrix product waits for the thread that has no core at the moment.
    """
    return count > 1 and _product_seconds(count) > MAX_SLOWDOWN * _product_seconds(1)


def _product_seconds(threads: int, repeats: int = 20) -> float:
    """Return the time of matrix products of the size that an update has."""
    batch, weights = torch.ones(1024, 256), torch.ones(256, 256)
    with torch_threads(threads):
        batch @ weights  # starts the threads
        started = time.perf_counter()
        for _ in range(repeats):
            batch @ weights
        return time.perf_counter() - started


@contextmanager
def memory_errors(remedy: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Convert out-of-memory errors to `kind`, with a remedy in the message."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_memory_error(error):
            raise
        raise kind(f"not enough memory: {remedy}") from error


def tune_allocator() -> None:
    """Tune glibc's allocator and Python's garbage collector for repeated gradient steps.

    By default glibc returns the tens of megabytes that a gradient step frees to the system. The
    next step then maps and clears every page again. `gc.freeze` keeps the collector from scanning
    all imported modules again and again.
    """
    libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if hasattr(libc, "mallopt"):
        trim_threshold, mmap_threshold = -1, -3  # from malloc.h
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 32 * 2**20)  # the largest value glibc accepts
    gc.freeze()
