"""What the processes of a run tell each other."""

import os
import pickle
import signal
import time

import pytest
import torch

import mrn
from mrn.distributed import SINGLE_PROCESS, Ranks, join_ranks, launch_command
from mrn.utils.device import default_threads, describe_machine, find_device, visible_gpus
from mrn.utils.errors import RunError, UserError
from mrn.utils.signals import InterruptHandler
from tests.ranks import in_team
from tests.training.helpers import same_weights

INIT = torch.distributed.init_process_group


def exchange() -> dict:
    with join_ranks() as ranks:
        own = torch.tensor([1.0, 2.0]) * 10**ranks.rank
        matrix = torch.full((2, 2), float(ranks.rank))
        averages = ranks.all_reduce_mean([own, matrix])
        return {
            "rank": ranks.rank,
            "leads": ranks.is_main,
            "gather": [value.tolist() for value in ranks.all_gather(own)],
            "total": ranks.all_reduce_sum(own).tolist(),
            "own": own.tolist(),
            "average": [value.tolist() for value in averages],
            "most": ranks.all_reduce_max(7 - ranks.rank),
            "texts": ranks.all_gather_text("grün" * (ranks.rank + 1)),
            "empty": ranks.all_gather_text(""),
        }


def test_what_three_processes_exchange(tmp_path):
    results = in_team(3, tmp_path, exchange)
    assert [result.pop("rank") for result in results] == [0, 1, 2]
    assert [result.pop("leads") for result in results] == [True, False, False]
    assert [result.pop("own") for result in results] == [[1, 2], [10, 20], [100, 200]]
    assert results[0] == results[1] == results[2]
    assert results[0] == {
        "gather": [[1, 2], [10, 20], [100, 200]],
        "total": [111, 222],
        "average": [[37, 74], [[1, 1], [1, 1]]],
        "most": 7,
        "texts": ["grün", "grüngrün", "grüngrüngrün"],
        "empty": ["", "", ""],
    }


def meet(late: float) -> tuple[float, float]:
    """When this process has met the others, and when it was ready to: the last one, later."""
    ready = [0.0]

    def init(*arguments, **settings):
        INIT(*arguments, **settings)
        time.sleep(late * int(os.environ["RANK"]))
        ready[0] = time.monotonic()

    torch.distributed.init_process_group = init  # in this fork alone
    with join_ranks():
        return time.monotonic(), ready[0]


def test_nobody_goes_on_before_all_have_met(tmp_path):
    (first, _), (_, last_is_ready) = in_team(2, tmp_path, meet, 1.0)
    assert first >= last_is_ready


def test_alone_nothing_is_exchanged():
    value = torch.ones(3)
    with join_ranks() as ranks:
        assert ranks is SINGLE_PROCESS
    assert SINGLE_PROCESS.is_main
    assert SINGLE_PROCESS.gather(value)[0] is value
    assert SINGLE_PROCESS.total(value) is value
    assert SINGLE_PROCESS.average([value])[0] is value
    assert SINGLE_PROCESS.texts("a") == ["a"]
    assert SINGLE_PROCESS.most(3) == 3


def fail(rank: int) -> tuple:
    """One process makes a mistake; the others wait for it."""
    try:
        with join_ranks() as ranks:
            if ranks.rank == rank:
                raise UserError("wrong")
            ranks.barrier()
    except UserError as error:
        return type(error), error.already_reported, str(error)
    return ()


def test_one_process_says_what_was_wrong_and_the_others_end(tmp_path):
    results = in_team(3, tmp_path, fail, 1)
    assert results[1] == (UserError, False, "wrong")
    assert [result[:2] for result in (results[0], results[2])] == [(RunError, True)] * 2


def fail_alike() -> bool:
    try:
        with join_ranks():
            raise UserError("wrong")
    except UserError as error:
        return error.already_reported


def test_what_all_find_wrong_is_said_once(tmp_path):
    assert sorted(in_team(3, tmp_path, fail_alike)) == [False, True, True]


