"""Our critics in Stable-Baselines3's algorithms, and our policies in its evaluation."""

import importlib
import inspect
import json
import sys

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

STATE, GOAL, ACTION, WIDTH = 5, 3, 2, 16
POLICIES = {DDPG: MetricPolicy, TD3: MetricPolicy, SAC: MetricSACPolicy}
ALGORITHMS = pytest.mark.parametrize("algorithm", POLICIES)


def box(size: int) -> spaces.Box:
    return spaces.Box(-10, 10, (size,), np.float64)


def goal_dict(**changed: spaces.Space) -> spaces.Dict:
    whole = {"observation": box(STATE), "achieved_goal": box(GOAL), "desired_goal": box(GOAL)}
    return spaces.Dict(whole | changed)


def make_policy(policy: type = MetricPolicy, space: spaces.Space | None = None, **kwargs):
    actions = custom_envs.Walk.action_space
    small = {"critic_width": WIDTH, "net_arch": [8]}
    return policy(space or goal_dict(), actions, lambda _: 1e-3, **(small | kwargs))


def vector(env_id: str, count: int, seed: int):
    return make_vec_env(lambda: gym.make(env_id), count, seed=seed)


def make_model(algorithm: type, critic: str = "mrn", **kwargs):
    env = VecNormalize(vector("Walk-v0", 2, seed=1), norm_reward=False)
    return algorithm(
        POLICIES[algorithm],
        env,
        policy_kwargs={"critic": critic, "critic_width": WIDTH, "net_arch": [8]},
        replay_buffer_class=HerReplayBuffer,
        **{"learning_starts": 16, "batch_size": 32, "buffer_size": 500, "device": "cpu"} | kwargs,
        seed=0,
    )


def batch(state: int = STATE, goal: int = GOAL, count: int = 7) -> tuple[dict, torch.Tensor]:
    """Observations as an environment's, of float64, and actions in [-1, 1]."""
    generator = torch.Generator().manual_seed(2)
    sizes = {"achieved_goal": goal, "desired_goal": goal, "observation": state}
    draw = {"generator": generator, "dtype": torch.float64}
    seen = {key: torch.randn(count, size, **draw) for key, size in sizes.items()}
    return seen, 2 * torch.rand(count, ACTION, generator=generator) - 1


@pytest.mark.parametrize("policy", [MetricPolicy, MetricSACPolicy])
@pytest.mark.parametrize("critic", CRITICS)
def test_values_are_those_of_our_critic_with_the_same_weights(policy, critic):
    torch.manual_seed(0)  # with other weights a one-sided distance may be 0 for the whole batch
    made = make_policy(policy, critic=critic)
    observation, action = batch()
    state, goal = observation["observation"].float(), observation["desired_goal"].float()

    def expected(network):
        ours = mrn.make_critic(critic, STATE, ACTION, GOAL, WIDTH)
        ours.load_state_dict(network.state_dict())
        return ours(state, action, goal).unsqueeze(1)

    begin = made.critic(observation, action)
    assert all(map(torch.equal, begin, made.critic_target(observation, action)))
    with torch.no_grad():
        for weight in made.critic.parameters():
            weight.add_(0.01)
    for critics in (made.critic, made.critic_target):
        values = critics(observation, action)
        assert [value.shape for value in values] == [(7, 1), (7, 1)]
        assert all(map(torch.equal, values, map(expected, critics.q_networks)))
        assert torch.equal(critics.q1_forward(observation, action), values[0])
        assert not torch.equal(*values)  # twins begin apart
    now = made.critic(observation, action)
    assert not any(map(torch.equal, now, begin))
    assert all(map(torch.equal, made.critic_target(observation, action), begin))


def test_the_number_and_the_size_of_the_critics_are_a_choice():
    made = make_policy(n_critics=3, critic_width=256)
    assert len(made.critic(*batch())) == made.critic.n_critics == 3
    ours = mrn.make_critic("mrn", STATE, ACTION, GOAL)
    shapes = [weight.shape for weight in ours.parameters()]
    for network in made.critic.q_networks:
        assert [weight.shape for weight in network.parameters()] == shapes
    assert len(list(made.critic.parameters())) == 3 * len(shapes)  # and nothing else learns


def matrices(critics: torch.nn.Module) -> list[torch.Tensor]:
    """All that learns but for biases: one that two points share has no part in their distance."""
    return [weight.detach().clone() for weight in critics.parameters() if weight.ndim > 1]


