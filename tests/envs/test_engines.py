"""Tests of both engines: physics, sizes, seeding and error handling."""

import multiprocessing
import os
import queue
import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from mrn.envs import TASKS, find_task, make_envs, versions, wrappers
from mrn.envs.custom import make_env
from mrn.envs.envpool_engine import EnvPoolEnv
from mrn.envs.gymnasium_engine import GymnasiumEnv
from mrn.utils.errors import RunError, UserError
from tests.envs import custom_envs


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
@pytest.mark.parametrize("task", TASKS)
def test_sizes_of_all_tasks(task, engine):
    spec = TASKS[task].spec
    with make_envs(spec, 2, engine) as envs:
        observation = envs.reset(seed=1)
        assert observation.state.shape == (2, spec.state_dim)
        assert observation.achieved.shape == observation.goal.shape == (2, spec.goal_dim)
        step = envs.step(np.zeros((2, spec.action_dim)))
        assert step.observation.state.shape == (2, spec.state_dim)
        assert step.success.dtype == bool
    env = make_env(spec.env_id)
    assert env.spec is not None
    assert env.spec.max_episode_steps == spec.horizon
    assert tuple(env.action_space.low) == spec.action_low
    assert tuple(env.action_space.high) == spec.action_high


def test_fetch_reach_trajectories_agree_on_both_engines():
    """The robot's initial pose does not depend on the goal, so the whole episode must agree."""
    spec = TASKS["FetchReach"].spec
    actions = np.random.default_rng(0).uniform(-1, 1, (50, 1, 4))
    trajectories = []
    for engine in ("envpool", "gymnasium"):
        with make_envs(spec, 1, engine) as envs:
            states = [envs.reset(seed=3)] + [envs.step(a).observation for a in actions]
            trajectories.append([np.concatenate([o.state, o.achieved], axis=1) for o in states])
    difference = np.abs(np.array(trajectories[0]) - np.array(trajectories[1])).max()
    assert difference < 1e-6
    assert np.abs(np.diff(trajectories[0], axis=0)).max() > 1e-2  # the robot moved
    # This holds for mujoco 3.3 to 3.6; from 3.7 on, the difference is 1 cm.
    assert trajectories[0][0][0, 0] == pytest.approx(1.3418, abs=1e-4)


def test_mujoco_that_moves_the_fetch_robot_warns_once(monkeypatch):
    monkeypatch.setattr(versions, "LAST_MUJOCO", (3, 5))  # one before the pinned version
    versions.warn_if_fetch_moved.cache_clear()
    with make_envs(TASKS["FetchReach"].spec, 2, "envpool") as envs:  # has its own MuJoCo
        envs.reset(0)
    with make_envs(TASKS["BlockRotateZ"].spec, 1, "gymnasium"):
        pass
    with pytest.warns(UserWarning, match=r"mujoco 3\.6\.0 moves the Fetch robot") as caught:
        make_envs(TASKS["FetchReach"].spec, 2, "gymnasium", async_envs=True).close()
    assert len(caught) == 1
    make_envs(TASKS["FetchReach"].spec, 2, "gymnasium").close()
    monkeypatch.undo()
    versions.warn_if_fetch_moved.cache_clear()
    versions.warn_if_fetch_moved()  # no warning with the pinned version


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_seed_determines_the_episode_and_the_next_reset(engine):
    spec = TASKS["FetchPush"].spec
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 3, 4))

    def play(envs, seed):
        observations = [envs.reset(seed)]
        observations += [envs.step(a).observation for a in actions]
        observations.append(envs.reset())  # the seed also determines the next episode
        return np.concatenate([np.concatenate(o, axis=1) for o in observations])

    with make_envs(spec, 3, engine) as envs:
        first, other, again = play(envs, 7), play(envs, 8), play(envs, 7)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    goals = first[:3, -3:]
    assert len(np.unique(goals, axis=0)) == 3  # each environment draws a different goal


def test_results_do_not_depend_on_the_number_of_threads():
    spec = TASKS["FetchPush"].spec
    actions = np.random.default_rng(0).uniform(-1, 1, (10, 4, 4))
    runs = []
    for threads in (1, 2):
        with EnvPoolEnv(spec, 4, threads) as envs:
            runs.append([envs.reset(5), *(envs.step(a).observation for a in actions)])
    assert all(
        np.array_equal(a, b)
        for one, two in zip(*runs, strict=True)
        for a, b in zip(one, two, strict=True)
    )


def test_worker_processes_match_a_single_process():
    spec = TASKS["FetchReach"].spec
    action = np.full((2, 4), 0.5)
    results = []
    for async_envs in (False, True):
        with GymnasiumEnv(spec, 2, async_envs) as envs:
            results.append([envs.reset(3).state, envs.step(action).observation.state])
    assert np.array_equal(*results)


def test_success_is_reported_on_both_engines():
    """Success equals being within the threshold distance after moving to each goal."""
    spec = TASKS["FetchReach"].spec
    for engine in ("envpool", "gymnasium"):
        with make_envs(spec, 20, engine) as envs:
            observation = envs.reset(0)
            for _ in range(40):  # move straight to each goal
                action = np.zeros((20, 4))
                action[:, :3] = (observation.goal - observation.achieved) * 10
                step = envs.step(action.clip(-1, 1))
                observation = step.observation
            distance = np.linalg.norm(observation.goal - observation.achieved, axis=1)
            assert np.array_equal(step.success, distance < 0.05)
            assert step.success.mean() > 0.9


