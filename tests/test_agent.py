"""The agent's public interface: predict, evaluate, save, load."""

import json
import sys

import numpy as np
import pytest
import safetensors.torch
import torch

import mrn
from mrn.envs import TASKS, make_envs
from mrn.envs.custom import make_env
from mrn.training.evaluation import evaluate_agent
from tests.training.helpers import metrics, same_weights, tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return folder, tiny_run(folder)


def test_predict_follows_the_stable_baselines_convention(run):
    _, agent = run
    env = make_env("FetchReach-v4")
    observation, _ = env.reset(seed=0)
    action, state = agent.predict(observation, deterministic=True)
    assert state is None
    assert env.action_space.contains(action)
    many = {k: np.stack([v] * 3) for k, v in observation.items()}
    batch, _ = agent.predict(many, state=None, episode_start=np.ones(3))
    assert batch.shape == (3, 4)
    assert np.allclose(batch, action)
    assert np.array_equal(action, agent.predict(observation)[0])
    noisy = [agent.predict(observation, deterministic=False)[0] for _ in range(8)]
    assert len({tuple(a) for a in noisy}) == 8


def test_predict_applies_the_actor_to_normalized_inputs(run):
    _, agent = run
    observation = {"observation": np.arange(10.0), "desired_goal": np.array([1.3, 0.7, 0.5])}
    norm = agent.normalizer
    state = (observation["observation"] - norm.state.mean.numpy()) * norm.state.scale.numpy()
    goal = (observation["desired_goal"] - norm.goal.mean.numpy()) * norm.goal.scale.numpy()
    inputs = torch.tensor(np.concatenate([state, goal]).clip(-5, 5), dtype=torch.float32)
    expected = torch.tanh(agent.algorithm.actor.net(inputs)).detach().numpy()
    assert np.allclose(agent.predict(observation)[0], expected, atol=1e-5)


def test_actions_are_scaled_to_the_bounds_of_the_environment(tmp_path):
    agent = tiny_run(tmp_path / "run", task="tests.envs.custom_envs:Walk-v0", epochs=1)
    with torch.no_grad():
        agent.algorithm.actor.net[-1].bias.fill_(100.0)  # tanh = 1: the upper bound
    observation = {"observation": np.zeros(2), "desired_goal": np.zeros(2)}
    assert np.allclose(agent.predict(observation)[0], [1.0, 4.0])


def test_observation_of_the_wrong_size_is_rejected(run):
    _, agent = run
    with pytest.raises(mrn.UserError, match="FetchReach expects observations of 10"):
        agent.predict({"observation": np.zeros(25), "desired_goal": np.zeros(3)})


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ({"observation": np.full(10, np.nan), "desired_goal": np.zeros(3)}, "must be finite"),
        ({"observation": np.zeros(10)}, "keys 'observation' and 'desired_goal', got"),
        (np.zeros(10), "needs a dictionary"),
        (
            {"observation": np.zeros((5, 10)), "desired_goal": np.zeros(3)},
            "needs one goal per observation",
        ),
        (
            {"observation": np.full(10, "x"), "desired_goal": np.zeros(3)},
            "must be numeric, got <U",
        ),
    ],
)
def test_invalid_observation_is_rejected(run, observation, message):
    with pytest.raises(mrn.UserError, match=message):
        run[1].predict(observation)


@pytest.mark.filterwarnings("error")  # torch warns about read-only arrays
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(
    "stored",
    [
        lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        np.asfortranarray,
        lambda x: x.astype(">f8"),
        lambda x: x.astype(">f4"),
        lambda x: x.astype(np.longdouble),
        lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),  # read-only
        lambda x: x.tolist(),
    ],
)
def test_memory_layout_of_an_observation_does_not_matter(run, stored, deterministic):
    agent = mrn.load(run[0])  # with its own random numbers
    plain = random_observations(7)
    before = {key: value.copy() for key, value in plain.items()}
    expected, _ = agent.predict(plain, deterministic=deterministic)
    agent = mrn.load(run[0])
    found, _ = agent.predict({k: stored(v) for k, v in plain.items()}, deterministic=deterministic)
    assert np.array_equal(found, expected)
    assert all(np.array_equal(plain[key], before[key]) for key in plain)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("batch", [(), (0,), (2, 3), (3, 3), (1, 2, 3)])
def test_predict_accepts_any_batch_shape(run, batch, deterministic):
    rows = random_observations(int(np.prod(batch)))
    expected, _ = mrn.load(run[0]).predict(rows, deterministic=deterministic)
    shaped = {key: value.reshape(*batch, value.shape[-1]) for key, value in rows.items()}
    found, _ = mrn.load(run[0]).predict(shaped, deterministic=deterministic)
    assert found.shape == (*batch, 4)
    assert np.array_equal(found.reshape(-1, 4), expected)


def random_observations(count: int) -> dict[str, np.ndarray]:
    """Return observations of FetchReach that float32 represents exactly."""
    random = np.random.default_rng(0)
    named = (("observation", 10), ("desired_goal", 3))
    return {key: random.normal(size=(count, n)).astype("f4").astype("f8") for key, n in named}


def test_device_error_is_not_attributed_to_the_file(run, monkeypatch):
    def full(*_):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(mrn.Agent, "__init__", full)
    with pytest.raises(RuntimeError, match="out of memory"):
        mrn.load(run[0])


