"""What every algorithm must do: resume bit for bit, be loaded, played with and inspected."""

import math

import numpy as np
import pytest
import torch

import mrn
from mrn import cli
from mrn.algorithms import ALGORITHMS
from mrn.studies.inspection import measure
from tests.algorithms.helpers import generator, make_algorithm, random_batch
from tests.reliability.helpers import KILLED, Zygote, same_run
from tests.training.helpers import TINY, metrics, same_weights, tiny_run

WITH_CRITIC = [name for name, agent in ALGORITHMS.items() if agent.uses_critic]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_update_depends_on_weights_batch_number_and_generator_alone(name):
    taken = []
    for _ in range(2):
        algorithm, noise = make_algorithm(ALGORITHMS[name], batch_size=64), generator()
        rows = [algorithm.update(random_batch(seed=n), n, noise) for n in range(1, 6)]
        algorithm.end_cycle()
        taken.append([*rows, *(value.clone() for value in algorithm.state_dict().values())])
    assert all(torch.equal(*pair) for pair in zip(*taken, strict=True))
    assert taken[0][0].shape == (len(ALGORITHMS[name].METRICS),)
    assert not taken[0][0].requires_grad


@pytest.mark.parametrize("name", ALGORITHMS)
def test_all_that_learns_has_an_optimiser(name):
    algorithm = make_algorithm(ALGORITHMS[name], batch_size=64)
    stepped = {id(w) for optimizer in algorithm.optimizers.values() for w in optimizer.weights}
    assert stepped == {id(w) for w in algorithm.parameters() if w.requires_grad}


# An odd number of updates until a run is interrupted: whose turn it is then must not be forgotten.
ODD = {"cycles": 1, "gradient_steps": 3, "num_envs": 1, "eval_episodes": 1, "epochs": 2}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_interrupted_run_ends_as_one_that_was_not(name, tmp_path):
    tiny_run(tmp_path / "whole", algo=name, **ODD)
    tiny_run(tmp_path / "run", algo=name, **ODD | {"epochs": 1})
    agent = tiny_run(tmp_path / "run", algo=name, resume=True, **ODD)
    assert same_run(tmp_path / "whole", tmp_path / "run")
    for row in metrics(tmp_path / "run"):
        assert all(math.isfinite(float(row[column])) for column in agent.algorithm.METRICS)


@pytest.fixture(scope="module")
def zygote():
    with Zygote() as process:
        yield process


@pytest.mark.parametrize("name", ["td3", "sac", "wgcsl"])
def test_delays_temperature_and_recent_advantages_survive_a_kill(name, tmp_path, zygote):
    settings = TINY | ODD | {"algo": name}
    assert zygote.run(tmp_path / "whole", **settings) == 0
    assert zygote.run(tmp_path / "killed", ("update", 5, "before"), **settings) == KILLED
    assert zygote.run(tmp_path / "killed", **settings) == 0
    assert same_run(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_trains_on_one_engine_plays_on_the_other_and_can_be_inspected(name, tmp_path):
    critic = "iqe" if ALGORITHMS[name].uses_critic else "none"
    settings = {"algo": name, "critic": critic, "engine": "gymnasium"}
    agent = tiny_run(tmp_path / "run", **ODD | {"epochs": 1} | settings)
    loaded = mrn.load(tmp_path / "run")
    assert same_weights(agent, loaded)
    assert loaded.evaluate(2, engine="envpool").engine == "envpool"
    observation = {"observation": np.ones(10), "desired_goal": np.zeros(3)}
    actions = [each.predict(observation)[0] for each in (agent, loaded)]
    assert np.array_equal(*actions)
    noisy = agent.predict(observation, deterministic=False)[0]
    assert not np.array_equal(noisy, actions[0])
    assert np.abs(noisy).max() <= 1
    if ALGORITHMS[name].uses_critic:
        found = measure.inspect(loaded, measure.watch(loaded, 2, seed=0))
        assert found.embedding_triangle.share == 0
        assert loaded.algorithm.discount == 0.98
    else:
        with pytest.raises(mrn.UserError, match="learns without a critic"):
            measure.watch(loaded, 2, seed=0)


def test_a_critic_that_an_agent_cannot_use_is_refused_with_what_to_do():
    assert mrn.Config("FetchReach", algo="gcsl").folder.parts[1] == "gcsl-none"
    assert mrn.Config.of("FetchReach", algo="gcsl", critic="none").critic == "none"
    assert mrn.Config.of("FetchReach", algo="sac").critic == "mrn"
    with pytest.raises(mrn.UserError, match="'gcsl' learns without a critic: leave 'bvn' out, or"):
        mrn.Config.of("FetchReach", algo="gcsl", critic="bvn")
    for name in WITH_CRITIC:
        with pytest.raises(mrn.UserError, match=f"'{name}' needs a critic: .* one of mrn, .* iqe"):
            mrn.Config.of("FetchReach", algo=name, critic="none")
    with pytest.raises(mrn.UserError, match="critic must be of type str, got 3"):
        mrn.Config("FetchReach", critic=3)


def test_settings_of_a_file_serve_an_agent_with_or_without_a_critic(tmp_path, monkeypatch):
    def train(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "train", *map(str, words)])
        cli.main()
        return mrn.load(words[-1]).config

    monkeypatch.chdir(tmp_path)
    tiny_run(tmp_path / "ddpg", critic="bvn", **ODD | {"epochs": 1})
    file = tmp_path / "ddpg" / "config.json"
    assert train("--config", file, "--algo=td3", "--run-dir", "td3").critic == "bvn"
    config = train("--config", file, "--algo=gcsl", "--run-dir", "gcsl")
    assert (config.critic, config.algo_config.width) == ("none", 256)
    file = tmp_path / "gcsl" / "config.json"
    assert train("--config", file, "--algo=ddpg", "--run-dir", "again").critic == "mrn"


@pytest.mark.parametrize(
    ("algo", "setting", "message"),
    [
        (
            "ddpg",
            "target_policy_noise",
            "is a setting of td3, not of ddpg: choose such an algo, or leave",
        ),
        ("sac", "noise", "is a setting of ddpg, td3, gcsl, wgcsl, not of sac"),
        ("gcsl", "discount", "is a setting of ddpg, td3, sac, wgcsl, not of gcsl"),
        ("td3", "temperature", "is a setting of sac, not of td3"),
        ("td3", "tempo", "unknown setting 'tempo'"),
    ],
)
def test_settings_of_another_agent_are_refused_with_what_to_do(algo, setting, message):
    with pytest.raises(mrn.UserError, match=message):
        mrn.Config.of("FetchReach", algo=algo, **{setting: 0.5})


def test_settings_of_the_same_meaning_have_the_same_name_and_default():
    """So that a recipe, and who compares agents, can set them for all."""
    defaults: dict[str, set] = {}
    for agent in ALGORITHMS.values():
        for name, value in vars(agent.Settings()).items():
            defaults.setdefault(name, set()).add(value)
    differing = {name for name, values in defaults.items() if len(values) > 1}
    assert differing == {"tau", "target_update_interval", "policy_delay", "action_penalty"}