def test_unknown_engine_raises_and_unused_async_envs_warns():
    spec = TASKS["FetchReach"].spec
    with pytest.raises(UserError, match=r"unknown engine 'envpol'. Did you mean 'envpool'"):
        make_envs(spec, 1, "envpol")
    with pytest.warns(
        UserWarning, match="async_envs has no effect .*; remove async_envs, or use engine"
    ):
        make_envs(spec, 1, async_envs=True).close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state_dim": 9}, "has changed: observation had 9 values, now has 10. A policy"),
        ({"goal_dim": 1}, "has changed: goal had 1 values, now has 3. A policy"),
        (
            {"state_dim": 11, "action_low": (-1.0,) * 5, "action_high": (1.0,) * 5},
            "observation had 11 values, now has 10; action had 5 values, now has 4",
        ),
    ],
)
@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_size_mismatch_with_the_task_raises(engine, changes, message):
    spec = replace(TASKS["FetchReach"].spec, **changes)
    with pytest.raises(UserError, match=message), make_envs(spec, 2, engine) as envs:
        envs.reset(0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Discrete", r"action had 2 values, now has shape \(\)"),
        ("Matrix", r"action had 2 values, now has shape \(2, 2\)"),
        ("Image", "'observation' must be a vector"),
    ],
)
@pytest.mark.parametrize("async_envs", [False, True])
def test_space_mismatch_raises_and_closes_the_environments(name, message, async_envs, monkeypatch):
    closed, before = [], multiprocessing.active_children()
    monkeypatch.setattr(custom_envs.Walk, "close", lambda _: closed.append("one"))
    spec = replace(find_task("tests.envs.custom_envs:Walk-v0").spec, env_id=f"{name}-v0")
    with pytest.raises(UserError, match=message):
        make_envs(spec, 2, async_envs=async_envs)
    assert multiprocessing.active_children() == before
    assert len(closed) == 2 or async_envs


@pytest.mark.parametrize("name", TASKS)
def test_envpool_episode_depends_only_on_seed_and_number(name):
    """Resuming relies on this: resets can skip episodes, regardless of their actions."""
    spec = TASKS[name].spec
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (spec.horizon, 2, spec.action_dim))
    with make_envs(spec, 2) as played, make_envs(spec, 2) as skipped:
        first = played.reset(5)
        for action in actions:
            played.step(action)
        observations = [played.reset(), skipped.reset(5, episode=1)]
        assert not np.array_equal(first.goal, observations[0].goal)
        for action in [*actions[:10], None]:
            ours, theirs = observations
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
            if action is not None:
                observations = [envs.step(action).observation for envs in (played, skipped)]


def test_gymnasium_episode_depends_only_on_seed_and_number():
    spec = TASKS["FetchPush"].spec
    with make_envs(spec, 2, "gymnasium") as played, make_envs(spec, 2, "gymnasium") as skipped:
        first = played.reset(5)
        for _ in range(7):
            played.step(np.ones((2, 4)))
        second, again = played.reset(), skipped.reset(5, episode=1)
    assert all(np.array_equal(a, b) for a, b in zip(second, again, strict=True))
    assert not np.array_equal(first.goal, second.goal)


def test_environments_are_closed_after_an_error(monkeypatch):
    closed = []
    spec = find_task("tests.envs.custom_envs:Raises-v0").spec
    monkeypatch.setattr(custom_envs.Raises, "close", lambda _: closed.append("one"))
    with make_envs(spec, 2) as envs:
        envs.reset(0)
        with pytest.raises(RunError, match="division by zero"):
            envs.step(np.zeros((2, 2)))
    assert len(closed) == 2


def test_program_exits_without_closing_its_workers():
    program = """
from mrn.envs import find_task, make_envs
task = find_task("tests.envs.custom_envs:Walk-v0")
envs = make_envs(task.spec, 2, "gymnasium", async_envs=True)
print(envs.reset(0).state.shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"(2, 2)\n"), done.stderr


def test_worker_ends_silently_if_its_parent_was_killed(monkeypatch):
    """The pipe breaks a moment before the signal that ends the worker."""
    spec = find_task("tests.envs.custom_envs:Walk-v0").spec
    run_worker, called = wrappers.run_worker, multiprocessing.Event()
    monkeypatch.setattr(wrappers, "run_worker", lambda *args: called.set() or run_worker(*args))
    with make_envs(spec, 1, "gymnasium", async_envs=True):
        assert called.wait(timeout=10)
    mode, errors = gym.vector.AutoresetMode.NEXT_STEP, queue.Queue()
    pipes = multiprocessing.Pipe()  # the worker closes one end, as the kernel does for the parent
    run_worker(0, lambda: make_env(spec.env_id, {}), *pipes, None, errors, mode, None)
    assert errors.get_nowait()[1] is EOFError  # then the answer fails with a broken pipe

    def refused():
        raise ConnectionRefusedError("no simulator")

    with pytest.raises(ConnectionRefusedError, match="no simulator"):
        run_worker(0, refused, *multiprocessing.Pipe(), None, errors, mode, None)


def test_workers_that_die_at_startup_raise(monkeypatch):
    spec = find_task("tests.envs.custom_envs:Walk-v0").spec
    before, parent, make = multiprocessing.active_children(), os.getpid(), wrappers.make_frozen_env

    def dies(task):
        return make(task) if os.getpid() == parent else os._exit(1)

    monkeypatch.setattr(wrappers, "make_frozen_env", dies)
    with pytest.raises(RunError, match="a worker process of .*Walk-v0 died during a start"):
        make_envs(spec, 2, "gymnasium", async_envs=True)
    assert multiprocessing.active_children() == before
