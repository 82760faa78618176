"""The scripts of `examples/`, run as a user would run them."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

import mrn
from mrn.critics.base import count_parameters
from mrn.envs.custom import make_env
from tests.algorithms.helpers import make_algorithm, random_batch
from tests.examples.helpers import DOCS, EXAMPLES, SNIPPET, run_blocks, run_command, run_example
from tests.training.helpers import metrics, tiny_run


def test_custom_environment_learns(tmp_path, monkeypatch, capsys):
    names = run_example("custom_environment.py", tmp_path, monkeypatch)
    assert names["agent"].spec.action_high == (0.2, 0.2)
    success = [float(row["success"]) for row in metrics(tmp_path / "runs" / "pond")]
    assert max(success) >= 0.8
    assert "reached the goal: " in capsys.readouterr().out
    run_command(monkeypatch, "check", "custom_environment:Pond-v0")
    run_command(monkeypatch, "eval", "runs/pond", "--episodes=4")
    run_command(monkeypatch, "resume", "runs/pond")


def test_rebuilt_environment_repeats_its_first_observation(tmp_path, monkeypatch):
    pytest.importorskip("panda_gym")
    names = run_example("rebuild_on_reset.py", tmp_path, monkeypatch)
    assert (names["first"] == names["second"]).all()


def test_goals_with_the_gripper_are_reached_by_the_object_alone(tmp_path, monkeypatch):
    run_example("gripper_goals.py", tmp_path, monkeypatch)
    run_command(monkeypatch, "check", "gripper_goals:PushWithGripper-v0")
    env = make_env("gripper_goals:PushWithGripper-v0")
    first, _ = env.reset(seed=1)
    for _ in range(5):  # up, without touching the object
        last, reward, *_, info = env.step(np.array([0, 0, 1, 0], np.float32))
    assert last["achieved_goal"][2] > first["achieved_goal"][2] + 0.01
    assert np.allclose(last["achieved_goal"][3:], first["achieved_goal"][3:], atol=1e-3)
    assert (last["desired_goal"][:3] == last["desired_goal"][3:]).all()
    assert (reward, info["is_success"]) == (-1, 0)
    goals = np.concatenate([last["desired_goal"][:3] + 1, last["desired_goal"][3:]])
    assert env.get_wrapper_attr("compute_reward")(goals, last["desired_goal"], {}) == 0
    assert env.get_wrapper_attr("compute_reward")(last["achieved_goal"], goals, {}) == -1


def test_custom_critic_trains_and_resumes(tmp_path, monkeypatch):
    names = run_example("custom_critic.py", tmp_path, monkeypatch)
    monolithic = count_parameters(mrn.make_critic("monolithic", 25, 4, 3))
    assert count_parameters(names["critic"]) == pytest.approx(monolithic, rel=0.03)
    head = names["critic"].head
    x, y, z = torch.randn(3, 500, 176)
    assert (head(x, z) <= (head(x, y) + head(y, z)) * (1 + 1e-5)).all()
    loaded = mrn.load(tmp_path / "runs" / "climb")
    assert type(loaded.algorithm.critic.head) is type(head)
    run_command(monkeypatch, "eval", "runs/climb", "--episodes=2")
    run_command(monkeypatch, "resume", "runs/climb", "--epochs=2")
    assert len(metrics(tmp_path / "runs" / "climb")) == 2


def test_custom_algorithm_trains_and_resumes(tmp_path, monkeypatch):
    names = run_example("custom_algorithm.py", tmp_path, monkeypatch)
    algorithm = names["agent"].algorithm
    assert type(algorithm).__name__ == "Stopwatch"
    assert algorithm.settings.action_penalty == 0.5
    # The critic converges to the number of steps before the goal.
    batch = random_batch()._replace(steps_to_goal=torch.full((64,), 4.0))
    fitted = make_algorithm(type(algorithm), learning_rate=0.01)
    for update_step in range(1, 150):
        losses = fitted.update(batch, update_step, torch.Generator())
    assert losses[0] < 0.1
    assert -fitted.critic(batch.state, batch.action, batch.goal).mean().item() == pytest.approx(
        3, abs=0.2
    )
    run_command(monkeypatch, "eval", "runs/stopwatch", "--episodes=2")
    run_command(monkeypatch, "resume", "runs/stopwatch", "--epochs=2")
    assert len(metrics(tmp_path / "runs" / "stopwatch")) == 2
    mrn.load(tmp_path / "runs" / "stopwatch").learn(1)
    assert len(metrics(tmp_path / "runs" / "stopwatch")) == 3
    run_command(monkeypatch, "inspect", "runs/stopwatch", "--episodes=2")
    assert (tmp_path / "runs" / "stopwatch" / "inspect.png").exists()


def test_callbacks_log_every_cycle(tmp_path, monkeypatch, capsys):
    names = run_example("callbacks.py", tmp_path, monkeypatch)
    assert [row["cycle"] for row in names["log"].rows] == [1, 2, 3] * 2
    printed = capsys.readouterr().out
    assert "epoch 2: " in printed
    assert "3000 steps: critic loss " in printed
    assert names["TimeBudget"](0).on_cycle(None, {})
    assert not names["TimeBudget"](60).on_cycle(None, {})


def test_onnx_control_loop_runs_without_torch_and_matches_predict(tmp_path, monkeypatch):
    agent = tiny_run(tmp_path / "runs" / "reach", epochs=1)
    monkeypatch.chdir(tmp_path)
    run_command(monkeypatch, "export", "runs/reach", "policy.onnx")
    script = str(EXAMPLES / "onnx_control_loop.py")
    code = (
        "import runpy, sys; sys.modules['torch'] = sys.modules['mrn'] = None; "
        f"sys.argv = ['', 'policy.onnx']; runpy.run_path({script!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    env, goal = make_env("FetchReach-v4"), np.array([1.3, 0.8, 0.6])
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        action, _ = agent.predict({**observation, "desired_goal": goal})
        observation, *_ = env.step(action)
    end = [float(number) for number in done.stdout.split()[-3:]]
    assert end == pytest.approx(observation["achieved_goal"].tolist(), abs=1e-4)


def test_onnx_control_loop_exports_the_zoo_policy_and_reaches_the_goal(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "onnx_control_loop.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "policy.onnx").exists()
    end = [float(number) for number in done.stdout.split()[-3:]]
    assert end == pytest.approx([1.3, 0.8, 0.6], abs=0.05)


def test_reach_block_of_the_deploy_page(tmp_path, monkeypatch):
    names = run_blocks("deploy.md", tmp_path, monkeypatch)
    assert isinstance(names["result"], mrn.Reach)
    assert names["result"].reached


def test_sb3_example_with_shortened_training(tmp_path, monkeypatch):
    """Run everything except most of the training, which a slow test covers."""
    learn = OffPolicyAlgorithm.learn
    monkeypatch.setattr(
        OffPolicyAlgorithm,
        "learn",
        lambda self, **settings: learn(self, **settings | {"total_timesteps": 520}),
    )
    names = run_example("sb3_sac.py", tmp_path, monkeypatch)
    model = names["model"]
    assert (model.num_timesteps, model._n_updates) == (550, 50)
    assert [type(critic.head).__name__ for critic in model.critic.q_networks] == ["MRN", "MRN"]
    assert len(names["successes"]) == 10
    assert -50 <= names["reward"] < 0


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_included_files_and_sections_exist(page):
    for snippet in SNIPPET.finditer(page.read_text()):
        text = (DOCS.parent / snippet["file"]).read_text()
        if section := snippet["section"]:
            assert re.findall(rf"--8<-- \[(\w+):{section}\]", text) == ["start", "end"]


def test_every_example_is_included_in_a_page():
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    included = {snippet["file"] for snippet in SNIPPET.finditer(pages)}
    scripts = {f"examples/{file.name}" for file in EXAMPLES.glob("*.py")}
    assert scripts <= included