def test_evaluate_method_matches_evaluate_agent(run):
    _, agent = run
    found = agent.evaluate(episodes=4, seed=3)
    assert found == evaluate_agent(agent, 4, 3)
    assert (found.episodes, found.engine) == (4, "envpool")
    assert agent.evaluate(4, 3, engine="gymnasium").engine == "gymnasium"


def test_load_returns_the_same_policy(run, tmp_path):
    folder, agent = run
    for source in (folder, folder / "latest.safetensors", str(folder)):
        loaded = mrn.load(source)
        assert same_weights(agent, loaded)
        assert (loaded.config, loaded.spec) == (agent.config, agent.spec)
    with make_envs(TASKS["FetchReach"].spec, 3) as envs:
        observation = envs.reset(0)
        assert np.array_equal(agent.act(observation), mrn.load(folder).act(observation))


def test_paths_and_devices_may_be_strings_or_objects(run, tmp_path, monkeypatch):
    _, agent = run
    monkeypatch.chdir(tmp_path)
    agent.save("policy.safetensors")
    cpu = torch.device("cpu")
    for path in ("policy.safetensors", tmp_path / "policy.safetensors"):
        assert same_weights(agent, mrn.load(path, device=cpu))
        assert same_weights(agent, mrn.Agent.load(path, cpu))
        assert same_weights(agent, mrn.Agent.load(path))
    with pytest.raises(mrn.UserError, match="unknown device 'meta'"):
        mrn.load("policy.safetensors", device=torch.device("meta"))


def test_missing_and_foreign_files_are_rejected(run, tmp_path):
    folder, _ = run
    with pytest.raises(mrn.UserError, match="no run folder or weights file"):
        mrn.load(tmp_path / "nowhere")
    with pytest.raises(mrn.UserError, match=r"no latest\.safetensors"):
        mrn.load(tmp_path)
    with pytest.raises(mrn.UserError, match="unknown weights 'worst'"):
        mrn.load(folder, "worst")
    with pytest.raises(
        mrn.UserError, match="is a weights file; pass its run folder to choose 'best'"
    ):
        mrn.load(folder / "latest.safetensors", "best")
    good = (folder / "latest.safetensors").read_bytes()
    about = {"mrn": json.dumps({"config": {}, "task": {}})}
    foreign = {
        "empty": b"",
        "truncated": good[: len(good) // 2],
        "text": b"not a model" * 100,
        "other model": safetensors.torch.save({"w": torch.zeros(2)}),
        "empty settings": safetensors.torch.save({"w": torch.zeros(2)}, about),
        "not an object": safetensors.torch.save({"w": torch.zeros(2)}, {"mrn": "[1]"}),
    }
    for name, content in foreign.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        with pytest.raises(mrn.UserError, match=name):  # the message names the file
            mrn.load(path)


@pytest.mark.parametrize("wrong", [{"episodes": 0}, {"seed": -1}, {"threads": 0}])
def test_evaluation_arguments_out_of_range_are_rejected(run, wrong):
    _, agent = run
    with pytest.raises(mrn.UserError, match=f"{next(iter(wrong))} must be at least"):
        evaluate_agent(agent, **({"episodes": 2, "seed": 0} | wrong))


def test_metadata_with_wrong_types_is_rejected(run, tmp_path):
    _, agent = run
    about = {"config": agent.config.to_dict(), "task": vars(agent.spec)}
    tensors = {k: v.clone() for k, v in agent.state_dict().items()}
    for path, value in (
        (("config", "seed"), "100"),
        (("config", "algo_config"), []),
        (("config", "surprise"), 1),
        (("task", "state_dim"), -1),
        (("task", "action_low"), ["a"]),
    ):
        changed = json.loads(json.dumps(about))
        changed[path[0]][path[1]] = value
        file = tmp_path / "changed.safetensors"
        file.write_bytes(safetensors.torch.save(tensors, {"mrn": json.dumps(changed)}))
        with pytest.raises(mrn.UserError, match=r"changed\.safetensors"):
            mrn.load(file)


def test_repr_identifies_the_agent(run):
    folder, agent = run
    expected = "Agent(task='FetchReach', method='ddpg-mrn+fast', seed=100, weights='latest', "
    assert repr(agent) == repr(mrn.load(folder)) == f"{expected}device='cpu')"
    epoch = mrn.load(folder, "best").selection.epoch
    assert f"weights='best, epoch {epoch}'" in repr(mrn.load(folder, "best"))


def test_plot_shows_the_success_of_each_epoch(run):
    folder, agent = run
    (axes,) = agent.plot().axes
    (line,) = axes.lines
    steps, success = line.get_data()
    assert list(steps) == [200, 400]
    assert list(success) == [float(row["success"]) for row in metrics(folder)]
    assert mrn.load(folder).plot()._repr_png_().startswith(b"\x89PNG")


def test_plot_needs_evaluations(run, tmp_path, monkeypatch):
    _, agent = run
    with pytest.raises(mrn.UserError, match="has no run folder.*mrn.load"):
        mrn.load("zoo:FetchReach").plot()
    with pytest.raises(mrn.UserError, match="no evaluation to plot"):
        tiny_run(tmp_path / "run", epochs=1, eval_episodes=0).plot()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(mrn.UserError, match=r"matplotlib is missing: pip install .*\[report\]"):
        agent.plot()
