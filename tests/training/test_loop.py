"""Training: reproducible, undisturbed by evaluation, in the order of the protocol."""

import json

import numpy as np
import pytest
import torch

import mrn
from mrn.algorithms import DDPG
from mrn.replay import ReplayBuffer
from mrn.runs.metrics import COLUMNS
from mrn.training import loop, trainer
from tests.training.helpers import metrics, same_weights, tiny_run


def test_the_same_seed_gives_the_same_run_and_another_does_not(tmp_path):
    first, again, other = (
        tiny_run(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert same_weights(first, again)
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert not same_weights(first, other)
    assert metrics(tmp_path / "a") != metrics(tmp_path / "c")


def test_evaluation_does_not_disturb_training(tmp_path):
    with_it = tiny_run(tmp_path / "with")
    without = tiny_run(tmp_path / "without", eval_episodes=0)
    assert same_weights(with_it, without)
    rows = metrics(tmp_path / "without")
    assert [row["success"] for row in rows] == ["", ""]
    ours, theirs = metrics(tmp_path / "with"), rows
    assert [row["critic_loss"] for row in ours] == [row["critic_loss"] for row in theirs]


def test_the_global_generator_is_neither_used_nor_changed(tmp_path):
    torch.manual_seed(0)
    first = tiny_run(tmp_path / "a")
    after = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(after, torch.rand(1))
    torch.manual_seed(123)
    assert same_weights(first, tiny_run(tmp_path / "b"))


def test_the_order_of_the_protocol(tmp_path, monkeypatch):
    """A cycle: episodes, one update of the statistics, updates, ONE update of the targets."""
    events = []
    for owner, name in (
        (trainer, "play"),
        (ReplayBuffer, "add"),
        (DDPG, "update"),
        (DDPG, "end_cycle"),
        (loop, "evaluate"),
    ):
        original = getattr(owner, name)

        def spy(*args, _original=original, _name=name, **kwargs):
            events.append(_name)
            return _original(*args, **kwargs)

        monkeypatch.setattr(owner, name, spy)
    tiny_run(tmp_path / "run")
    cycle = ["play", "add", "update", "update", "update", "end_cycle"]
    epoch = [*cycle, *cycle, "evaluate"]
    assert events == epoch * 2


def test_metrics_have_a_row_per_epoch(tmp_path):
    tiny_run(tmp_path / "run")
    rows = metrics(tmp_path / "run", timings=True)
    assert list(rows[0]) == [*COLUMNS, *DDPG.METRICS]
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert [row["env_steps"] for row in rows] == ["200", "400"]  # 2 cycles x 2 episodes x 50
    assert [row["updates"] for row in rows] == ["6", "12"]
    for row in rows:
        assert 0 <= float(row["success"]) <= float(row["success_any"]) <= 1
        assert float(row["success"]) * 3 == pytest.approx(round(float(row["success"]) * 3))
        seconds = [float(row[f"{k}_seconds"]) for k in ("rollout", "update", "evaluation")]
        assert min(seconds) > 0
        assert float(row["steps_per_second"]) == pytest.approx(200 / sum(seconds[:2]), rel=0.02)
        assert float(row["mean_q"]) <= 0


def test_the_run_folder(tmp_path):
    agent = tiny_run(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    expected = {"config.json", "metrics.csv", "events", "latest.safetensors", "best.safetensors"}
    assert names == expected | {"checkpoints"}
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["config"]["algo_config"]["width"] == 16
    assert about["task"]["env_id"] == "FetchReach-v4"
    assert about["versions"]["mujoco"] == "3.6.0"
    assert about["versions"]["torch"] == torch.__version__
    assert same_weights(agent, mrn.load(tmp_path / "run"))


def test_tensorboard_has_the_metrics(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    tiny_run(tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "events"))
    events.Reload()
    logged = events.Scalars("algorithm/critic_loss")
    assert [event.step for event in logged] == [200, 400]
    expected = [float(row["critic_loss"]) for row in metrics(tmp_path / "run")]
    assert [event.value for event in logged] == pytest.approx(expected, rel=1e-6)
    groups = {"evaluation/success", "speed/steps_per_second", "algorithm/mean_q"}
    assert groups <= set(events.Tags()["scalars"])
    # The settings, for the tab that compares runs by them.
    started = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    settings = HParamsPluginData.FromString(started).session_start_info.hparams
    assert settings["width"].number_value == 16
    assert settings["critic"].string_value == "mrn"


def test_the_best_weights_are_those_of_the_best_epoch(tmp_path, monkeypatch):
    from mrn.training.evaluation import Evaluation

    success = iter([0.2, 0.8, 0.8, 0.5])
    monkeypatch.setattr(
        loop,
        "evaluate",
        lambda *_, **__: Evaluation(3, next(success), success_any=1.0, steps_to_success=1),
    )
    tiny_run(tmp_path / "run", epochs=4)
    upto_third = tiny_run(tmp_path / "short", epochs=3, eval_episodes=0)
    best, latest = (mrn.load(tmp_path / "run", weights) for weights in ("best", "latest"))
    assert same_weights(best, upto_third)
    assert not same_weights(best, latest)


def test_a_taken_folder_is_left_alone(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "precious.txt").write_text("keep")
    with pytest.raises(mrn.UserError, match="exists already.*nothing was overwritten"):
        tiny_run(folder)
    assert [path.name for path in folder.iterdir()] == ["precious.txt"]


SHIFTED = {"reward_shift": -1.0}  # the paper's tasks pay -1 and 0 already


def test_mistakes_leave_no_folder_behind(tmp_path):
    for settings in (
        {"critic": "mrm"},
        {"engine": "x"},
        {"device": "tpu"},
        {"buffer_size": 10},
        SHIFTED,
    ):
        with pytest.raises(mrn.UserError):
            tiny_run(tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"discount": 1.0}, "discount must be below 1, got 1.0"),
        ({"discount": float("nan")}, "discount must be a finite number"),
        ({"learning_rate": float("inf")}, "learning_rate must be a finite number"),
        ({"her_ratio": 1.5}, "her_ratio must be at most 1"),
        ({"goal_selection_strategy": "past"}, "unknown relabel 'past'.*future"),
        ({"epochs": "many"}, "epochs must be of type"),
        ({"batchsize": 3}, "unknown setting 'batchsize'. Did you mean 'batch_size'"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": True}, "seed must be of type int"),
        ({"seed": np.float64(1)}, r"seed must be of type int, got 1\.0"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(mrn.UserError, match=message):
        mrn.Config.of("FetchReach", **settings)


def test_numbers_of_numpy_are_numbers():
    config = mrn.Config.of(
        "FetchReach", seed=np.int64(3), exploration_noise=np.float32(0.5), epochs=np.int32(2)
    )
    assert (config.seed, config.algo_config.noise, config.epochs) == (3, 0.5, 2)
    assert json.loads(json.dumps(config.to_dict()))["seed"] == 3


def test_defaults_are_the_papers():
    config = mrn.Config.of("FetchPush")
    schedule, learning, memory = config.schedule, config.algo_config, config.replay
    assert (schedule.cycles, schedule.episodes, schedule.updates) == (50, 20, 40)
    assert schedule.eval_episodes == 100
    assert (learning.batch_size, learning.learning_rate, learning.discount) == (1024, 1e-3, 0.98)
    assert (learning.tau, learning.noise, learning.random_action_prob) == (0.9, 0.2, 0.3)
    assert (memory.capacity, memory.relabel, memory.her_ratio) == (10**6, "future", 0.8)


@pytest.mark.parametrize("engine", ["gymnasium", "envpool"])
def test_statistics_come_from_each_transition_once(tmp_path, engine):
    agent = tiny_run(tmp_path / "run", engine=engine, cycles=1, epochs=1)
    assert agent.normalizer.state.count.item() == 2 * 50
    assert agent.normalizer.goal.count.item() == 2 * 50
    # 80 % of goals are achieved ones, 20 % desired: both near the gripper, in metres.
    assert np.allclose(agent.normalizer.goal.mean.numpy(), [1.34, 0.75, 0.53], atol=0.15)


@pytest.mark.parametrize("name", ["Walk-v0", "EndsAtGoal-v0", "OneRowReward-v0"])
def test_an_environment_of_ones_own(tmp_path, name):
    agent = tiny_run(tmp_path / "run", task=f"tests.envs.custom_envs:{name}", cycles=8, num_envs=4)
    rows = metrics(tmp_path / "run")
    steps = int(rows[-1]["env_steps"])
    assert steps == agent.normalizer.state.count.item()
    full = 2 * 8 * 4 * 8
    assert steps < full if name == "EndsAtGoal-v0" else steps == full


def test_the_first_episodes_have_uniform_actions_and_then_the_policy_acts(tmp_path, monkeypatch):
    """Whole cycles: of 3 random episodes, two at a time, the first two cycles are random."""
    played = []
    whole = trainer.Trainer.collect

    def collect(self, envs):
        whole(self, envs)
        played.append((self.episodes.action[:, :-1].copy(), self.played))

    monkeypatch.setattr(trainer.Trainer, "collect", collect)
    silent = {"exploration_noise": 0.0, "random_action_prob": 0.0, "learning_rate": 0.0}
    for name, seed in (("one", 1), ("other", 1), ("third", 2)):
        tiny_run(tmp_path / name, warmup_episodes=3, seed=seed, **silent)
    one, other, third = played[:4], played[4:8], played[8:]
    assert [before for _, before in one] == [0, 2, 4, 6]
    for actions, _ in one[:2]:  # (2, 50, 4), uniform in [-1, 1]
        assert abs(actions.mean()) < 0.15  # 5 standard deviations of the mean are 0.14
        assert 0.5 < actions.std() < 0.65  # 1 / sqrt(3) = 0.577
        assert actions.min() < -0.9 < 0.9 < actions.max()
    for actions, _ in one[2:]:  # the untrained actor's own, which are small
        assert np.abs(actions).max() < 0.5
    assert not np.array_equal(one[0][0], one[1][0])
    assert all(np.array_equal(a, b) for (a, _), (b, _) in zip(one, other, strict=True))
    assert not np.array_equal(one[0][0], third[0][0])
