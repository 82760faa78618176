"""Evaluation: the definition of success, on both engines."""

import numpy as np
import pytest
import torch

import mrn
from mrn.agent import Agent
from mrn.envs import TASKS, find_task, make_envs
from mrn.replay import Episodes
from mrn.studies.inspection.measure import collect_samples
from mrn.training.evaluation import Evaluation, evaluate, first_success
from mrn.utils.intervals import wilson
from tests.envs import custom_envs
from tests.training.helpers import straight

SPEC = TASKS["FetchReach"].spec


def idle(observation):
    return np.zeros((len(observation.goal), 4))


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_good_policy_succeeds_and_idle_policy_fails(engine):
    with make_envs(SPEC, 8, engine) as envs:
        good = evaluate(envs, straight, 20, seed=1)
        bad = evaluate(envs, idle, 20, seed=1)
    assert good.episodes == 20
    assert good.success == good.success_any == 1.0
    assert good.steps_to_success is not None
    assert 1 <= good.steps_to_success < 12
    assert bad.success < 0.3


def test_seed_determines_the_result():
    with make_envs(SPEC, 8) as envs:
        results = [evaluate(envs, straight, 12, seed) for seed in (5, 600, 5)]
    assert results[0] == results[2]
    assert results[0].steps_to_success != results[1].steps_to_success


def test_first_success_by_hand():
    episodes = Episodes.allocate(SPEC, 4)
    episodes.length[:] = [50, 50, 10, 50]
    episodes.success[0, [3, 9]] = True  # reached with the 4th action
    episodes.success[2, 30] = True  # after the end of the episode: ignored
    episodes.success[3, 0] = True
    assert first_success(episodes).tolist() == [4, 0, 0, 1]


def test_success_is_measured_at_the_last_step():
    """Reaching the goal and leaving it again counts for `success_any`, not for `success`."""

    class Script:
        task, num_envs, first = SPEC, 2, 0

        def reset(self, seed=None, episode=0):
            from mrn.envs import Observation

            self.t = 0
            zeros = np.zeros((2, 3))
            self.seen = Observation(np.zeros((2, 10)), zeros, zeros)
            return self.seen

        def step(self, action):
            from mrn.envs.vector import Step

            self.t += 1
            last = np.array([self.t == SPEC.horizon] * 2)
            success = np.array([self.t == 7, self.t >= 20])
            return Step(self.seen, np.zeros(2, bool), last, success)

    result = evaluate(Script(), idle, 4, seed=0)
    assert result == Evaluation(4, success=0.5, success_any=1.0, steps_to_success=13.5)
    assert result.interval == wilson(2, 4)


def untrained_agent(task: str) -> Agent:
    return Agent(mrn.Config.of(task, hidden_dim=16), find_task(task).spec, torch.device("cpu"))


def test_changed_environment_is_rejected(tmp_path, monkeypatch):
    untrained_agent("tests.envs.custom_envs:Grows-v0").save(tmp_path / "policy.safetensors")
    agent = mrn.load(tmp_path / "policy.safetensors")
    assert agent.evaluate(2).episodes == 2
    monkeypatch.setattr(custom_envs.Grows, "more", 3)
    message = r"'tests.envs.custom_envs:Grows-v0' has changed: observation had 2 values, now has"
    with pytest.raises(
        mrn.UserError, match=f"{message} 5. .* restore that version, or train a new"
    ):
        agent.evaluate(2)


def test_too_many_episodes_for_memory():
    agent = untrained_agent("FetchReach")
    with pytest.raises(mrn.UserError, match="not enough memory: play fewer episodes"):
        agent.evaluate(10**13)


def test_episodes_too_long_for_memory(monkeypatch):
    def allocate(*_):
        raise MemoryError

    agent = untrained_agent("FetchReach")
    monkeypatch.setattr(Episodes, "allocate", allocate)
    for look in (agent.evaluate, lambda: collect_samples(agent, 1, seed=0)):
        with pytest.raises(mrn.UserError, match="not enough memory: play fewer episodes"):
            look()
