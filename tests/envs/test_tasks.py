"""Tests of the EnvPool tasks against Gymnasium-Robotics, family by family."""

import envpool
import gymnasium as gym
import mujoco
import numpy as np
import pytest
import torch

from mrn.envs import EXTRA_TASKS, TASKS, engines_of, find_task, make_envs
from mrn.envs.custom import make_custom_task, make_env, register_robotics
from mrn.envs.rewards import HandReward
from mrn.envs.tasks import DENSE, ENVPOOL_ENV_IDS
from mrn.utils.errors import UserError

ALL = {task.spec.env_id: task for task in (*TASKS.values(), *EXTRA_TASKS.values())}
FAMILIES = (
    "HandReach-v3",
    "HandManipulatePen-v1",
    "HandManipulateBlock_ContinuousTouchSensors-v1",
    "PointMaze_UMaze-v3",
)


def test_every_goal_environment_of_envpool_is_covered():
    """Only ids of older versions and dense rewards outside [-1, 0] are left out."""
    families = ("Fetch", "HandReach", "HandManipulate", "PointMaze")
    available = {name for name in envpool.list_all_envs() if name.startswith(families)}
    assert available >= ENVPOOL_ENV_IDS
    older = {name for name in available if name.endswith("-v0")}
    older |= {name for name in available if name.startswith("Fetch") and name.endswith("-v1")}
    dense = {name for name in available if name.startswith("HandManipulate") and "Dense" in name}
    assert available - ENVPOOL_ENV_IDS - older - dense == {"FetchSlideDense-v4"}
    assert len(ENVPOOL_ENV_IDS) == 12 + 30 + 14


@pytest.mark.parametrize("env_id", ALL)
def test_sizes_and_thresholds_match_envpool(env_id):
    spec, reward = ALL[env_id].spec, ALL[env_id].reward
    envpool_spec = envpool.make_spec(env_id)
    space, config = envpool_spec.observation_space, envpool_spec.config
    assert space["observation"].shape == (spec.state_dim,)
    assert space["desired_goal"].shape == (spec.goal_dim,)
    assert tuple(envpool_spec.action_space.low) == spec.action_low
    assert tuple(envpool_spec.action_space.high) == spec.action_high
    assert envpool_spec.action_space.dtype == spec.action_dtype
    register_robotics()
    assert gym.spec(env_id).max_episode_steps == config.max_episode_steps == spec.horizon
    if env_id.startswith("HandManipulate"):
        uses_position = config.target_position != "ignore"
        ignore_z = config.ignore_z_target_rotation
        threshold = config.distance_threshold if uses_position else None
        assert reward == HandReward(threshold, config.rotation_threshold, ignore_z)
        assert gym.spec(env_id).kwargs["target_position"] == config.target_position
    elif env_id.startswith("PointMaze"):
        # Only the step limit ends an episode, and the goal stays fixed within it.
        assert (config.continuing_task, config.reset_target) == (True, False)
    else:
        assert reward.threshold == config.distance_threshold


def copy_state(env: gym.Env, state: np.ndarray, achieved: np.ndarray, goal: np.ndarray) -> None:
    """Set a Gymnasium environment to the state that EnvPool returned after a reset."""
    env.reset(seed=0)
    inner = env.unwrapped
    inner.goal = goal.copy()
    if hasattr(inner, "point_env"):
        inner.point_env.set_state(state[:2], state[2:])
        return
    model, data, tools = inner.model, inner.data, inner._utils
    if len(state) == 25:  # Fetch with an object; the arm always starts in the same pose
        joint = tools.get_joint_qpos(model, data, "object0:joint")
        joint[:2] = state[3:5]
        tools.set_joint_qpos(model, data, "object0:joint", joint)
    elif len(goal) == 7:  # a hand with an object
        data.qpos[:24], data.qvel[:24] = state[:24], state[24:48]
        tools.set_joint_qpos(model, data, "object:joint", achieved)
        tools.set_joint_qvel(model, data, "object:joint", state[48:54])
    mujoco.mj_forward(model, data)


