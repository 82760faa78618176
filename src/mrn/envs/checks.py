"""Compatibility checks behind `mrn check`: can an environment be used for training?"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from mrn.envs.custom import EnvReward, make_env
from mrn.envs.engines import engines_of
from mrn.envs.requirements import (
    KEYS,
    UnsupportedEnvError,
    action_space,
    goal_space,
    horizon,
    wrap_env_errors,
)
from mrn.envs.tasks import native_task, resolve_env_id
from mrn.envs.vector import success_from_info
from mrn.utils.findings import Finding
from mrn.utils.normalization import CLIP_RAW, MIN_STD

MAX_EPISODE_STEPS = 100
"""Maximum number of steps played per episode."""
NUM_RESETS = 10
"""Number of resets used to measure how much goals vary."""
MIN_VISIBLE_STD = MIN_STD / 10
"""Standard deviation below which the normalizer shrinks a value to a tenth of the usual scale."""
ROUNDING_TOLERANCE = 1e-6
"""Relative difference that counts as rounding error."""

FIX_OBSERVATION = "fix the observation or its space"


class _Frame(NamedTuple):
    """One time step of an episode."""

    observation: np.ndarray  # state, achieved goal and desired goal, concatenated
    reward: float
    success: Any


def check_env(
    name: str, reward_shift: float = 0.0, kwargs: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Run every check; the environment can be used for training if no verdict is `error`.

    Args:
        name: A task that `mrn tasks` lists, or a Gymnasium id.
        reward_shift: Constant added to the rewards.
        kwargs: Keyword arguments for the environment's constructor.

    Raises:
        UserError: The environment does not exist or cannot be created.
    """
    native = native_task(name, reward_shift, kwargs)
    env_id, shift = resolve_env_id(name, reward_shift)
    env = make_env(env_id, kwargs)
    where = f"environment {name!r}"
    engines = " (default) and ".join(engines_of(env_id, kwargs))
    try:
        return [
            *_check_interface(env, where, shift, native is not None),
            *_check_episodes(env, where),
            Finding("engine", "ok", engines),
        ]
    finally:
        env.close()


def _check_interface(
    env: gym.Env[Any, Any], where: str, shift: float, native: bool
) -> Iterator[Finding]:
    """Check the spaces, the horizon and the reward with the functions that training uses."""

    def observations() -> str:
        space = goal_space(env.observation_space, where)
        state, goal = (spaces.flatdim(space[key]) for key in ("observation", "desired_goal"))
        return f"state dimension {state}, goal dimension {goal}"

    def actions() -> str:
        space = action_space(env, where)
        pairs = sorted({(float(a), float(b)) for a, b in zip(space.low, space.high, strict=True)})
        bounds = " and ".join(f"[{low:g}, {high:g}]" for low, high in pairs)
        return f"dimension {space.shape[0]}, bounds {bounds}, {space.dtype}"

    observation_finding = _run_check("observation space", observations)
    yield observation_finding
    yield _run_check("action space", actions)
    yield _run_check("max_episode_steps", lambda: str(horizon(env, where)))
    if observation_finding.verdict == "error":
        yield Finding("compute_reward", "skipped", "needs a valid observation space")
        return
    try:
        reward = EnvReward(env, where, shift)
    except UnsupportedEnvError as error:
        yield Finding("compute_reward", "error", error.problem, error.remedy)
        return
    yield Finding("compute_reward", "ok", "in [-1, 0] on goals from four episodes")
    if native:
        note = "" if reward.batched else "; the environment's own batched version is wrong"
        yield Finding("batched reward", "ok", f"computed in torch on the training device{note}")
    elif reward.batched:
        yield Finding("batched reward", "ok", "equals the reward computed row by row")
    else:
        problem = "differs from the reward computed row by row; calling it per row is slow"
        remedy = "make compute_reward accept goals of shape (N, goal_dim), e.g. with axis=-1"
        yield Finding("batched reward", "warning", problem, remedy)


def _run_check(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "ok", check())
    except UnsupportedEnvError as error:
        return Finding(what, "error", error.problem, error.remedy)


def _check_episodes(env: gym.Env[Any, Any], where: str) -> Iterator[Finding]:
    """Check determinism, the success signal and the scale of values on played episodes."""
    what = "determinism"
    try:
        goal_dim = spaces.flatdim(goal_space(env.observation_space, where)["desired_goal"])
        action_space(env, where)
    except UnsupportedEnvError:
        yield Finding(what, "skipped", "needs valid observation and action spaces")
        return
    try:
        # Drop the first of three episodes, so that both others follow an identical episode.
        _, first, second = (_play_episode(env, where) for _ in range(3))
        determinism = _check_determinism(env, where, what, first, second)
        starts = [_play_episode(env, where, seed, max_steps=0)[0] for seed in range(NUM_RESETS)]
    except UnsupportedEnvError as error:
        yield Finding(what, "error", error.problem, error.remedy)
        return
    yield determinism
    if first[-1].success is None:
        remedy = 'set info["is_success"] if success means something else'
        yield Finding("success", "ok", "not in info: a reward of 0 counts as success", remedy)
    else:
        yield Finding("success", "ok", "reported in info")
    yield from _check_scale(first, starts, goal_dim)