@ALGORITHMS
def test_it_trains_with_hindsight_and_goes_on_from_its_file(algorithm, tmp_path):
    model = make_model(algorithm)
    networks = model.critic.q_networks
    assert len(networks) == (1 if algorithm is DDPG else 2)
    before, target = matrices(model.critic), matrices(model.critic_target)
    assert len(before) == 7 * len(networks)  # two in each encoder, three in the head
    model.learn(60)
    assert model._n_updates > 10
    assert not any(map(torch.equal, before, matrices(model.critic)))
    assert not any(map(torch.equal, target, matrices(model.critic_target)))
    # The environment's second action is in [0, 4]; critics learn from it in [-1, 1].
    seen = model.replay_buffer.actions[: model.replay_buffer.pos]
    assert -1 <= seen.min() < -0.5
    assert 0.5 < seen.max() <= 1

    json.dumps(model.policy_kwargs)  # plain data
    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    model.policy.save(tmp_path / "policy.pt")
    policy = POLICIES[algorithm].load(tmp_path / "policy.pt", device="cpu")
    observation, action = batch(2, 2)
    arrays = {key: value.numpy() for key, value in observation.items()}
    expected, _ = model.predict(arrays, deterministic=True)
    values = [*model.critic(observation, action), *model.critic_target(observation, action)]
    for again in (loaded.policy, policy):
        assert again.predict(arrays, deterministic=True)[0].tobytes() == expected.tobytes()
        found = [*again.critic(observation, action), *again.critic_target(observation, action)]
        assert all(map(torch.equal, found, values))
    start = matrices(loaded.critic)
    loaded.learn(40)
    assert not any(map(torch.equal, start, matrices(loaded.critic)))


def test_a_critic_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_sb3_critic.py").write_text(
        "from mrn.critics import CRITICS, Architecture\n"
        "far = Architecture(CRITICS['bvn'].build, 11, 'mine')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    model = make_model(TD3, critic="own_sb3_critic:far")
    model.save("model.zip")
    loaded = TD3.load("model.zip", env=model.get_env(), device="cpu")
    found, expected = (made.critic(*batch(2, 2)) for made in (loaded, model))
    assert all(map(torch.equal, found, expected))
    assert type(loaded.critic.q_networks[0]).__name__ == "Bilinear"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"critic": "mnr"},
            "unknown critic 'mnr'. Did you mean 'mrn'.*monolithic, bvn, .* your own",
        ),
        ({"critic": "nowhere:x"}, "there is no module 'nowhere'"),
        ({"net_arch": {"pi": [8], "qf": [8]}}, "net_arch is for the actor alone.* critic_width"),
        ({"share_features_extractor": True}, "no features to share; leave it out"),
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
    ],
)
def test_what_cannot_be_is_refused(kwargs, message):
    with pytest.raises(mrn.UserError, match=message):
        make_policy(**kwargs)


def test_an_environment_without_goals_is_refused():
    with pytest.raises(mrn.UserError, match="of MetricSACPolicy: it is not a goal environment"):
        SAC(MetricSACPolicy, gym.make("Pendulum-v1"), device="cpu")


def test_the_policy_of_other_algorithms_is_refused():
    with pytest.raises(mrn.UserError, match="for DDPG and TD3: SAC takes MetricSACPolicy"):
        SAC(MetricPolicy, make_env("FetchReach-v4"), device="cpu")
    for algorithm in (DDPG, TD3):
        with pytest.raises(mrn.UserError, match="for SAC: DDPG and TD3 take MetricPolicy"):
            algorithm(MetricSACPolicy, make_env("FetchReach-v4"), device="cpu")
    policy = SAC(MetricSACPolicy, make_env("FetchReach-v4"), device="cpu").policy
    assert not hasattr(policy, "actor_target")
    with pytest.raises(AttributeError, match="no attribute 'acter'"):
        policy.acter  # noqa: B018


def test_where_it_is_missing_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "mrn.integrations.sb3")
    with pytest.raises(mrn.UserError, match=r"is missing: pip install .* '\.\[sb3\]'"):
        importlib.import_module("mrn.integrations.sb3")


def test_our_policy_is_evaluated_as_one_of_theirs():
    name = f"{custom_envs.__name__}:TellsSuccess-v0"
    config = mrn.Config.of(name, hidden_dim=16, seed=3)
    agent = mrn.Agent(config, find_task(name).spec, torch.device("cpu"))
    with torch.no_grad():
        agent.algorithm.actor.net[-1].bias.copy_(torch.tensor([0.0, -1.5]))  # upwards, slowly

    returns, successes = np.zeros((3, 20)), np.zeros((3, 20), bool)
    for number in range(3):
        env = gym.make("TellsSuccess-v0")
        for episode in range(20):
            seed = None if episode else 5 + number  # as Stable-Baselines3 seeds environments
            observation, _ = env.reset(seed=seed)
            truncated = False
            while not truncated:
                action, _ = agent.predict(observation)
                observation, reward, _, truncated, info = env.step(action)
                returns[number, episode] += reward
            successes[number, episode] = info["is_success"]
    assert len(np.unique(returns)) > 2  # some come by their goals

    told: list[bool] = []

    def note(there, _):
        told.extend([there["info"]["is_success"]] if there["done"] else [])

    envs = vector("TellsSuccess-v0", 3, seed=5)
    found = evaluate_policy(
        agent, envs, n_eval_episodes=60, callback=note, return_episode_rewards=True
    )
    # All episodes are of 8 steps, so that the three environments end theirs together.
    assert found == (returns.T.ravel().tolist(), [8] * 60)
    assert told == successes.T.ravel().tolist()


def test_predict_takes_what_stable_baselines_gives():
    theirs = inspect.signature(PolicyPredictor.predict).parameters
    ours = inspect.signature(mrn.Agent.predict).parameters
    assert list(ours) == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].kind == parameter.kind
        assert (ours[name].default is parameter.empty) == (parameter.default is parameter.empty)
