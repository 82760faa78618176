"""The worked examples of the documentation, run as a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

import mrn
from benchmarks.starts import table as starts_table
from mrn import cli
from mrn.algorithms import ALGORITHMS
from mrn.critics.base import count_parameters
from mrn.envs.custom import make_env
from mrn.sweeps.suites import find_suite
from mrn.utils.tables import markdown_table, with_section
from tests.algorithms.helpers import make_algorithm, random_batch
from tests.training.helpers import metrics, tiny_run

DOCS = Path(__file__).parents[1] / "docs"


def run_examples(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Execute all Python blocks of a page, in order, in a folder of their own.

    A block that begins with the name of a file is that file.
    """
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    assert blocks
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", [*sys.path])
    # Examples take all cores. Here other tests have the others, and threads would spend most of
    # their time waiting for each other.
    monkeypatch.setattr("mrn.training.loop.default_threads", lambda: 1)
    names: dict = {"__name__": "example"}
    for block in blocks:
        if file := re.match(r"# (\w+\.py)\n", block):
            (folder / file[1]).write_text(block)
            monkeypatch.delitem(sys.modules, file[1].removesuffix(".py"), raising=False)
        else:
            exec(block, names)
    return names


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["mrn", *arguments])
    cli.main()


def test_your_own_environment_learns(tmp_path, monkeypatch):
    names = run_examples("your-own-environment.md", tmp_path, monkeypatch)
    assert names["algo"].spec.action_high == (0.2, 0.2)
    success = [float(row["success"]) for row in metrics(tmp_path / "runs" / "pond")]
    assert max(success) >= 0.8
    command(monkeypatch, "eval", "runs/pond", "--episodes=4")
    command(monkeypatch, "resume", "runs/pond")


def test_a_suite_of_ones_own_and_the_figures_of_results(tmp_path, monkeypatch, capsys):
    text = re.search(r"```toml\n(.*?)```", (DOCS / "reproduce.md").read_text(), re.S)[1]
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("my_package.envs:MyReach-v0", "FetchReach"))
    configs = find_suite(str(file)).configs()
    assert len(configs) == 2 * 3 * 4 * 3 == 72
    name = "learning_rate=0.001+batch_size=256"
    chosen = {"action_penalty": 0.5, "learning_rate": 0.001, "batch_size": 256, "variant": name}
    assert configs[0] == mrn.Config.of("FetchPush", seed=100, epochs=20, **chosen)
    assert configs[12] == mrn.Config.of("FetchReach", seed=100, epochs=5, **chosen)
    assert configs[2].method == "ddpg-mrn+learning_rate=0.002+batch_size=256"
    run_examples("reproduce.md", DOCS.parent, monkeypatch)
    shown = capsys.readouterr().out
    assert "| FetchPush | mrn | 1 |" in shown
    assert re.search(r"^17 \{1: True, 2: (True|False), ", shown, re.M)


def test_your_own_agent(tmp_path, monkeypatch, capsys):
    names = run_examples("agents.md", tmp_path, monkeypatch)
    algorithm = names["algo"].algorithm
    assert type(algorithm).__name__ == "Stopwatch"
    assert algorithm.settings.action_penalty == 0.5
    # A critic that counts the steps to a goal learns what it is told.
    batch = random_batch()._replace(steps=torch.full((64,), 4.0))
    own = make_algorithm(type(algorithm), learning_rate=0.01)
    for number in range(1, 150):
        losses = own.update(batch, number, torch.Generator())
    assert losses[0] < 0.1
    assert -own.critic(batch.state, batch.action, batch.goal).mean().item() == pytest.approx(
        3, abs=0.2
    )
    command(monkeypatch, "eval", "runs/stopwatch", "--episodes=2")
    command(monkeypatch, "resume", "runs/stopwatch", "--epochs=2")
    assert len(metrics(tmp_path / "runs" / "stopwatch")) == 2
    command(monkeypatch, "inspect", "runs/stopwatch", "--episodes=2")
    assert (tmp_path / "runs" / "stopwatch" / "inspect.png").exists()


def test_the_page_of_agents_describes_each_and_each_of_its_figures_is_true():
    page = (DOCS / "agents.md").read_text()
    for name, agent in ALGORITHMS.items():
        section = page.partition(f", `{name}`\n")[2].partition("\n## ")[0]
        assert section, name
        for setting, value in re.findall(r"`(\w+)` = (-?[\d.]+)", section):
            assert getattr(agent.Settings(), setting) == float(value), setting


def test_your_own_critic(tmp_path, monkeypatch):
    names = run_examples("your-own-critic.md", tmp_path, monkeypatch)
    monolithic = count_parameters(mrn.make_critic("monolithic", 25, 4, 3))
    assert count_parameters(names["critic"]) == pytest.approx(monolithic, rel=0.03)
    head = names["critic"].head
    x, y, z = torch.randn(3, 500, 176)
    assert (head(x, z) <= (head(x, y) + head(y, z)) * (1 + 1e-5)).all()
    loaded = mrn.load(tmp_path / "runs" / "climb")
    assert type(loaded.algorithm.critic.head) is type(head)
    command(monkeypatch, "eval", "runs/climb", "--episodes=2")
    command(monkeypatch, "resume", "runs/climb", "--epochs=2")
    assert len(metrics(tmp_path / "runs" / "climb")) == 2


def test_a_policy_is_used_where_there_is_no_torch(tmp_path, monkeypatch):
    tiny_run(tmp_path / "runs" / "reach", epochs=1)
    names = run_examples("deploy.md", tmp_path, monkeypatch)
    assert isinstance(names["found"], mrn.Reach)
    command(monkeypatch, "export", "runs/reach", "policy.onnx")
    code = "import runpy, sys; sys.modules['torch'] = None; runpy.run_path('control.py')"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    env, goal = make_env("FetchReach-v4"), np.array([1.3, 0.8, 0.6])
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        action, _ = names["algo"].predict({**observation, "desired_goal": goal})
        observation, *_ = env.step(action)
    end = [float(number) for number in done.stdout.split()[-3:]]
    assert end == pytest.approx(observation["achieved_goal"].tolist(), abs=1e-4)


def test_stable_baselines3_with_our_critics_and_our_policies(tmp_path, monkeypatch):
    """All of the page but for most of its training, for which there is a slow test."""
    tiny_run(tmp_path / "runs" / "reach", epochs=1)
    learn = OffPolicyAlgorithm.learn
    monkeypatch.setattr(
        OffPolicyAlgorithm,
        "learn",
        lambda self, **settings: learn(self, **settings | {"total_timesteps": 520}),
    )
    names = run_examples("sb3.md", tmp_path, monkeypatch)
    model = names["model"]
    assert (model.num_timesteps, model._n_updates) == (550, 50)
    assert [type(critic.head).__name__ for critic in model.critic.q_networks] == ["MRN", "MRN"]
    assert len(names["reached"]) == 10
    assert -50 <= names["reward"] < 0


def test_the_page_of_differences_says_how_critics_begin():
    page = (DOCS / "differences.md").read_text()
    assert with_section(page, "starts", markdown_table(starts_table())) == page
