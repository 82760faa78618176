"""Ranks: collective operations, errors, devices and signals."""

import os
import pickle
import signal
import sys
import time

import pytest
import torch

import mrn
from mrn.distributed import SINGLE_PROCESS, Ranks, command_here, join_ranks, launch_command
from mrn.utils.device import default_threads, describe_machine, find_device, visible_gpus
from mrn.utils.errors import RunError, UserError
from mrn.utils.signals import InterruptHandler
from tests.ranks import run_in_ranks
from tests.training.helpers import same_weights

INIT = torch.distributed.init_process_group


def use_all_operations() -> dict:
    with join_ranks() as ranks:
        own = torch.tensor([1.0, 2.0]) * 10**ranks.rank
        matrix = torch.full((2, 2), float(ranks.rank))
        averages = ranks.all_reduce_mean([own, matrix])
        return {
            "rank": ranks.rank,
            "is_main": ranks.is_main,
            "all_gather": [value.tolist() for value in ranks.all_gather(own)],
            "sum": ranks.all_reduce_sum(own).tolist(),
            "own": own.tolist(),
            "mean": [value.tolist() for value in averages],
            "max": ranks.all_reduce_max(7 - ranks.rank),
            "texts": ranks.all_gather_text("grün" * (ranks.rank + 1)),
            "empty": ranks.all_gather_text(""),
        }


def test_collective_operations_of_three_ranks(tmp_path):
    results = run_in_ranks(3, tmp_path, use_all_operations)
    assert [result.pop("rank") for result in results] == [0, 1, 2]
    assert [result.pop("is_main") for result in results] == [True, False, False]
    assert [result.pop("own") for result in results] == [[1, 2], [10, 20], [100, 200]]
    assert results[0] == results[1] == results[2]
    assert results[0] == {
        "all_gather": [[1, 2], [10, 20], [100, 200]],
        "sum": [111, 222],
        "mean": [[37, 74], [[1, 1], [1, 1]]],
        "max": 7,
        "texts": ["grün", "grüngrün", "grüngrüngrün"],
        "empty": ["", "", ""],
    }


def join_late(late: float) -> tuple[float, float]:
    """Return when this rank joined, and when it was ready; later ranks wait first."""
    ready = [0.0]

    def init(*arguments, **settings):
        INIT(*arguments, **settings)
        time.sleep(late * int(os.environ["RANK"]))
        ready[0] = time.monotonic()

    torch.distributed.init_process_group = init  # in this fork only
    with join_ranks():
        return time.monotonic(), ready[0]


def test_no_rank_continues_before_all_have_joined(tmp_path):
    (first, _), (_, last_is_ready) = run_in_ranks(2, tmp_path, join_late, 1.0)
    assert first >= last_is_ready


def test_single_process_does_not_communicate():
    value = torch.ones(3)
    with join_ranks() as ranks:
        assert ranks is SINGLE_PROCESS
    assert SINGLE_PROCESS.is_main
    assert SINGLE_PROCESS.all_gather(value)[0] is value
    assert SINGLE_PROCESS.all_reduce_sum(value) is value
    assert SINGLE_PROCESS.all_reduce_mean([value])[0] is value
    assert SINGLE_PROCESS.all_gather_text("a") == ["a"]
    assert SINGLE_PROCESS.all_reduce_max(3) == 3


def fail_on_rank(rank: int) -> tuple:
    """Raise an error on one rank while the others wait for it."""
    try:
        with join_ranks() as ranks:
            if ranks.rank == rank:
                raise UserError("wrong")
            ranks.barrier()
    except UserError as error:
        return type(error), error.already_reported, str(error)
    return ()


def test_failing_rank_reports_and_the_others_stop(tmp_path):
    results = run_in_ranks(3, tmp_path, fail_on_rank, 1)
    assert results[1] == (UserError, False, "wrong")
    assert [result[:2] for result in (results[0], results[2])] == [(RunError, True)] * 2


def fail_on_all_ranks() -> bool:
    try:
        with join_ranks():
            raise UserError("wrong")
    except UserError as error:
        return error.already_reported


def test_common_error_is_reported_once(tmp_path):
    assert sorted(run_in_ranks(3, tmp_path, fail_on_all_ranks)) == [False, True, True]


def join_twice() -> list[int]:
    totals = []
    for _ in range(2):
        with join_ranks() as ranks:
            totals.append(int(ranks.all_reduce_sum(torch.tensor(ranks.rank + 1))))
    return totals