def _check_scale(episode: list[_Frame], starts: list[_Frame], goal_dim: int) -> Iterator[Finding]:
    """Check that values differ on the scale of the input normalizer.

    Args:
        episode: The frames of one episode.
        starts: The first frames of other episodes.
        goal_dim: Size of the goal vector.
    """
    values = np.stack([frame.observation for frame in (*episode, *starts)])  # (frames, values)
    state_dim = values.shape[1] - 2 * goal_dim
    dims = zip(KEYS, (state_dim, goal_dim, goal_dim), strict=True)
    names = [f"value {i + 1} of {key!r}" for key, size in dims for i in range(size)]
    yield check_range(np.abs(values).max(axis=0), names)
    state, achieved, goal = np.split(values, [state_dim, state_dim + goal_dim], axis=1)
    varies = std_beyond_rounding(goal[len(episode) :]) > 0  # from episode to episode
    # Hindsight relabels with achieved goals, so they count toward the goal normalizer's scale.
    goal_std = std_beyond_rounding(np.concatenate([achieved, goal]))
    goal_std = np.where(varies, goal_std, 0.0)
    yield check_spread(std_beyond_rounding(state), goal_std, names[-goal_dim:])


def check_range(largest: np.ndarray, names: list[str]) -> Finding:
    """Check that no value is clipped, given the largest magnitude of each, shape (values,)."""
    what, worst = "value range", int(largest.argmax())
    if largest[worst] <= CLIP_RAW:
        return Finding(what, "ok", f"up to {largest[worst]:.3g}, clipped above {CLIP_RAW:g}")
    found = f"{names[worst]} reaches {largest[worst]:.4g}, but inputs are clipped at {CLIP_RAW:g}"
    remedy = "rescale the observation, for example from millimeters to meters"
    return Finding(what, "warning", found, remedy)


def check_spread(state_std: np.ndarray, goal_std: np.ndarray, names: list[str]) -> Finding:
    """Check that states and goals vary enough, given the standard deviation of each value."""
    what, too_small = "value spread", (goal_std > 0) & (goal_std < MIN_VISIBLE_STD)
    if too_small.any():
        index = int(too_small.argmax())
        found = f"{names[index]} has a standard deviation of {goal_std[index]:.2g}"
    # A single small state value is often noise, for example of a closed gripper.
    elif 0 < state_std.max() < MIN_VISIBLE_STD:
        found = f"no standard deviation in 'observation' is above {state_std.max():.2g}"
    else:
        return Finding(what, "ok", "large enough to distinguish states and goals")
    found += f": far below {MIN_STD:g}, the networks cannot distinguish values"
    remedy = "rescale the observation, for example from kilometers to meters"
    return Finding(what, "warning", found, remedy)


def std_beyond_rounding(values: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the columns; 0 for those that differ only by rounding."""
    std = values.std(axis=0)
    rounding = ROUNDING_TOLERANCE * np.maximum(np.abs(values).max(axis=0), MIN_STD)
    return np.where(std > rounding, std, 0.0)


def _check_determinism(
    env: gym.Env[Any, Any], where: str, what: str, first: list[_Frame], second: list[_Frame]
) -> Finding:
    """Check that a seed determines the episode, also after episodes with other seeds."""
    step = _first_difference(first, second)
    if step is not None:
        found = f"the same seed differs from step {step} on: runs are not reproducible"
        remedy = "call super().reset(seed=seed) and draw all random numbers from self.np_random"
        return Finding(what, "warning", found, remedy)
    _play_episode(env, where, seed=1)
    step = _first_difference(first, _play_episode(env, where))
    if step is not None:
        found = f"after other episodes, the same seed differs from step {step} on: "
        remedy = "make reset clear all simulator state, or create a new simulator in reset"
        return Finding(what, "warning", found + "resumed runs are not bit-identical", remedy)
    return Finding(what, "ok", f"bit-identical over {len(first) - 1} steps with random actions")


def _first_difference(first: list[_Frame], second: list[_Frame]) -> int | None:
    """Return the first step at which two episodes differ, or None if they are equal."""
    for step, (one, other) in enumerate(zip(first, second, strict=False)):
        if not np.array_equal(one.observation, other.observation) or one.reward != other.reward:
            return step
    return None if len(first) == len(second) else min(len(first), len(second))


def _play_episode(
    env: gym.Env[Any, Any], where: str, seed: int = 0, max_steps: int = MAX_EPISODE_STEPS
) -> list[_Frame]:
    """Play up to `max_steps` steps of a seeded episode with random actions.

    Raises:
        UnsupportedEnvError: The environment fails or returns an invalid observation.
    """
    space, rng = action_space(env, where), np.random.default_rng(seed)
    with wrap_env_errors(where, "reset"):
        observation, _ = env.reset(seed=seed)
        frames = [_Frame(_flatten(env, observation, where), 0.0, None)]
    for _ in range(max_steps):
        action = rng.uniform(space.low, space.high).astype(space.dtype)
        with wrap_env_errors(where, "step"):
            observation, reward, terminated, truncated, info = env.step(action)
            vector = _flatten(env, observation, where)
            frames.append(_Frame(vector, float(reward), success_from_info(info)))
        if terminated or truncated:
            break
    return frames


def _flatten(env: gym.Env[Any, Any], observation: Any, where: str) -> np.ndarray:
    """Concatenate the three vectors of an observation.

    Raises:
        UnsupportedEnvError: A vector is missing, has the wrong shape or is not finite.
    """
    for key in KEYS:
        if not isinstance(observation, Mapping) or key not in observation:
            raise UnsupportedEnvError(where, f"its observation has no {key!r}", FIX_OBSERVATION)
        value, shape = np.asarray(observation[key]), env.observation_space[key].shape  # type: ignore[index]
        if value.shape != shape:
            problem = f"{key!r} has shape {value.shape}, but its space has shape {shape}"
            raise UnsupportedEnvError(where, problem, FIX_OBSERVATION)
        if not np.isfinite(value).all():
            remedy = "fix the simulation: training stops at non-finite values"
            raise UnsupportedEnvError(where, f"{key!r} is not finite: {value}", remedy)
    return np.concatenate([np.asarray(observation[key], np.float64) for key in KEYS])
