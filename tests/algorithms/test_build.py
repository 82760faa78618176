"""Incomplete custom algorithms raise before training starts."""

import pytest
import torch

import mrn
from mrn.algorithms import ALGORITHMS, GCSL, Algorithm
from tests.algorithms.test_interface import Cloner
from tests.training.helpers import tiny_run


class NoExplorer(Cloner):
    """An algorithm that cannot explore."""

    explorer = Algorithm.explorer


class NoActor(Cloner):
    """An algorithm whose actor has another name."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.policy = self.actor
        del self.actor


class TorchOptimizer(Cloner):
    """An algorithm with an optimizer that cannot be checkpointed."""

    @property
    def optimizers(self):
        return {"optimizer": torch.optim.SGD(self.actor.parameters())}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NoExplorer, "algorithm 'custom' must define explorer"),
        (NoActor, "algorithm 'custom' must set self.actor to a torch module, got None"),
        (TorchOptimizer, "optimizers of algorithm 'custom' must be a dictionary of .*Adam, got"),
    ],
)
def test_incomplete_algorithm_raises(kind, message, tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "custom", kind)
    with pytest.raises(mrn.UserError, match=message):
        tiny_run(tmp_path / "run", algo="custom")
    assert not (tmp_path / "run").exists()


def test_missing_metrics_raise(tmp_path, monkeypatch):
    monkeypatch.delattr(GCSL, "METRICS")
    with pytest.raises(mrn.UserError, match="algorithm 'gcsl' must define METRICS"):
        tiny_run(tmp_path / "run", algo="gcsl")


def test_update_that_returns_a_dictionary_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(GCSL, "update", lambda *_: {"imitation_loss": 0.5})
    message = r"update of algorithm 'gcsl' must .* as a tensor, got {'imitation_loss': 0.5}"
    with pytest.raises(mrn.UserError, match=message):
        tiny_run(tmp_path / "run", algo="gcsl", epochs=1)