def test_ranks_can_join_twice(tmp_path):
    assert run_in_ranks(2, tmp_path, join_twice) == [[3, 3], [3, 3]]


def test_settings_must_divide_equally():
    assert Ranks(size=4).divide(num_envs=20, batch_size=1024) == [5, 256]
    message = "3 processes cannot divide num_envs 20 and batch_size 1024 equally; use num_envs 21 "
    with pytest.raises(UserError, match=f"{message}and batch_size 1023, or another number"):
        Ranks(size=3).divide(num_envs=20, batch_size=1024)
    with pytest.raises(UserError, match="equally; use batch_size 8, or another"):
        Ranks(size=8).divide(num_envs=16, batch_size=1)


def test_each_local_rank_has_its_own_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert str(find_device("auto")) == "cpu"  # a GPU only on request
    assert str(find_device("cuda")) == "cuda"
    assert str(find_device("cuda:1")) == "cuda:1"
    monkeypatch.setattr("mrn.utils.device.local_world_size", lambda: 2)
    monkeypatch.setattr("mrn.utils.device.local_rank", lambda: 1)
    assert str(find_device("cuda")) == "cuda:1"
    assert str(find_device("cpu")) == str(find_device("auto")) == "cpu"
    with pytest.raises(UserError, match="each of the 2 processes .* needs .* GPU"):
        find_device("cuda:1")
    monkeypatch.setattr("mrn.utils.device.local_world_size", lambda: 3)
    with pytest.raises(UserError, match="each of the 3 processes .* there are 2"):
        find_device("cuda")


def test_local_ranks_share_the_cores(monkeypatch):
    cores = int(describe_machine()["cores"])
    monkeypatch.setattr("mrn.utils.device.local_world_size", lambda: 2)
    assert int(describe_machine()["cores"]) == cores
    assert default_threads() == max(cores // 2, 1)


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000", 2), ("max 100000", 8), ("1000 100000", 1), ("", 8)]
)
def test_cores_of_a_container_follow_its_quota(monkeypatch, tmp_path, quota, cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("mrn.utils.device.CPU_QUOTA", tmp_path / "cpu.max")
    assert default_threads() == 8
    (tmp_path / "cpu.max").write_text(quota)
    assert default_threads() == cores


def test_gpu_names_follow_cuda_visible_devices(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert visible_gpus() == ["3", "5"]


class SignalDuringReduce(Ranks):
    """Ranks that receive a signal during an all-reduce."""

    def all_reduce_max(self, number):
        os.kill(os.getpid(), signal.SIGINT)
        return number


def test_signal_during_an_all_reduce_counts_for_the_next_one(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 10.0)
    with InterruptHandler("saving", SignalDuringReduce(size=2)) as handler:
        assert not handler.requested()
        assert handler.received == signal.SIGINT
        assert handler.requested()


def test_signal_forwarded_by_torchrun_is_not_a_second_one(monkeypatch):
    now = [10.0]
    killed = []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with InterruptHandler("saving", Ranks(size=2)) as handler:
        for later in (0, 0.5, 2.0):
            now[0] = 10.0 + later
            if later == 2.0:
                monkeypatch.setattr("os.kill", lambda *arguments: killed.append(arguments))
                handler._receive(signal.SIGTERM, None)
            else:
                os.kill(os.getpid(), signal.SIGTERM)
            assert handler.received == signal.SIGTERM
    assert killed == [(os.getpid(), signal.SIGTERM)]


def test_agent_can_be_pickled():
    agent = mrn.load("zoo:FetchReach")
    agent.algorithm.optimizers[
        "optimizer"
    ].combine = SINGLE_PROCESS.all_reduce_mean  # as after training
    again = pickle.loads(pickle.dumps(agent))  # as multiprocessing and Ray do
    assert same_weights(agent, again)


def test_launch_command():
    assert launch_command(1) == "mrn"
    assert launch_command(4) == "torchrun --nproc-per-node 4 -m mrn"


def test_command_has_a_path_only_if_the_shell_would_not_find_it(tmp_path, monkeypatch):
    program = tmp_path / "my venv" / "mrn"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program), "train"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_here() == f"'{program}'"
    assert command_here(2) == launch_command(2)
    monkeypatch.setenv("PATH", str(program.parent))
    assert command_here() == "mrn"
    monkeypatch.setattr("sys.argv", ["train.py"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_here() == "mrn"
    monkeypatch.setattr("sys.argv", ["/src/mrn/__main__.py", "train"])  # python -m mrn
    assert command_here() == f"{sys.executable} -m mrn"
