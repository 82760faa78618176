"""A policy as an ONNX file: the same actions, in another runtime."""

import os
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import mrn
from mrn import cli
from mrn.algorithms import ALGORITHMS, Policy
from mrn.envs import find_task
from mrn.integrations.onnx import export

WALK = "tests.envs.custom_envs:Walk-v0"  # bounds [-1, 1] and [0, 4], float64


def agent_of(task: str, algorithm: str = "ddpg") -> mrn.Agent:
    """An agent that has seen some states and goals, each value on a scale of its own."""
    config = mrn.Config.of(task, algo=algorithm, hidden_dim=16)
    agent = mrn.Agent(config, find_task(task).spec, torch.device("cpu"))
    generator = torch.Generator().manual_seed(1)
    for norm in (agent.normalizer.state, agent.normalizer.goal):
        size = len(norm.shift)
        norm.update(torch.randn(50, size, generator=generator) * torch.logspace(-2, 1, size) + 1)
    return agent


@pytest.fixture(scope="module", params=["FetchReach", WALK])
def exported(request, tmp_path_factory):
    agent, file = agent_of(request.param), tmp_path_factory.mktemp("onnx") / "policy.onnx"
    export(agent, file)
    return agent, file


def observations(agent: mrn.Agent, count: int) -> dict[str, np.ndarray]:
    """Some of each kind: usual, and far beyond both limits at which inputs are clipped."""
    random, sizes = np.random.default_rng(2), (agent.spec.state_dim, agent.spec.goal_dim)
    scales = random.choice([1.0, 100.0, 1000.0], (count, 1))
    named = zip(("observation", "desired_goal"), sizes, strict=True)
    return {name: (random.normal(size=(count, n)) * scales).astype("f4") for name, n in named}


@pytest.mark.parametrize("count", [1, 7, 500])
def test_actions_are_those_of_predict(exported, count):
    agent, file = exported
    session = onnxruntime.InferenceSession(file)
    given = observations(agent, count)
    (action,) = session.run(["action"], given)
    expected, _ = agent.predict(given)
    assert action.dtype == expected.dtype == np.dtype(agent.spec.action_dtype)
    assert action.shape == (count, agent.spec.action_dim)
    assert np.abs(action - expected).max() <= 1e-5
    assert (action >= agent.spec.action_low).all()
    assert (action <= agent.spec.action_high).all()
    if count > 1:
        assert np.ptp(action, axis=0).min() > 0.1  # a policy that does something


def test_large_actions_have_no_more_digits_than_a_float(tmp_path):
    agent = agent_of("tests.envs.custom_envs:Strong-v0")  # bounds of 1,000
    export(agent, tmp_path / "policy.onnx")
    given = observations(agent, 100)
    (action,) = onnxruntime.InferenceSession(tmp_path / "policy.onnx").run(["action"], given)
    assert np.abs(action).max() > 100
    assert np.abs(action - agent.predict(given)[0]).max() <= 0.01


def test_the_file_may_be_named_by_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export(agent_of(WALK), "new/policy.onnx")
    onnx.checker.check_model(tmp_path / "new" / "policy.onnx")


def test_inputs_are_named_as_the_environment_does(exported):
    agent, file = exported
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    found = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    shape = agent.spec
    assert found == {
        "observation": ["batch", shape.state_dim],
        "desired_goal": ["batch", shape.goal_dim],
        "action": ["batch", shape.action_dim],
    }


def test_the_same_policy_is_the_same_file_and_tells_nothing_of_the_machine(exported, tmp_path):
    agent, file = exported
    export(agent, tmp_path / "new" / "again.onnx")
    content = (tmp_path / "new" / "again.onnx").read_bytes()
    assert content == file.read_bytes()
    for told in (os.path.dirname(mrn.__file__), "site-packages", "stack_trace"):
        assert told.encode() not in content


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"ddpg"}))
def test_every_algorithm_is_exported(algorithm, tmp_path):
    agent = agent_of(WALK, algorithm)
    export(agent, tmp_path / "policy.onnx")
    given = observations(agent, 20)
    (action,) = onnxruntime.InferenceSession(tmp_path / "policy.onnx").run(["action"], given)
    assert np.abs(action - agent.predict(given)[0]).max() <= 1e-5


class Chooses(nn.Module):
    """Looks at values to decide what to compute, which a graph cannot."""

    def forward(self, state, goal):
        return state[:, :2] if float(state.sum()) > 0 else goal


class Guesses(nn.Module):
    def forward(self, state, goal):
        return torch.rand_like(goal)


@pytest.mark.parametrize(
    ("actor", "message"), [(Chooses, "cannot be exported to ONNX"), (Guesses, "is not the policy")]
)
def test_an_actor_that_onnx_cannot_be_is_refused(actor, message, tmp_path):
    agent = agent_of(WALK)
    bounds = (agent.spec.action_low, agent.spec.action_high, torch.float64)
    agent.policy = Policy(agent.normalizer, actor(), *bounds)
    with pytest.raises(mrn.UserError, match=f"'ddpg' {message}|'ddpg' .*{message}"):
        export(agent, tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command_and_its_mistakes(tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "export", "run", *words])
        cli.main()

    def refused(*words):
        with pytest.raises(SystemExit) as end:
            command(*words)
        assert end.value.code == 2
        return capsys.readouterr().err

    assert "run holds no latest.safetensors" in refused("policy.onnx")
    agent_of(WALK).save(run / "latest.safetensors")
    assert "must end with .onnx, got policy.pt" in refused("policy.pt")
    (tmp_path / "file").touch()
    assert "file is a file" in refused("file/policy.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert "is a folder" in refused("folder.onnx")
    there = tmp_path / "policy.onnx"
    there.write_text("mine")
    assert "policy.onnx exists already; --force replaces it" in refused("policy.onnx")
    assert there.read_text() == "mine"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "onnxscript", None)
        hint = (
            "onnxscript is missing: pip install -c constraints.txt '.[onnx]' in the folder of mrn"
        )
        assert hint in refused("policy.onnx", "--force")
    assert there.read_text() == "mine"
    command("policy.onnx", "--force")
    assert "Wrote policy.onnx: observation (2)" in capsys.readouterr().out
    onnx.checker.check_model(there)
