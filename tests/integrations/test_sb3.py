"""Tests of metric critics in Stable-Baselines3, and of mrn policies in its evaluation."""

import importlib
import inspect
import json
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DDPG, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecNormalize

import mrn
from mrn.critics import CRITICS
from mrn.envs import find_task
from mrn.envs.custom import make_env
from mrn.integrations.sb3 import MetricPolicy, MetricSACPolicy
from tests.envs import custom_envs

STATE, GOAL, ACTION, HIDDEN_DIM = 5, 3, 2, 16
POLICIES = {DDPG: MetricPolicy, TD3: MetricPolicy, SAC: MetricSACPolicy}
ALGORITHMS = pytest.mark.parametrize("algorithm", POLICIES)


def box(size: int) -> spaces.Box:
    return spaces.Box(-10, 10, (size,), np.float64)


def goal_dict(**changed: spaces.Space) -> spaces.Dict:
    default = {"observation": box(STATE), "achieved_goal": box(GOAL), "desired_goal": box(GOAL)}
    return spaces.Dict(default | changed)


def make_policy(policy: type = MetricPolicy, space: spaces.Space | None = None, **kwargs):
    actions = custom_envs.Walk.action_space
    small = {"critic_hidden_dim": HIDDEN_DIM, "net_arch": [8]}
    return policy(space or goal_dict(), actions, lambda _: 1e-3, **(small | kwargs))


def vector(env_id: str, count: int, seed: int):
    return make_vec_env(lambda: gym.make(env_id), count, seed=seed)


def make_model(algorithm: type, critic: str = "mrn", env_id: str = "Walk-v0", **kwargs):
    env = VecNormalize(vector(env_id, 2, seed=1), norm_reward=False)
    if algorithm is SAC:
        kwargs = {"ent_coef": "auto_0.05"} | kwargs
    return algorithm(
        POLICIES[algorithm],
        env,
        policy_kwargs={"critic": critic, "critic_hidden_dim": HIDDEN_DIM, "net_arch": [8]},
        replay_buffer_class=HerReplayBuffer,
        **{"learning_starts": 16, "batch_size": 32, "buffer_size": 500, "device": "cpu"} | kwargs,
        seed=0,
    )


def batch(state: int = STATE, goal: int = GOAL, count: int = 7) -> tuple[dict, torch.Tensor]:
    """Return float64 observations and actions in [-1, 1]."""
    generator = torch.Generator().manual_seed(2)
    sizes = {"achieved_goal": goal, "desired_goal": goal, "observation": state}
    draw = {"generator": generator, "dtype": torch.float64}
    observation = {key: torch.randn(count, size, **draw) for key, size in sizes.items()}
    return observation, 2 * torch.rand(count, ACTION, generator=generator) - 1


@pytest.mark.parametrize("policy", [MetricPolicy, MetricSACPolicy])
@pytest.mark.parametrize("critic", CRITICS)
def test_values_equal_those_of_mrn_critics_with_the_same_weights(policy, critic):
    torch.manual_seed(0)  # with other weights, an asymmetric distance may be 0 for the whole batch
    built = make_policy(policy, critic=critic)
    observation, action = batch()
    state, goal = observation["observation"].float(), observation["desired_goal"].float()

    def expected(network):
        reference = mrn.make_critic(critic, STATE, ACTION, GOAL, HIDDEN_DIM)
        reference.load_state_dict(network.state_dict())
        return reference(state, action, goal).unsqueeze(1)

    initial = built.critic(observation, action)
    assert all(map(torch.equal, initial, built.critic_target(observation, action)))
    with torch.no_grad():
        for weight in built.critic.parameters():
            weight.add_(0.01)
    for critics in (built.critic, built.critic_target):
        values = critics(observation, action)
        assert [value.shape for value in values] == [(7, 1), (7, 1)]
        assert all(map(torch.equal, values, map(expected, critics.q_networks)))
        assert torch.equal(critics.q1_forward(observation, action), values[0])
        assert not torch.equal(*values)  # twin critics have different initial weights
    now = built.critic(observation, action)
    assert not any(map(torch.equal, now, initial))
    assert all(map(torch.equal, built.critic_target(observation, action), initial))


def test_number_and_size_of_critics_are_configurable():
    built = make_policy(n_critics=3, critic_hidden_dim=256)
    assert len(built.critic(*batch())) == built.critic.n_critics == 3
    reference = mrn.make_critic("mrn", STATE, ACTION, GOAL)
    shapes = [weight.shape for weight in reference.parameters()]
    for network in built.critic.q_networks:
        assert [weight.shape for weight in network.parameters()] == shapes
    assert len(list(built.critic.parameters())) == 3 * len(shapes)  # no other trainable parameters