def compare_engines(env_id: str, steps: int = 20) -> tuple[float, list[np.ndarray]]:
    """Return the largest difference between the engines from one state, and EnvPool's states."""
    spec = find_task(env_id).spec
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, 1, spec.action_dim))
    env, worst, states = make_env(env_id), 0.0, []
    with make_envs(spec, 1, "envpool") as envs:
        copy_state(env, *(values[0] for values in envs.reset(3)))
        for action in actions:
            step = envs.step(action)
            expected, _, terminated, _, info = env.step(spec.to_bounds(action)[0])
            ours, success = step.observation, info.get("is_success", info.get("success"))
            theirs = [expected[k] for k in ("observation", "achieved_goal", "desired_goal")]
            worst = max(worst, *(np.abs(a[0] - b).max() for a, b in zip(ours, theirs, strict=True)))
            assert step.success[0] == bool(success)
            assert not terminated
            states.append(ours.state[0])
    env.close()
    return worst, states


@pytest.mark.parametrize(
    ("env_id", "tolerance"),
    [
        ("FetchSlide-v4", 1e-3),
        ("FetchPush-v4", 2e-4),  # EnvPool places the robot at 0.4049 instead of 0.405
        ("HandReach-v3", 1e-9),
        ("HandManipulateBlock-v1", 1e-9),
        ("HandManipulateEgg-v1", 1e-3),
        ("HandManipulatePen_BooleanTouchSensors-v1", 1e-9),
        ("HandManipulateBlockRotateZ_ContinuousTouchSensors-v1", 1e-9),
        ("PointMaze_Large_Diverse_GR-v3", 1e-9),
    ],
)
def test_engines_agree_from_the_same_state(env_id, tolerance):
    worst, states = compare_engines(env_id)
    assert worst < tolerance
    assert np.abs(states[-1] - states[0]).max() > 1e-2  # the robot moved
    if "Touch" in env_id:
        assert any(state[61:].any() for state in states)  # a sensor was touched


@pytest.mark.parametrize("name", ["FetchReach", "FetchPush", "FetchPick", "FetchSlide"])
def test_engines_have_the_same_initial_states(name):
    """The robot's pose must be equal; goals are compared by the quantiles of a hundred."""
    spec = TASKS[name].spec
    hands, goals = [], []
    for engine in ("envpool", "gymnasium"):
        with make_envs(spec, 10, engine) as envs:
            first = envs.reset(0)
            drawn = [first.goal.copy(), *(envs.reset().goal.copy() for _ in range(9))]
        hands.append(first.state[0, :3])
        goals.append(np.quantile(np.concatenate(drawn), [0.05, 0.5, 0.95], axis=0))
    assert hands[0] == pytest.approx(hands[1], abs=2e-4)
    assert goals[0] == pytest.approx(goals[1], abs=0.08)  # EnvPool's default start is 0.39 m away


@pytest.mark.parametrize("env_id", FAMILIES)
def test_episode_depends_only_on_seed_and_number(env_id):
    """Resuming relies on this: steps draw no random numbers, so resets can skip episodes."""
    spec = find_task(env_id).spec
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (spec.horizon, 1, spec.action_dim))
    with make_envs(spec, 1) as played, make_envs(spec, 1) as skipped:
        assert played.engine == "envpool"
        first = played.reset(5)
        ends = [bool(step.truncated[0] or step.terminated[0]) for step in map(played.step, actions)]
        assert ends == [False] * (spec.horizon - 1) + [True]
        observations = [played.reset(), skipped.reset(5, episode=1)]
        assert not np.array_equal(first.goal, observations[0].goal)
        for action in actions[:5]:
            assert all(np.array_equal(a, b) for a, b in zip(*observations, strict=True))
            observations = [envs.step(action).observation for envs in (played, skipped)]


@pytest.mark.parametrize("env_id", FAMILIES)
def test_rewards_equal_those_of_the_environments(env_id):
    task, env = find_task(env_id), make_env(env_id)
    rng = np.random.default_rng(0)
    goals = np.stack([env.reset(seed=seed)[0]["desired_goal"] for seed in range(3)])
    desired = np.repeat(goals, 60, axis=0)
    scale = rng.choice([1e-3, 5e-3, 0.02, 0.3, 1.0], (len(desired), 1))
    achieved = desired + scale * rng.normal(size=desired.shape)
    if len(goals[0]) == 7:
        achieved[:, 3:] /= np.linalg.norm(achieved[:, 3:], axis=1, keepdims=True)
    compute, shift = env.unwrapped.compute_reward, task.spec.reward_shift
    rows = zip(achieved, desired, strict=True)
    expected = [compute(a.copy(), d.copy(), {}) + shift for a, d in rows]
    ours = task.reward(torch.from_numpy(achieved), torch.from_numpy(desired))
    assert ours.tolist() == expected
    assert 0.1 < np.mean([reward == 0 for reward in expected]) < 0.9
    env.close()


