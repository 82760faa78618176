"""Callbacks after each cycle and each epoch."""

import pytest

import mrn
from tests.ranks import run_in_ranks
from tests.reliability.helpers import same_run
from tests.training.helpers import metrics, same_weights, tiny_run


class Recorder(mrn.Callback):
    def __init__(self, stop_at=None):
        self.calls, self.stop_at = [], stop_at

    def on_cycle(self, agent, row):
        self.calls.append(("cycle", row))
        return (row["epoch"], row["cycle"]) == self.stop_at

    def on_epoch(self, agent, row):
        self.calls.append(("epoch", row))

    def rows(self, event):
        return [row for name, row in self.calls if name == event]


def test_order_and_counters(tmp_path):
    recorder, epochs = Recorder(), []
    tiny_run(tmp_path, callbacks=[recorder, lambda agent, row: epochs.append(row["epoch"])])
    assert [name for name, _ in recorder.calls] == ["cycle", "cycle", "epoch"] * 2
    counters = [[row[k] for k in ("epoch", "cycle", "env_steps", "updates")]
                for row in recorder.rows("cycle")]  # fmt: skip
    assert counters == [[1, 1, 100, 3], [1, 2, 200, 6], [2, 1, 300, 9], [2, 2, 400, 12]]
    assert epochs == [1, 2]


def test_losses_of_cycles_average_to_those_of_the_epoch(tmp_path):
    recorder = Recorder()
    tiny_run(tmp_path, cycles=3, callbacks=[recorder])
    cycles, epochs = recorder.rows("cycle"), recorder.rows("epoch")
    for name in ("critic_loss", "actor_loss", "mean_q"):
        for number, epoch in enumerate(epochs):
            own = [row[name] for row in cycles[3 * number : 3 * number + 3]]
            assert sum(own) / 3 == pytest.approx(epoch[name], rel=1e-5)
            assert len(set(own)) == 3


@pytest.mark.parametrize("stop_at", [(1, 1), (2, 1), (1, 2)])
def test_stopping_after_a_cycle_resumes_bit_identically(tmp_path, stop_at):
    """Also within the first epoch, and at the last cycle of an epoch, which is then completed."""
    first, second, whole = Recorder(stop_at), Recorder(), Recorder()
    stopped = tiny_run(tmp_path / "run", epochs=3, callbacks=[first])
    assert first.rows("cycle")[-1]["cycle"] == stop_at[1]
    at_end = stop_at[1] == 2
    assert len(first.rows("epoch")) == stop_at[0] - (not at_end)
    if at_end:
        assert same_weights(stopped, mrn.load(tmp_path / "run"))
    tiny_run(tmp_path / "run", epochs=3, resume=True, callbacks=[second])
    tiny_run(tmp_path / "whole", epochs=3, callbacks=[whole])
    assert same_run(tmp_path / "run", tmp_path / "whole")
    both = first.rows("cycle") + second.rows("cycle")
    assert [row["critic_loss"] for row in both] == [
        row["critic_loss"] for row in whole.rows("cycle")
    ]


def count_cycles(folder) -> int:
    recorder = Recorder(stop_at=(2, 1))
    tiny_run(folder, epochs=4, callbacks=[recorder])
    return len(recorder.rows("cycle"))


def test_rank_0_stops_all_ranks_after_a_cycle(tmp_path):
    assert run_in_ranks(2, tmp_path, count_cycles, tmp_path / "run") == [3, 0]
    assert len(metrics(tmp_path / "run")) == 1


def test_classes_are_rejected(tmp_path):
    with pytest.raises(mrn.UserError, match=r"got a class; use Recorder\(\)"):
        tiny_run(tmp_path / "run", callbacks=[Recorder])
    assert not (tmp_path / "run").exists()
