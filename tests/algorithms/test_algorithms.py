"""Requirements on every algorithm: resume bit-identically, load, evaluate, inspect."""

import math

import numpy as np
import pytest
import torch

import mrn
from mrn import cli
from mrn.algorithms import ALGORITHMS
from mrn.studies.inspection import measure
from tests.algorithms.helpers import generator, make_algorithm, random_batch
from tests.reliability.helpers import same_run
from tests.reliability.kills import KILLED, KillAt, train
from tests.training.helpers import TINY, metrics, same_weights, tiny_run

WITH_CRITIC = [name for name, algorithm in ALGORITHMS.items() if algorithm.uses_critic]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_update_depends_only_on_weights_batch_step_and_generator(name):
    results = []
    for _ in range(2):
        algorithm, noise = make_algorithm(ALGORITHMS[name], batch_size=64), generator()
        rows = [algorithm.update(random_batch(seed=n), n, noise) for n in range(1, 6)]
        algorithm.end_cycle()
        results.append([*rows, *(value.clone() for value in algorithm.state_dict().values())])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
    assert results[0][0].shape == (len(ALGORITHMS[name].METRICS),)
    assert not results[0][0].requires_grad


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_trainable_weight_has_an_optimizer(name):
    algorithm = make_algorithm(ALGORITHMS[name], batch_size=64)
    stepped = {id(w) for optimizer in algorithm.optimizers.values() for w in optimizer.weights}
    assert stepped == {id(w) for w in algorithm.parameters() if w.requires_grad}


# An odd number of updates before the interruption: delayed updates must resume in phase.
ODD = {"cycles": 1, "gradient_steps": 3, "num_envs": 1, "eval_episodes": 1, "epochs": 2}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_resumed_run_equals_an_uninterrupted_one(name, tmp_path):
    tiny_run(tmp_path / "whole", algo=name, **ODD)
    tiny_run(tmp_path / "run", algo=name, **ODD | {"epochs": 1})
    agent = tiny_run(tmp_path / "run", algo=name, resume=True, **ODD)
    assert same_run(tmp_path / "whole", tmp_path / "run")
    for row in metrics(tmp_path / "run"):
        assert all(math.isfinite(float(row[column])) for column in agent.algorithm.METRICS)


@pytest.mark.parametrize("name", ["td3", "sac", "wgcsl", "mher", "cmd", "qrl"])
def test_resume_after_kill_is_bit_identical(name, tmp_path):
    settings = TINY | ODD | {"algo": name}
    assert train(tmp_path / "whole", **settings) == 0
    assert train(tmp_path / "killed", KillAt("update", 5), **settings) == KILLED
    assert train(tmp_path / "killed", **settings) == 0
    assert same_run(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_train_on_one_engine_evaluate_on_another_and_inspect(name, tmp_path):
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
        found = measure.inspect(loaded, measure.collect_samples(loaded, 2, seed=0))
        assert found.embedding_triangle.share == 0
        assert loaded.algorithm.discount == (1 if name == "qrl" else 0.98)  # QRL counts steps
    else:
        with pytest.raises(mrn.UserError, match="learns without a critic"):
            measure.collect_samples(loaded, 2, seed=0)


def test_unusable_critic_raises_with_a_fix():
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


def test_config_file_can_be_reused_with_and_without_a_critic(tmp_path, monkeypatch):
    def train(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "train", *map(str, words)])
        cli.main()
        return mrn.load(words[-1]).config

    monkeypatch.chdir(tmp_path)
    tiny_run(tmp_path / "ddpg", critic="bvn", **ODD | {"epochs": 1})
    file = tmp_path / "ddpg" / "config.json"
    assert train("--config", file, "--algo=td3", "--run-dir", "td3").critic == "bvn"
    config = train("--config", file, "--algo=gcsl", "--run-dir", "gcsl")
    assert (config.critic, config.algo_config.hidden_dim) == ("none", 256)
    file = tmp_path / "gcsl" / "config.json"
    assert train("--config", file, "--algo=ddpg", "--run-dir", "again").critic == "mrn"


@pytest.mark.parametrize(
    ("algo", "setting", "message"),
    [
        (
            "ddpg",
            "target_policy_noise",
            "is a setting of td3, not of ddpg: choose one of these algorithms, or remove",
        ),
        ("sac", "exploration_noise", "is a setting of ddpg, td3, gcsl, wgcsl, mher, not of sac"),
        ("gcsl", "discount", "is a setting of ddpg, td3, sac, wgcsl, mher, .*mqe, not of gcsl"),
        ("td3", "ent_coef", "is a setting of sac, crl, cmd, .*, not of td3"),
        ("td3", "tempo", "unknown setting 'tempo'"),
    ],
)
def test_setting_of_another_algorithm_raises_with_a_fix(algo, setting, message):
    with pytest.raises(mrn.UserError, match=message):
        mrn.Config.of("FetchReach", algo=algo, **{setting: 0.5})


def test_shared_settings_have_the_same_defaults():
    """Recipes and comparisons set them for all algorithms at once."""
    defaults: dict[str, set] = {}
    for algorithm in ALGORITHMS.values():
        for name, value in vars(algorithm.Settings()).items():
            defaults.setdefault(name, set()).add(value)
    differing = {name for name, values in defaults.items() if len(values) > 1}
    targets = {"tau", "target_update_interval", "policy_delay", "action_penalty"}
    published = {"learning_rate", "batch_size", "logsumexp_coef", "linex_limit"}  # the authors'
    assert differing == targets | published