def twice() -> list[int]:
    totals = []
    for _ in range(2):
        with join_ranks() as ranks:
            totals.append(int(ranks.all_reduce_sum(torch.tensor(ranks.rank + 1))))
    return totals


def test_a_process_may_train_two_runs_one_after_the_other(tmp_path):
    assert in_team(2, tmp_path, twice) == [[3, 3], [3, 3]]


def test_equal_shares_alone():
    assert Ranks(size=4).divide(episodes=20, batch_size=1024) == [5, 256]
    told = "cannot divide --episodes 20 and --batch-size 1024 equally: give --episodes 21 "
    with pytest.raises(UserError, match=f"3 processes {told}--batch-size 1023, or start another"):
        Ranks(size=3).divide(episodes=20, batch_size=1024)
    with pytest.raises(UserError, match="equally: give --batch-size 8, or start"):
        Ranks(size=8).divide(episodes=16, batch_size=1)


def test_each_process_of_a_machine_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert str(find_device("auto")) == "cuda"
    assert str(find_device("cuda:1")) == "cuda:1"
    monkeypatch.setattr("mrn.utils.device.local_world_size", lambda: 2)
    monkeypatch.setattr("mrn.utils.device.local_rank", lambda: 1)
    assert str(find_device("auto")) == str(find_device("cuda")) == "cuda:1"
    assert str(find_device("cpu")) == "cpu"
    with pytest.raises(UserError, match="each of the 2 processes here needs a GPU of its own"):
        find_device("cuda:1")
    monkeypatch.setattr("mrn.utils.device.local_world_size", lambda: 3)
    with pytest.raises(UserError, match="of which there are 2; give --device cuda and so many"):
        find_device("auto")


def test_cores_are_the_machines_and_threads_a_share(monkeypatch):
    cores = int(describe_machine()["cores"])
    monkeypatch.setattr("mrn.utils.device.local_world_size", lambda: 2)
    assert int(describe_machine()["cores"]) == cores
    assert default_threads() == max(cores // 2, 1)


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000", 2), ("max 100000", 8), ("1000 100000", 1), ("", 8)]
)
def test_a_container_has_the_cores_that_its_time_is_worth(monkeypatch, tmp_path, quota, cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("mrn.utils.device.CPU_QUOTA", tmp_path / "cpu.max")
    assert default_threads() == 8
    (tmp_path / "cpu.max").write_text(quota)
    assert default_threads() == cores


def test_gpus_are_called_as_their_user_chose_them(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert visible_gpus() == ["3", "5"]


class Late(Ranks):
    """A ranks in whose exchange a signal arrives."""

    def most(self, number):
        os.kill(os.getpid(), signal.SIGINT)
        return number


def test_a_signal_during_the_exchange_is_for_the_next_one(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 10.0)
    with InterruptHandler("saving", Late(size=2)) as interruption:
        assert not interruption.agreed()
        assert interruption.received == signal.SIGINT
        assert interruption.agreed()


def test_torchruns_copy_of_a_signal_is_not_a_second_one(monkeypatch):
    now = [10.0]
    killed = []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with InterruptHandler("saving", Ranks(size=2)) as interruption:
        for later in (0, 0.5, 2.0):
            now[0] = 10.0 + later
            if later == 2.0:
                monkeypatch.setattr("os.kill", lambda *arguments: killed.append(arguments))
                interruption._receive(signal.SIGTERM, None)
            else:
                os.kill(os.getpid(), signal.SIGTERM)
            assert interruption.received == signal.SIGTERM
    assert killed == [(os.getpid(), signal.SIGTERM)]


def test_an_agent_can_be_sent_to_other_processes():
    agent = mrn.load("zoo:FetchReach")
    agent.algorithm.optimizers[
        "optimizer"
    ].combine = SINGLE_PROCESS.average  # as training leaves it
    again = pickle.loads(pickle.dumps(agent))  # as multiprocessing and Ray send it; no file is read
    assert same_weights(agent, again)


def test_how_it_is_started():
    assert launch_command(1) == "mrn"
    assert launch_command(4) == "torchrun --nproc-per-node 4 -m mrn"
