"""Tests of the check for stalling threads, and of the search for bfloat16 instructions."""

import time

import pytest
import torch

from mrn.training import loop
from mrn.utils import device
from mrn.utils.device import threads_stall
from tests.training.helpers import tiny_run


@pytest.mark.parametrize(("slowdown", "stalls"), [(0.6, False), (1.5, False), (10, True)])
def test_threads_stall_if_they_are_slower_than_one(monkeypatch, slowdown, stalls):
    monkeypatch.setattr(device, "_product_seconds", lambda n: 1.0 if n == 1 else slowdown)
    assert threads_stall(2) is stalls
    assert not threads_stall(1)


def test_measurement_leaves_threads_and_random_numbers_alone():
    threads, state, started = torch.get_num_threads(), torch.get_rng_state(), time.perf_counter()
    assert 0 < device._product_seconds(2) < time.perf_counter() - started
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("stalls", [True, False])
def test_run_suggests_one_thread(tmp_path, monkeypatch, capsys, stalls):
    monkeypatch.setattr(loop, "threads_stall", lambda count: stalls)
    tiny_run(tmp_path / "run", epochs=1, threads=2, progress=True)
    shown = capsys.readouterr().out
    assert ("warning: updates are slow with 2 threads" in shown) is stalls
    assert ("try --threads 1" in shown) is stalls


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("model name : EPYC\nflags\t\t: fpu avx512f avx512_bf16\n", True),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", True),
        ("Features\t: fp asimd bf16\n", True),
        ("flags\t\t: fpu avx2 avx512f\n", False),
        ("Features\t: fp asimd svebf16\n", False),
        ("model name : bf16 avx512_bf16\n", False),
        ("", False),
        (None, False),  # not Linux
    ],
)
def test_bfloat16_instructions_are_found_among_the_flags(tmp_path, monkeypatch, content, expected):
    monkeypatch.setattr(device, "CPUINFO", tmp_path / "cpuinfo")
    if content is not None:
        device.CPUINFO.write_text(content)
    assert device.has_bfloat16(torch.device("cpu")) is expected


def test_gpu_decides_about_bfloat16(monkeypatch):
    for answer in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda answer=answer, **_: answer)
        assert device.has_bfloat16(torch.device("cuda")) is answer
