"""Custom algorithms: one without a critic trains, saves and resumes."""

import json
import re
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, ClassVar

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import mrn
from mrn import cli
from mrn.algorithms import ALGORITHMS, Algorithm, AlgorithmSettings
from mrn.algorithms.adam import Adam
from mrn.algorithms.exploration import NoiseSettings, add_noise
from mrn.algorithms.networks import Actor
from mrn.studies.inspection import measure
from mrn.utils.validation import Bounds, NonNegativeFloat
from tests.reliability.helpers import same_run
from tests.training.helpers import metrics, same_weights, tiny_run


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("imitation_loss", "norm"), "must return one value for each of .*'norm'.*got shape .1,"),
        (("loss"), "METRICS of algorithm 'gcsl' must be a tuple of unique names .* got 'loss'"),
        (("success",), "unique names other than epoch, .*success.*got .'success',"),
        (("loss", "loss"), "unique names"),
    ],
)
def test_invalid_metrics_raise(names, message, tmp_path, monkeypatch):
    monkeypatch.setattr(ALGORITHMS["gcsl"], "METRICS", names)
    with pytest.raises(mrn.UserError, match=message):
        tiny_run(tmp_path / "run", algo="gcsl", epochs=1)


@dataclass(frozen=True)
class ClonerSettings(NoiseSettings, AlgorithmSettings):
    """Hyperparameters of `Cloner`."""

    jitter: NonNegativeFloat = 0.01
    """Standard deviation of the noise on imitated actions."""


class Cloner(Algorithm):
    """Behavior cloning of the replay buffer: no critic, two optimizers, random updates."""

    Settings: ClassVar[type[AlgorithmSettings]] = ClonerSettings
    METRICS = ("imitation_loss",)
    uses_critic = False

    def __init__(self, dims, make_critic, settings):
        super().__init__(dims, make_critic, settings)
        self.settings = settings
        self.actor = Actor(dims, settings.hidden_dim)
        first, *rest = self.actor.parameters()
        self._optimizers = {"first": Adam([first], 1e-2), "rest": Adam(rest, 1e-3)}
        self.register_buffer("cycles", torch.zeros(()))

    @property
    def optimizers(self):
        return self._optimizers

    def update(self, batch, update_step, generator: torch.Generator) -> Tensor:
        noise = torch.randn(batch.action.shape, generator=generator)
        target = batch.action + self.settings.jitter * noise
        loss = F.mse_loss(self.actor(batch.state, batch.goal), target)
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers.values():
            optimizer.step()
        return loss.detach().unsqueeze(0)

    def end_cycle(self):
        self.cycles += 1

    def explorer(self, steps, num_envs, generator):
        return add_noise(self.actor, self.settings, steps, num_envs, generator)


@dataclass(frozen=True)
class LayeredSettings(ClonerSettings):
    """Hyperparameters with several values each."""

    layers: tuple[Annotated[int, Bounds(ge=1)], ...] = (64, 64)
    """Widths of the layers."""
    weights: tuple[float, ...] | None = None
    """Weights of the layers."""
    names: tuple[str, ...] = ()
    """Names of the layers."""


class Layered(Cloner):
    """`Cloner` with these settings."""

    Settings = LayeredSettings


@pytest.fixture
def cloner(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "cloner", Cloner)


def test_algorithm_without_a_critic_trains_and_loads(cloner, tmp_path):
    agent = tiny_run(tmp_path / "run", algo="cloner", jitter=0.5)
    rows = metrics(tmp_path / "run")
    assert [float(row["imitation_loss"]) > 0 for row in rows] == [True, True]
    assert "critic_loss" not in rows[0]
    assert agent.algorithm.cycles == 4
    loaded = mrn.load(tmp_path / "run")
    assert same_weights(agent, loaded)
    assert loaded.config.algo_config == ClonerSettings(batch_size=64, hidden_dim=16, jitter=0.5)
    assert mrn.Config.of("FetchReach", algo="cloner").folder.parts[1] == "cloner-none"


def test_resume_restores_optimizers_and_generators(cloner, tmp_path):
    tiny_run(tmp_path / "whole", algo="cloner", epochs=3)
    tiny_run(tmp_path / "run", algo="cloner", epochs=1)
    tiny_run(tmp_path / "run", algo="cloner", epochs=3, resume=True)
    assert same_run(tmp_path / "whole", tmp_path / "run")


def test_inspection_without_a_critic_raises(cloner, tmp_path):
    agent = tiny_run(tmp_path / "run", algo="cloner", epochs=1)
    with pytest.raises(mrn.UserError, match="cloner learns without a critic"):
        measure.collect_samples(agent, 2, seed=0)


