"""What EnvPool has besides the paper's tasks, held to Gymnasium-Robotics family by family."""

import envpool
import gymnasium as gym
import mujoco
import numpy as np
import pytest
import torch

from mrn.envs import EXTRA_TASKS, TASKS, engines_of, find_task, make_envs
from mrn.envs.custom import make_env, register_robotics, task_of
from mrn.envs.rewards import HandReward
from mrn.envs.tasks import DENSE, ON_ENVPOOL
from mrn.utils.errors import UserError

ALL = {task.spec.env_id: task for task in (*TASKS.values(), *EXTRA_TASKS.values())}
FAMILIES = (
    "HandReach-v3",
    "HandManipulatePen-v1",
    "HandManipulateBlock_ContinuousTouchSensors-v1",
    "PointMaze_UMaze-v3",
)


def test_no_goal_environment_of_envpool_is_forgotten():
    """What is not offered: names of older versions, and dense rewards that do not fit."""
    families = ("Fetch", "HandReach", "HandManipulate", "PointMaze")
    theirs = {name for name in envpool.list_all_envs() if name.startswith(families)}
    assert theirs >= ON_ENVPOOL
    older = {name for name in theirs if name.endswith("-v0")}
    older |= {name for name in theirs if name.startswith("Fetch") and name.endswith("-v1")}
    dense = {name for name in theirs if name.startswith("HandManipulate") and "Dense" in name}
    assert theirs - ON_ENVPOOL - older - dense == {"FetchSlideDense-v4"}
    assert len(ON_ENVPOOL) == 12 + 30 + 14


@pytest.mark.parametrize("env_id", ALL)
def test_sizes_and_thresholds_are_those_of_envpool(env_id):
    shape, reward = ALL[env_id].shape, ALL[env_id].reward
    spec = envpool.make_spec(env_id)
    space, config = spec.observation_space, spec.config
    assert space["observation"].shape == (shape.state_dim,)
    assert space["desired_goal"].shape == (shape.goal_dim,)
    assert tuple(spec.action_space.low) == shape.action_low
    assert tuple(spec.action_space.high) == shape.action_high
    assert spec.action_space.dtype == shape.action_dtype
    register_robotics()
    assert gym.spec(env_id).max_episode_steps == config.max_episode_steps == shape.horizon
    if env_id.startswith("HandManipulate"):
        counts = config.target_position != "ignore"
        ignore_z = config.ignore_z_target_rotation
        threshold = config.distance_threshold if counts else None
        assert reward == HandReward(threshold, config.rotation_threshold, ignore_z)
        assert gym.spec(env_id).kwargs["target_position"] == config.target_position
    elif env_id.startswith("PointMaze"):
        # Nothing but the limit of steps ends an episode, and no goal is drawn within one.
        assert (config.continuing_task, config.reset_target) == (True, False)
    else:
        assert reward.threshold == config.distance_threshold


def put_into(env: gym.Env, state: np.ndarray, achieved: np.ndarray, goal: np.ndarray) -> None:
    """Give a Gymnasium environment the state that an EnvPool environment shows after a reset."""
    env.reset(seed=0)
    inner = env.unwrapped
    inner.goal = goal.copy()
    if hasattr(inner, "point_env"):
        inner.point_env.set_state(state[:2], state[2:])
        return
    model, data, tools = inner.model, inner.data, inner._utils
    if len(state) == 25:  # Fetch with an object; the arm begins at one place
        joint = tools.get_joint_qpos(model, data, "object0:joint")
        joint[:2] = state[3:5]
        tools.set_joint_qpos(model, data, "object0:joint", joint)
    elif len(goal) == 7:  # a hand with an object
        data.qpos[:24], data.qvel[:24] = state[:24], state[24:48]
        tools.set_joint_qpos(model, data, "object:joint", achieved)
        tools.set_joint_qvel(model, data, "object:joint", state[48:54])
    mujoco.mj_forward(model, data)


def far_apart(env_id: str, steps: int = 20) -> tuple[float, list[np.ndarray]]:
    """The largest difference of two engines from one state, and the states of one of them."""
    shape = find_task(env_id).spec
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, 1, shape.action_dim))
    env, worst, states = make_env(env_id), 0.0, []
    with make_envs(shape, 1, "envpool") as envs:
        put_into(env, *(values[0] for values in envs.reset(3)))
        for action in actions:
            step = envs.step(action)
            shown, _, terminated, _, info = env.step(shape.to_bounds(action)[0])
            ours, success = step.observation, info.get("is_success", info.get("success"))
            theirs = [shown[k] for k in ("observation", "achieved_goal", "desired_goal")]
            worst = max(worst, *(np.abs(a[0] - b).max() for a, b in zip(ours, theirs, strict=True)))
            assert step.success[0] == bool(success)
            assert not terminated
            states.append(ours.state[0])
    env.close()
    return worst, states


@pytest.mark.parametrize(
    ("env_id", "most"),
    [
        ("FetchSlide-v4", 1e-3),
        ("FetchPush-v4", 2e-4),  # EnvPool's robot stands at 0.4049 instead of 0.405
        ("HandReach-v3", 1e-9),
        ("HandManipulateBlock-v1", 1e-9),
        ("HandManipulateEgg-v1", 1e-3),
        ("HandManipulatePen_BooleanTouchSensors-v1", 1e-9),
        ("HandManipulateBlockRotateZ_ContinuousTouchSensors-v1", 1e-9),
        ("PointMaze_Large_Diverse_GR-v3", 1e-9),
    ],
)
def test_both_engines_go_on_alike_from_one_state(env_id, most):
    worst, states = far_apart(env_id)
    assert worst < most
    assert np.abs(states[-1] - states[0]).max() > 1e-2  # it did move
    if "Touch" in env_id:
        assert any(state[61:].any() for state in states)  # and something was touched


