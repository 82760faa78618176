"""Checks of custom critics, by `make_critic`, in training and by `mrn check critic`."""

import sys

import pytest
import torch

import mrn
from mrn.critics import CRITICS, Dims, build_critic
from mrn.critics.checks import check_critic
from tests.cli.helpers import exit_code, run_command
from tests.training.helpers import tiny_run

MODULE = """
import torch
from torch import nn
from mrn.critics import Architecture, Critic
from mrn.critics.heads.base import ProjectedHead
from mrn.critics.metric import MetricCritic
from mrn.critics.monolithic import Monolithic

class Good(Monolithic):
    pass

class Column(Monolithic):
    def score(self, state, action, goal_side):
        return super().score(state, action, goal_side).unsqueeze(-1)

class Wide(Monolithic):
    def score(self, state, action, goal_side):
        return super().score(state, action, goal_side).unsqueeze(-1).expand(-1, 16)

class Claims(Monolithic):
    is_quasimetric = True
    def score(self, state, action, goal_side):
        return super().score(state, action, goal_side).abs()

class Detached(Monolithic):
    def score(self, state, action, goal_side):
        return super().score(state, action, goal_side).detach()

class NoAction(Monolithic):
    def score(self, state, action, goal_side):
        return super().score(state, torch.zeros_like(action), goal_side)

class Infinite(Monolithic):
    def score(self, state, action, goal_side):
        return (super().score(state, action, goal_side) * 0).sqrt()

class Raises(Monolithic):
    def score(self, state, action, goal_side):
        return super().score(state, action, goal_side[:, :1])

class Incomplete(Critic):
    def __init__(self, dims, size):
        super().__init__()
        self.net = nn.Linear(dims.state, size)

class Breaks(Monolithic):
    def __init__(self, dims, size):
        raise RuntimeError("no weights")

class Exits(Monolithic):
    def __init__(self, dims, size):
        raise SystemExit("no license")

class Negative(ProjectedHead):
    is_quasimetric = False
    def distance(self, from_, to):
        return -(from_ - to).abs().sum(dim=-1)

for name, kind in list(globals().items()):
    if isinstance(kind, type) and issubclass(kind, Critic):
        globals()[name.lower()] = Architecture(
            lambda dims, width, size, kind=kind: kind(dims, size), 256, "")
negative = Architecture(
    lambda dims, width, size: MetricCritic(dims, width, Negative(width, size, 8)), 352, "")
number = Architecture(lambda dims, width, size: 3, 256, "")
"""
PROBLEMS = {
    "column": r"output: shape \(5, 1\) for a batch of 5; return one value per row",
    "wide": r"output: shape \(5, 16\) for a batch of 5",
    "claims": "values: Q is positive: .*; a distance must be non-negative",
    "negative": "values: Q is positive",
    "detached": "gradients: none; do not detach Q",
    "noaction": "gradients: none for the action",
    "infinite": "gradients: not finite",
    "raises": r"output: RuntimeError: mat.*my_critics.py, line",
}
"""Part of the error message by critic."""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "my_critics.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield
    sys.modules.pop("my_critics", None)


@pytest.mark.parametrize("name", PROBLEMS)
def test_unusable_critic_raises_when_it_is_built(name):
    with pytest.raises(
        mrn.UserError, match=f"'my_critics:{name}' cannot be used.*{PROBLEMS[name]}"
    ):
        mrn.make_critic(f"my_critics:{name}", 6, 3, 2, hidden_dim=32)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("incomplete", "TypeError: Can't instantiate abstract class"),
        ("number", "got 3"),
        ("breaks", "RuntimeError: no weights .*my_critics.py, line"),
        ("exits", "SystemExit: no license .*my_critics.py, line"),
    ],
)
def test_critic_that_cannot_be_built_raises(name, message):
    with pytest.raises(mrn.UserError, match=f"critic 'my_critics:{name}': .*{message}"):
        mrn.make_critic(f"my_critics:{name}", 6, 3, 2)


def test_training_does_not_start_with_an_unusable_critic(tmp_path):
    with pytest.raises(mrn.UserError, match="cannot be used for training: output"):
        tiny_run(tmp_path / "run", critic="my_critics:column")
    assert not (tmp_path / "run").exists()


def test_check_leaves_weights_and_random_numbers_unchanged():
    critics, states = [], []
    for name in ("monolithic", "my_critics:good"):
        torch.manual_seed(0)
        critics.append(mrn.make_critic(name, 6, 3, 2))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)
    pairs = zip(*(critic.parameters() for critic in critics), strict=True)
    assert all(torch.equal(*pair) and pair[1].grad is None for pair in pairs)


@pytest.mark.parametrize("name", CRITICS)
def test_built_in_critics_pass(name):
    dims = Dims(25, 4, 3)
    assert {each.verdict for each in check_critic(build_critic(name, dims), dims)} == {"ok"}


def test_check_command(monkeypatch, capsys):
    run_command(monkeypatch, "check", "critic", "my_critics:good")
    output = capsys.readouterr().out
    assert output.rstrip().endswith("Ready to train: mrn train TASK --critic my_critics:good")
    for name in PROBLEMS:
        assert exit_code(monkeypatch, "check", "critic", f"my_critics:{name}") == 2
        output = capsys.readouterr()
        what = PROBLEMS[name].partition(":")[0]
        assert f"failed checks: {what}" in output.err
        assert "error" in output.out
    for words, message in (
        (["critic"], "unknown critic ''"),
        (["FetchReach", "mrn"], "unexpected argument 'mrn'"),
    ):
        assert exit_code(monkeypatch, "check", *words) == 2
        assert message in capsys.readouterr().err
