"""Tests of the ONNX export: the same actions in onnxruntime."""

import os
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import mrn
from mrn.algorithms import ALGORITHMS, Policy
from mrn.envs import find_task
from mrn.integrations.onnx import export
from tests.commands import MRN

WALK = "tests.envs.custom_envs:Walk-v0"  # bounds [-1, 1] and [0, 4], float64


def make_agent(task: str, algorithm: str = "ddpg") -> mrn.Agent:
    """Return an agent whose normalizer has a different scale in each dimension."""
    config = mrn.Config.of(task, algo=algorithm, hidden_dim=16)
    agent = mrn.Agent(config, find_task(task).spec, torch.device("cpu"))
    generator = torch.Generator().manual_seed(1)
    for norm in (agent.normalizer.state, agent.normalizer.goal):
        size = len(norm.shift)
        norm.update(torch.randn(50, size, generator=generator) * torch.logspace(-2, 1, size) + 1)
    return agent


@pytest.fixture(scope="module", params=["FetchReach", WALK])
def exported(request, tmp_path_factory):
    agent, file = make_agent(request.param), tmp_path_factory.mktemp("onnx") / "policy.onnx"
    export(agent, file)
    return agent, file


def observations(agent: mrn.Agent, count: int) -> dict[str, np.ndarray]:
    """Return observations within and far beyond both clipping ranges of the normalizer."""
    random, sizes = np.random.default_rng(2), (agent.spec.state_dim, agent.spec.goal_dim)
    scales = random.choice([1.0, 100.0, 1000.0], (count, 1))
    named = zip(("observation", "desired_goal"), sizes, strict=True)
    return {name: (random.normal(size=(count, n)) * scales).astype("f4") for name, n in named}


@pytest.mark.parametrize("count", [1, 7, 500])
def test_actions_equal_those_of_predict(exported, count):
    agent, file = exported
    session = onnxruntime.InferenceSession(file)
    inputs = observations(agent, count)
    (action,) = session.run(["action"], inputs)
    expected, _ = agent.predict(inputs)
    assert action.dtype == expected.dtype == np.dtype(agent.spec.action_dtype)
    assert action.shape == (count, agent.spec.action_dim)
    assert np.abs(action - expected).max() <= 1e-5
    assert (action >= agent.spec.action_low).all()
    assert (action <= agent.spec.action_high).all()
    if count > 1:
        assert np.ptp(action, axis=0).min() > 0.1  # the policy is not constant


def test_large_actions_match_to_float32_precision(tmp_path):
    agent = make_agent("tests.envs.custom_envs:Strong-v0")  # bounds of 1,000
    export(agent, tmp_path / "policy.onnx")
    inputs = observations(agent, 100)
    (action,) = onnxruntime.InferenceSession(tmp_path / "policy.onnx").run(["action"], inputs)
    assert np.abs(action).max() > 100
    assert np.abs(action - agent.predict(inputs)[0]).max() <= 0.01


def test_path_may_be_a_string(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export(make_agent(WALK), "new/policy.onnx")
    onnx.checker.check_model(tmp_path / "new" / "policy.onnx")


def test_inputs_have_the_names_of_goal_observations(exported):
    agent, file = exported
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    found = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    spec = agent.spec
    assert found == {
        "observation": ["batch", spec.state_dim],
        "desired_goal": ["batch", spec.goal_dim],
        "action": ["batch", spec.action_dim],
    }


def test_file_is_deterministic_and_contains_no_local_paths(exported, tmp_path):
    agent, file = exported
    export(agent, tmp_path / "new" / "again.onnx")
    content = (tmp_path / "new" / "again.onnx").read_bytes()
    assert content == file.read_bytes()
    for text in (os.path.dirname(mrn.__file__), "site-packages", "stack_trace"):
        assert text.encode() not in content


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"ddpg"}))
def test_every_algorithm_can_be_exported(algorithm, tmp_path):
    agent = make_agent(WALK, algorithm)
    export(agent, tmp_path / "policy.onnx")
    inputs = observations(agent, 20)
    (action,) = onnxruntime.InferenceSession(tmp_path / "policy.onnx").run(["action"], inputs)
    assert np.abs(action - agent.predict(inputs)[0]).max() <= 1e-5


class DataDependentActor(nn.Module):
    """Actor with control flow that depends on values, which a graph cannot express."""

    def forward(self, state, goal):
        return state[:, :2] if float(state.sum()) > 0 else goal


class RandomActor(nn.Module):
    def forward(self, state, goal):
        return torch.rand_like(goal)


@pytest.mark.parametrize(
    ("actor", "message"),
    [
        (DataDependentActor, "cannot be exported to ONNX"),
        (RandomActor, "does not match the policy"),
    ],
)
def test_actor_that_onnx_cannot_express_is_rejected(actor, message, tmp_path):
    agent = make_agent(WALK)
    bounds = (agent.spec.action_low, agent.spec.action_high, torch.float64)
    agent.policy = Policy(agent.normalizer, actor(), *bounds)
    with pytest.raises(mrn.UserError, match=f"'ddpg' {message}|'ddpg' .*{message}"):
        export(agent, tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


def test_export_leaves_nothing_in_the_home_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    command = [MRN, "export", "zoo:FetchReach", str(tmp_path / "policy.onnx")]
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert (tmp_path / "policy.onnx").exists()
    assert not list(home.rglob("*onnxruntime*"))  # its telemetry store