@pytest.mark.parametrize("name", ["FetchReach", "FetchPush", "FetchPick", "FetchSlide"])
def test_both_engines_begin_alike(name):
    """Where the robot stands, exactly; where goals lie, by the spread of a hundred of them."""
    shape = TASKS[name].spec
    hands, goals = [], []
    for engine in ("envpool", "gymnasium"):
        with make_envs(shape, 10, engine) as envs:
            first = envs.reset(0)
            drawn = [first.goal.copy(), *(envs.reset().goal.copy() for _ in range(9))]
        hands.append(first.state[0, :3])
        goals.append(np.quantile(np.concatenate(drawn), [0.05, 0.5, 0.95], axis=0))
    assert hands[0] == pytest.approx(hands[1], abs=2e-4)
    assert goals[0] == pytest.approx(goals[1], abs=0.08)  # EnvPool's own start is 0.39 m away


@pytest.mark.parametrize("env_id", FAMILIES)
def test_an_episode_depends_on_seed_and_number_alone(env_id):
    """What resuming stands on: steps draw no random numbers, so resets alone skip an episode."""
    shape = find_task(env_id).spec
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (shape.horizon, 1, shape.action_dim))
    with make_envs(shape, 1) as played, make_envs(shape, 1) as skipped:
        assert played.engine == "envpool"
        first = played.reset(5)
        ends = [bool(step.truncated[0] or step.terminated[0]) for step in map(played.step, actions)]
        assert ends == [False] * (shape.horizon - 1) + [True]
        observations = [played.reset(), skipped.reset(5, episode=1)]
        assert not np.array_equal(first.goal, observations[0].goal)
        for action in actions[:5]:
            assert all(np.array_equal(a, b) for a, b in zip(*observations, strict=True))
            observations = [envs.step(action).observation for envs in (played, skipped)]


@pytest.mark.parametrize("env_id", FAMILIES)
def test_rewards_equal_the_environments_row_by_row(env_id):
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


def test_a_maze_tells_success_under_its_own_name_on_both_engines():
    shape = find_task("PointMaze_Open").spec
    for engine in ("envpool", "gymnasium"):
        with make_envs(shape, 4, engine) as envs:
            observation, seen = envs.reset(0), []
            for _ in range(120):
                way = observation.goal - observation.achieved
                step = envs.step((5 * way - 2 * observation.state[:, 2:]).clip(-1, 1))
                observation = step.observation
                distance = np.linalg.norm(observation.goal - observation.achieved, axis=1)
                assert np.array_equal(step.success, distance <= 0.45)
                seen.append(step.success)
            assert not seen[0].all()
            assert seen[-1].mean() > 0.7


def test_dense_rewards_are_the_environments_own_and_the_engine_is_envpool():
    task = find_task("FetchReachDense-v4")
    assert engines_of(task.spec.env_id) == ("envpool", "gymnasium")
    goals = torch.tensor([[1.3, 0.7, 0.5]])
    assert task.reward(goals, goals + torch.tensor([0.0, 0.3, 0.4])).item() == pytest.approx(-0.5)
    with make_envs(task.spec, 1) as envs:
        assert envs.engine == "envpool"
        assert envs.reset(0).state.shape == (1, 10)
    assert set(DENSE) < ON_ENVPOOL
    with pytest.raises(UserError, match="rewards must lie in"):
        find_task("HandManipulateBlockDense-v1")


def test_names_shifts_and_arguments_of_further_tasks():
    maze = find_task("PointMaze_UMaze")
    assert find_task("PointMaze_UMaze-v3") is find_task("PointMaze_UMaze", -1.0) is maze
    assert maze.shape.reward_shift == -1
    with pytest.raises(UserError, match="reward_shift is for environments of your own"):
        find_task("PointMaze_UMaze", -0.5)
    with pytest.raises(UserError, match="reward_shift is for environments of your own"):
        find_task("HandReach", -1.0)
    # A constructor's arguments are for Python; the version and the shift are still known.
    ending = find_task("PointMaze_UMaze", env_kwargs={"continuing_task": False})
    assert (ending.shape.env_id, ending.shape.reward_shift) == ("PointMaze_UMaze-v3", -1)
    assert engines_of(ending.shape.env_id, ending.shape.env_kwargs) == ("gymnasium",)
    with pytest.raises(UserError, match=r"'envpool' does not have 'PointMaze_UMaze-v3' with env_k"):
        make_envs(ending.shape, 1, "envpool")
    described = task_of("PointMaze_UMaze-v3", -1.0).spec  # by Gymnasium, from its spaces
    assert described.env_id == maze.shape.env_id
    for what in ("state_dim", "goal_dim", "action_low", "action_high", "horizon", "action_dtype"):
        assert getattr(described, what) == getattr(maze.shape, what)


@pytest.mark.parametrize(
    ("old", "new"), [("FetchReach-v1", "FetchReach-v4"), ("HandReach-v0", "HandReach-v3")]
)
@pytest.mark.filterwarnings("ignore:.*out of date")
def test_an_older_version_that_is_a_newer_one_in_disguise_is_refused(old, new):
    starts = []
    for name in (old, new):
        pool = envpool.make_gymnasium(name, num_envs=1, num_threads=1, seed=1)
        starts.append(pool.reset()[0]["desired_goal"])
        pool.close()
    assert np.array_equal(*starts)  # what EnvPool has under the old name
    with pytest.raises(UserError, match=f"{new} is its successor, and what EnvPool has under"):
        find_task(old)
    assert old not in ON_ENVPOOL
    with pytest.raises(UserError, match=f"cannot make environment.*{new[:-3]}"):
        find_task(new[:-1] + "2")  # a version in between, which Gymnasium no longer has