def matrices(critics: torch.nn.Module) -> list[torch.Tensor]:
    """Return all weights except biases, which cancel out in the distance of two embeddings."""
    return [weight.detach().clone() for weight in critics.parameters() if weight.ndim > 1]


@ALGORITHMS
def test_training_with_her_then_save_and_load(algorithm, tmp_path):
    model = make_model(algorithm)
    networks = model.critic.q_networks
    assert len(networks) == (1 if algorithm is DDPG else 2)
    before, target = matrices(model.critic), matrices(model.critic_target)
    assert len(before) == 7 * len(networks)  # two per encoder, three in the head
    model.learn(60)
    assert model._n_updates > 10
    assert not any(map(torch.equal, before, matrices(model.critic)))
    assert not any(map(torch.equal, target, matrices(model.critic_target)))
    # The second action has bounds [0, 4]; critics see it rescaled to [-1, 1].
    actions = model.replay_buffer.actions[: model.replay_buffer.pos]
    assert -1 <= actions.min() < -0.5
    assert 0.5 < actions.max() <= 1

    json.dumps(model.policy_kwargs)  # must be serializable
    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    model.policy.save(tmp_path / "policy.pt")
    policy = POLICIES[algorithm].load(tmp_path / "policy.pt", device="cpu")
    observation, action = batch(2, 2)
    arrays = {key: value.numpy() for key, value in observation.items()}
    expected, _ = model.predict(arrays, deterministic=True)
    values = [*model.critic(observation, action), *model.critic_target(observation, action)]
    for restored in (loaded.policy, policy):
        assert restored.predict(arrays, deterministic=True)[0].tobytes() == expected.tobytes()
        found = [
            *restored.critic(observation, action),
            *restored.critic_target(observation, action),
        ]
        assert all(map(torch.equal, found, values))
    start = matrices(loaded.critic)
    loaded.learn(40)
    assert not any(map(torch.equal, start, matrices(loaded.critic)))


def test_custom_critic(tmp_path, monkeypatch):
    (tmp_path / "custom_sb3_critic.py").write_text(
        "from mrn.critics import CRITICS, Architecture\n"
        "far = Architecture(CRITICS['bvn'].build, 11, 'mine')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    model = make_model(TD3, critic="custom_sb3_critic:far")
    model.save("model.zip")
    loaded = TD3.load("model.zip", env=model.get_env(), device="cpu")
    found, expected = (built.critic(*batch(2, 2)) for built in (loaded, model))
    assert all(map(torch.equal, found, expected))
    assert type(loaded.critic.q_networks[0]).__name__ == "Bilinear"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"critic": "mnr"},
            "unknown critic 'mnr'. Did you mean 'mrn'.*monolithic, bvn, .* custom critic",
        ),
        ({"critic": "nowhere:x"}, "there is no module 'nowhere'"),
        (
            {"net_arch": {"pi": [8], "qf": [8]}},
            "net_arch applies only to the actor.* critic_hidden_dim",
        ),
        (
            {"share_features_extractor": True},
            "share_features_extractor must be False.*no features to share",
        ),
        (
            {"space": box(3)},
            "environment of MetricPolicy: it is not a goal environment.*achieved_goal",
        ),
        ({"space": spaces.Dict({"observation": box(3)})}, "it is not a goal environment"),
        (
            {"space": goal_dict(observation=spaces.Box(0, 1, (8, 8)))},
            "'observation' must be a vector",
        ),
        ({"space": goal_dict(achieved_goal=box(1))}, "must have the same shape"),
        ({"n_critics": 0}, "n_critics must be at least 1, got 0"),
        ({"n_critics": 1.5}, "n_critics must be of type int, got 1.5"),
        ({"n_critics": None}, "n_critics must be of type int, got None"),
    ],
)
def test_invalid_arguments_are_rejected(kwargs, message):
    with pytest.raises(mrn.UserError, match=message):
        make_policy(**kwargs)


def test_renamed_keyword_names_the_new_one():
    with pytest.raises(mrn.UserError, match="^critic_width was renamed to critic_hidden_dim$"):
        make_policy(critic_width=16)


def test_environment_without_goals_is_rejected():
    with pytest.raises(mrn.UserError, match="of MetricSACPolicy: it is not a goal environment"):
        SAC(MetricSACPolicy, gym.make("Pendulum-v1"), device="cpu")


