"""Training loop: reproducible, unaffected by evaluation, in the order of the protocol."""

import json

import numpy as np
import pytest
import torch

import mrn
from mrn.algorithms import DDPG
from mrn.replay import ReplayBuffer
from mrn.runs.metrics import COLUMNS
from mrn.runs.policy_file import Selection
from mrn.runs.provenance import read_config
from mrn.training import loop, trainer
from tests.training.helpers import metrics, same_weights, tiny_run


def test_seed_determines_the_run(tmp_path):
    first, again, other = (
        tiny_run(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert same_weights(first, again)
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert not same_weights(first, other)
    assert metrics(tmp_path / "a") != metrics(tmp_path / "c")


def test_evaluation_does_not_affect_training(tmp_path):
    evaluated = tiny_run(tmp_path / "with")
    unevaluated = tiny_run(tmp_path / "without", eval_episodes=0)
    assert same_weights(evaluated, unevaluated)
    rows = metrics(tmp_path / "without")
    assert [row["success"] for row in rows] == ["", ""]
    ours, theirs = metrics(tmp_path / "with"), rows
    assert [row["critic_loss"] for row in ours] == [row["critic_loss"] for row in theirs]


def test_global_generator_is_neither_used_nor_changed(tmp_path):
    torch.manual_seed(0)
    first = tiny_run(tmp_path / "a")
    after = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(after, torch.rand(1))
    torch.manual_seed(123)
    assert same_weights(first, tiny_run(tmp_path / "b"))


def test_order_of_operations_in_an_epoch(tmp_path, monkeypatch):
    """A cycle: episodes, storage, gradient steps, then one target update."""
    events = []
    for owner, name in (
        (trainer, "collect_episodes"),
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
    cycle = ["collect_episodes", "add", "update", "update", "update", "end_cycle"]
    epoch = [*cycle, *cycle, "evaluate"]
    assert events == epoch * 2


def test_metrics_have_one_row_per_epoch(tmp_path):
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


def test_run_folder_has_all_files(tmp_path):
    agent = tiny_run(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    expected = {"config.json", "metrics.csv", "events", "latest.safetensors", "best.safetensors"}
    assert names == expected | {"checkpoints"}
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["config"]["algo_config"]["hidden_dim"] == 16
    assert about["task"]["env_id"] == "FetchReach-v4"
    assert about["versions"]["mujoco"] == "3.6.0"
    assert about["versions"]["torch"] == torch.__version__
    assert same_weights(agent, mrn.load(tmp_path / "run"))


def test_tensorboard_has_metrics_and_settings(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    tiny_run(tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "events"))
    events.Reload()
    logged = events.Scalars("train/critic_loss")
    assert [event.step for event in logged] == [100, 200, 300, 400]  # each cycle
    values = np.array([event.value for event in logged])
    expected = [float(row["critic_loss"]) for row in metrics(tmp_path / "run")]
    assert values.reshape(2, 2).mean(axis=1) == pytest.approx(expected, rel=1e-5)
    assert [event.step for event in events.Scalars("eval/success")] == [200, 400]
    tags = {"eval/success", "time/steps_per_second", "train/mean_q", "train/updates"}
    assert tags <= set(events.Tags()["scalars"])
    # Settings, for the HParams tab.
    started = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    settings = HParamsPluginData.FromString(started).session_start_info.hparams
    assert settings["hidden_dim"].number_value == 16
    assert settings["critic"].string_value == "mrn"


def test_best_weights_are_those_of_the_best_epoch(tmp_path, monkeypatch):
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
    assert best.selection == Selection(epoch=3, success=0.8, eval_episodes=3)
    assert latest.selection is None
    best.save(tmp_path / "copy.safetensors", small=True)
    assert mrn.load(tmp_path / "copy.safetensors").selection == best.selection


def test_nonempty_folder_is_not_overwritten(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "precious.txt").write_text("keep")
    with pytest.raises(mrn.UserError, match="already exists.*nothing was overwritten"):
        tiny_run(folder)
    assert [path.name for path in folder.iterdir()] == ["precious.txt"]


def test_run_that_failed_at_its_first_update_can_be_repeated(tmp_path, monkeypatch):
    def fail(*_):
        raise mrn.RunError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Trainer, "learn", fail)
        with pytest.raises(mrn.RunError, match="out of memory"):
            tiny_run(tmp_path, batch_size=128)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    tiny_run(tmp_path, epochs=1)  # with another batch size
    assert read_config(tmp_path).algo_config.batch_size == 64
    with pytest.raises(mrn.UserError, match="already contains a run"):
        tiny_run(tmp_path, epochs=1)


def test_config_of_another_program_is_not_overwritten(tmp_path):
    (tmp_path / "config.json").write_text('{"editor": "vi"}')
    with pytest.raises(mrn.UserError, match="not empty; nothing was overwritten"):
        tiny_run(tmp_path)
    assert (tmp_path / "config.json").read_text() == '{"editor": "vi"}'


SHIFTED = {"reward_shift": -1.0}  # the rewards of the paper's tasks are already -1 and 0


def test_invalid_settings_create_no_folder(tmp_path):
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
        ({"goal_selection_strategy": "past"}, "unknown goal_selection_strategy 'past'.*future"),
        ({"epochs": "many"}, "epochs must be of type"),
        ({"batchsize": 3}, "unknown setting 'batchsize'. Did you mean 'batch_size'"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": True}, "seed must be of type int"),
        ({"seed": np.float64(1)}, r"seed must be of type int, got 1\.0"),
    ],
)
def test_invalid_settings_are_rejected(settings, message):
    with pytest.raises(mrn.UserError, match=message):
        mrn.Config.of("FetchReach", **settings)


def test_numpy_numbers_are_accepted():
    config = mrn.Config.of(
        "FetchReach", seed=np.int64(3), exploration_noise=np.float32(0.5), epochs=np.int32(2)
    )
    assert (config.seed, config.algo_config.exploration_noise, config.epochs) == (3, 0.5, 2)
    assert json.loads(json.dumps(config.to_dict()))["seed"] == 3


def test_defaults_are_those_of_the_paper():
    config = mrn.Config.of("FetchPush")
    schedule, learning, replay = config.schedule, config.algo_config, config.replay
    assert (schedule.cycles, schedule.num_envs, schedule.gradient_steps) == (50, 20, 40)
    assert schedule.eval_episodes == 100
    assert (learning.batch_size, learning.learning_rate, learning.discount) == (1024, 1e-3, 0.98)
    assert (learning.tau, learning.exploration_noise, learning.random_action_prob) == (
        0.1,
        0.2,
        0.3,
    )
    assert (replay.buffer_size, replay.her_ratio) == (10**6, 0.8)
    assert replay.goal_selection_strategy == "future"


@pytest.mark.parametrize("engine", ["gymnasium", "envpool"])
def test_normalizer_counts_each_transition_once(tmp_path, engine):
    agent = tiny_run(tmp_path / "run", engine=engine, cycles=1, epochs=1)
    assert agent.normalizer.state.count.item() == 2 * 50
    assert agent.normalizer.goal.count.item() == 2 * 50
    # 80% of goals are achieved ones, 20% desired: both near the gripper, in meters.
    assert np.allclose(agent.normalizer.goal.mean.numpy(), [1.34, 0.75, 0.53], atol=0.15)


@pytest.mark.parametrize("name", ["Walk-v0", "EndsAtGoal-v0", "OneRowReward-v0"])
def test_custom_environment_can_be_trained(tmp_path, name):
    agent = tiny_run(tmp_path / "run", task=f"tests.envs.custom_envs:{name}", cycles=8, num_envs=4)
    rows = metrics(tmp_path / "run")
    steps = int(rows[-1]["env_steps"])
    assert steps == agent.normalizer.state.count.item()
    full = 2 * 8 * 4 * 8
    assert steps < full if name == "EndsAtGoal-v0" else steps == full


def test_warmup_episodes_have_uniform_actions(tmp_path, monkeypatch):
    """Whole cycles: 3 warmup episodes, two at a time, make the first two cycles random."""
    played = []
    whole = trainer.Trainer.collect

    def collect(self, envs):
        whole(self, envs)
        played.append((self.episodes.action[:, :-1].copy(), self.episodes_played))

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
    for actions, _ in one[2:]:  # actions of the untrained actor, which are small
        assert np.abs(actions).max() < 0.5
    assert not np.array_equal(one[0][0], one[1][0])
    assert all(np.array_equal(a, b) for (a, _), (b, _) in zip(one, other, strict=True))
    assert not np.array_equal(one[0][0], third[0][0])