def test_setting_of_another_algorithm_raises_with_the_list(cloner):
    with pytest.raises(mrn.UserError, match="a setting of ddpg, td3, sac, mher, not of cloner"):
        mrn.Config.of("FetchReach", algo="cloner", action_penalty=0.5)
    with pytest.raises(mrn.UserError, match="jitter is a setting of cloner, not of ddpg"):
        mrn.Config.of("FetchReach", jitter=0.5)
    with pytest.raises(mrn.UserError, match="has settings of type ClonerSettings"):
        mrn.Config("FetchReach", algo="cloner", algo_config=mrn.Config("FetchReach").algo_config)


@pytest.mark.parametrize(
    "settings",
    [
        {"layers": (8, 16, 8)},
        {"layers": ()},
        {"weights": (-0.5, 1e-5), "names": ("a", "b c"), "jitter": 0.5},
        {"names": ("x",), "layers": (7,)},
    ],
)
def test_settings_with_several_values(settings, monkeypatch):
    """They work on the command line, in config.json and in suites, as lists."""
    monkeypatch.setitem(ALGORITHMS, "layered", Layered)
    config = mrn.Config.of("FetchReach", algo="layered", **settings)
    assert {name: getattr(config.algo_config, name) for name in settings} == settings
    parsed = []
    monkeypatch.setattr(cli.training, "_run", lambda config, *_: parsed.append(config))
    monkeypatch.setattr("sys.argv", ["mrn", "train", *config.arguments()])
    cli.main()
    assert parsed == [config]
    assert mrn.Config.from_json(json.loads(json.dumps(config.to_dict())), "config.json") == config
    lists = json.loads(json.dumps(settings))
    assert mrn.Config.of("FetchReach", algo="layered", **lists) == config


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([8, 0], "layers must be at least 1, got 0"),
        ([8, 1.5], "layers must be of type int, got 1.5"),
        (8, "layers must be a list, got 8"),
    ],
)
def test_each_value_of_a_list_is_checked(layers, message, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "layered", Layered)
    with pytest.raises(mrn.UserError, match=message):
        mrn.Config.of("FetchReach", algo="layered", layers=layers)


@pytest.mark.parametrize("kind", [list[int], set[str], tuple[int, str], bytes])
def test_setting_of_an_unsupported_type_raises(kind, monkeypatch):
    own = make_dataclass(
        "Own",
        [("layers", kind, field(default_factory=kind))],
        bases=(AlgorithmSettings,),
        frozen=True,
    )
    monkeypatch.setattr(Layered, "Settings", own)
    monkeypatch.setitem(ALGORITHMS, "layered", Layered)
    declared = re.escape(f"layers has the unsupported type {kind}")
    with pytest.raises(mrn.UserError, match=rf"{declared}.*such as tuple\[int, \.\.\.\]"):
        mrn.Config.of("FetchReach", algo="layered")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_optimizers_follow_the_dtype_of_the_weights_and_count_exactly(dtype):
    """Above 256, bfloat16 does not represent every integer."""
    algorithm = Cloner(mrn.critics.Dims(3, 2, 1), None, ClonerSettings(hidden_dim=4)).to(dtype)
    for _ in range(300):
        for weight in algorithm.actor.parameters():
            weight.grad = torch.ones_like(weight)
        for optimizer in algorithm.optimizers.values():
            optimizer.step()
    for optimizer in algorithm.optimizers.values():
        assert {value.dtype for value in (*optimizer.mean, *optimizer.square)} == {dtype}
        assert {int(steps) for steps in optimizer.steps} == {300}


def test_config_without_recent_fields_still_loads():
    """Fields that older files lack get their defaults."""
    old = {
        "task": "FetchPush", "critic": "mrn", "algo": "ddpg", "seed": 100, "epochs": 8,
        "engine": "auto", "async_envs": False, "env_timeout": 60.0, "reward_shift": 0.0,
        "device": "auto", "checkpoint_every": 1, "threads": 1,
        "schedule": {"cycles": 50, "num_envs": 20, "gradient_steps": 40, "eval_episodes": 100},
        "algo_config": {
            "batch_size": 512, "learning_rate": 0.001, "discount": 0.98, "tau": 0.1,
            "action_penalty": 1.0, "exploration_noise": 0.2, "random_action_prob": 0.3,
            "hidden_dim": 256,
        },
        "replay": {"buffer_size": 1000000, "goal_selection_strategy": "future", "her_ratio": 0.8},
    }  # fmt: skip
    config = mrn.Config.from_json(old, "config.json")
    assert config == mrn.Config.of("FetchPush", epochs=8, threads=1, batch_size=512)
    for algo, message in (("dpg", "unknown algorithm 'dpg'"), (3, "algo must be of type str")):
        with pytest.raises(mrn.UserError, match=f"^config.json: {message}"):
            mrn.Config.from_json(old | {"algo": algo}, "config.json")