def test_policy_of_another_algorithm_is_rejected():
    with pytest.raises(mrn.UserError, match="for DDPG and TD3.* For SAC, use MetricSACPolicy"):
        SAC(MetricPolicy, make_env("FetchReach-v4"), device="cpu")
    for algorithm in (DDPG, TD3):
        with pytest.raises(mrn.UserError, match="for SAC; use MetricPolicy for DDPG and TD3"):
            algorithm(MetricSACPolicy, make_env("FetchReach-v4"), device="cpu")
    policy = SAC(MetricSACPolicy, make_env("FetchReach-v4"), device="cpu").policy
    assert not hasattr(policy, "actor_target")
    with pytest.raises(AttributeError, match="no attribute 'acter'"):
        policy.acter  # noqa: B018


def test_dictionary_that_sac_has_used_is_named_as_the_cause():
    shared = {"net_arch": [8]}
    SAC(MetricSACPolicy, make_env("FetchReach-v4"), policy_kwargs=shared, device="cpu")
    with pytest.raises(mrn.UserError, match="do not reuse the policy_kwargs of a SAC model"):
        TD3(MetricPolicy, make_env("FetchReach-v4"), policy_kwargs=shared, device="cpu")
    TD3(MetricPolicy, make_env("FetchReach-v4"), policy_kwargs={"net_arch": [8]}, device="cpu")


class PositiveWalk(custom_envs.Walk):
    """Reward 0 until the goal, where it is 1."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        return super().compute_reward(achieved_goal, desired_goal, info) + 1


gym.register("PositiveWalk-v0", PositiveWalk, max_episode_steps=8)


@ALGORITHMS
def test_positive_rewards_warn_once(algorithm):
    with pytest.warns(UserWarning, match="a metric critic cannot be positive") as caught:
        make_model(algorithm, env_id="PositiveWalk-v0").learn(60)
    assert len(caught) == 1
    assert "subtract 1 from rewards of 0 and 1" in str(caught[0].message)


def test_positive_rewards_are_accepted_by_critics_without_a_sign():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make_model(TD3, critic="monolithic", env_id="PositiveWalk-v0").learn(60)
    assert not [each for each in caught if "metric critic" in str(each.message)]
    assert model.num_timesteps == 60


def test_missing_package_shows_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.setitem(sys.modules, "gymnasium", None)  # the core is installed alone
    monkeypatch.delitem(sys.modules, "mrn.integrations.sb3")
    with pytest.raises(mrn.UserError, match=r"is missing: pip install 'mrn-rl\[sb3\]'"):
        importlib.import_module("mrn.integrations.sb3")


def test_evaluate_policy_accepts_an_mrn_agent():
    name = f"{custom_envs.__name__}:TellsSuccess-v0"
    config = mrn.Config.of(name, hidden_dim=16, seed=3)
    agent = mrn.Agent(config, find_task(name).spec, torch.device("cpu"))
    with torch.no_grad():
        agent.algorithm.actor.net[-1].bias.copy_(torch.tensor([0.0, -1.5]))  # move up slowly

    returns, successes = np.zeros((3, 20)), np.zeros((3, 20), bool)
    for number in range(3):
        env = gym.make("TellsSuccess-v0")
        for episode in range(20):
            seed = None if episode else 5 + number  # the seeds that Stable-Baselines3 uses
            observation, _ = env.reset(seed=seed)
            truncated = False
            while not truncated:
                action, _ = agent.predict(observation)
                observation, reward, _, truncated, info = env.step(action)
                returns[number, episode] += reward
            successes[number, episode] = info["is_success"]
    assert len(np.unique(returns)) > 2  # some episodes pass their goal

    logged: list[bool] = []

    def log_success(local, _):
        logged.extend([local["info"]["is_success"]] if local["done"] else [])

    envs = vector("TellsSuccess-v0", 3, seed=5)
    found = evaluate_policy(
        agent, envs, n_eval_episodes=60, callback=log_success, return_episode_rewards=True
    )
    # All episodes have 8 steps, so the three environments finish together.
    assert found == (returns.T.ravel().tolist(), [8] * 60)
    assert logged == successes.T.ravel().tolist()


def test_predict_has_the_signature_of_stable_baselines3():
    expected = inspect.signature(PolicyPredictor.predict).parameters
    found = inspect.signature(mrn.Agent.predict).parameters
    assert list(found) == list(expected)
    for name, parameter in expected.items():
        assert found[name].kind == parameter.kind
        assert (found[name].default is parameter.empty) == (parameter.default is parameter.empty)