def test_maze_success_is_reported_on_both_engines():
    spec = find_task("PointMaze_Open").spec
    for engine in ("envpool", "gymnasium"):
        with make_envs(spec, 4, engine) as envs:
            observation, successes = envs.reset(0), []
            for _ in range(120):
                offset = observation.goal - observation.achieved
                step = envs.step((5 * offset - 2 * observation.state[:, 2:]).clip(-1, 1))
                observation = step.observation
                distance = np.linalg.norm(observation.goal - observation.achieved, axis=1)
                assert np.array_equal(step.success, distance <= 0.45)
                successes.append(step.success)
            assert not successes[0].all()
            assert successes[-1].mean() > 0.7


def test_dense_tasks_use_the_environment_reward_on_envpool():
    task = find_task("FetchReachDense-v4")
    assert engines_of(task.spec.env_id) == ("envpool", "gymnasium")
    goals = torch.tensor([[1.3, 0.7, 0.5]])
    assert task.reward(goals, goals + torch.tensor([0.0, 0.3, 0.4])).item() == pytest.approx(-0.5)
    with make_envs(task.spec, 1) as envs:
        assert envs.engine == "envpool"
        assert envs.reset(0).state.shape == (1, 10)
    assert set(DENSE) < ENVPOOL_ENV_IDS
    with pytest.raises(UserError, match="rewards must lie in"):
        find_task("HandManipulateBlockDense-v1")


def test_names_reward_shifts_and_env_kwargs_of_extra_tasks():
    maze = find_task("PointMaze_UMaze")
    assert find_task("PointMaze_UMaze-v3") is find_task("PointMaze_UMaze", -1.0) is maze
    assert maze.spec.reward_shift == -1
    with pytest.raises(UserError, match="reward_shift only applies to custom environments"):
        find_task("PointMaze_UMaze", -0.5)
    with pytest.raises(UserError, match="reward_shift only applies to custom environments"):
        find_task("HandReach", -1.0)
    # With env_kwargs, Gymnasium simulates the task; its version and reward shift are kept.
    ending = find_task("PointMaze_UMaze", env_kwargs={"continuing_task": False})
    assert (ending.spec.env_id, ending.spec.reward_shift) == ("PointMaze_UMaze-v3", -1)
    assert engines_of(ending.spec.env_id, ending.spec.env_kwargs) == ("gymnasium",)
    with pytest.raises(
        UserError, match=r"'envpool' does not support 'PointMaze_UMaze-v3' with env_k"
    ):
        make_envs(ending.spec, 1, "envpool")
    described = make_custom_task(
        "PointMaze_UMaze-v3", -1.0
    ).spec  # derived from its Gymnasium spaces
    assert described.env_id == maze.spec.env_id
    for what in ("state_dim", "goal_dim", "action_low", "action_high", "horizon", "action_dtype"):
        assert getattr(described, what) == getattr(maze.spec, what)


@pytest.mark.parametrize(
    ("old", "new"), [("FetchReach-v1", "FetchReach-v4"), ("HandReach-v0", "HandReach-v3")]
)
@pytest.mark.filterwarnings("ignore:.*out of date")
def test_old_id_that_envpool_maps_to_a_newer_version_is_rejected(old, new):
    starts = []
    for name in (old, new):
        pool = envpool.make_gymnasium(name, num_envs=1, num_threads=1, seed=1)
        starts.append(pool.reset()[0]["desired_goal"])
        pool.close()
    assert np.array_equal(*starts)  # EnvPool simulates the new version under the old id
    with pytest.raises(UserError, match=f"use {new} instead, which EnvPool also simulates under"):
        find_task(old)
    assert old not in ENVPOOL_ENV_IDS
    with pytest.raises(UserError, match=f"cannot make environment.*{new[:-3]}"):
        find_task(new[:-1] + "2")  # an intermediate version that Gymnasium has removed
