"""The benchmark for GPUs runs, here on the CPU, and fails clearly without a GPU."""

import re

import pytest
import torch

from benchmarks import gpu
from mrn.algorithms import ALGORITHMS


def test_benchmark_reports_everything_without_a_gpu(capsys):
    gpu.main("cpu", quick=True)
    shown = capsys.readouterr().out
    for name in ("gpu", "cuda", "torch", *ALGORITHMS):
        assert re.search(rf"│ {name} +│ \S", shown), name
    assert re.search(r"│ cpu +│ \d+\.\d +│ 500 ", shown)  # minutes and steps of FetchPush


def test_missing_gpu_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SystemExit, match="PyTorch finds no GPU here"):
        gpu.main()
