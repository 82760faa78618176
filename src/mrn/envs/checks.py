"""Can this environment be trained on? What training asks of it, and what is good to know."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from mrn.envs.custom import EnvReward, make_env
from mrn.envs.engines import engines_of
from mrn.envs.requirements import (
    KEYS,
    UnsupportedEnvError,
    action_space,
    failing,
    goal_space,
    horizon,
)
from mrn.envs.tasks import native_task, resolve_env_id
from mrn.envs.vector import success_from_info
from mrn.utils.normalization import CLIP_RAW, MIN_STD

LONGEST = 100
"""Steps of an episode that are played to look at it."""
GOALS = 10
"""Episodes that are begun to see how goals differ."""
FINE = MIN_STD / 10
"""A standard deviation that is lost on a policy: it sees a tenth of what it sees of others."""
ROUNDING = 1e-6
"""Of a value, the part that is no difference."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    verdict: Literal["yes", "but", "no", "-"]
    """Fits; fits, with a remedy that makes it better; cannot be trained on; could not be seen."""
    found: str
    remedy: str = ""


class _Moment(NamedTuple):
    """A step of an episode: what was shown, and how it was judged."""

    shown: np.ndarray
    reward: float
    success: Any


def check_env(
    name: str, reward_shift: float = 0.0, kwargs: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Look at all that training needs of an environment; none is "no" if it can be trained on.

    Args:
        name: A task that `mrn tasks` lists, or the Gymnasium id of an environment.
        reward_shift: Added to its rewards.
        kwargs: What its constructor is given.

    Raises:
        UserError: There is no such environment, or it cannot be made.
    """
    native = native_task(name, reward_shift, kwargs)
    env_id, shift = resolve_env_id(name, reward_shift)
    env = make_env(env_id, kwargs)
    where = f"environment {name!r}"
    engines = " (by default) and ".join(engines_of(env_id, kwargs))
    try:
        return [
            *_required(env, where, shift, native is not None),
            *_played(env, where),
            Finding("engine", "yes", engines),
        ]
    finally:
        env.close()


def _required(env: gym.Env[Any, Any], where: str, shift: float, native: bool) -> Iterator[Finding]:
    """What training refuses to go without, by the same functions."""

    def observations() -> str:
        space = goal_space(env.observation_space, where)
        state, goal = (spaces.flatdim(space[key]) for key in ("observation", "desired_goal"))
        return f"state of {state} values, goals of {goal}"

    def actions() -> str:
        space = action_space(env, where)
        bounds = sorted({(float(a), float(b)) for a, b in zip(space.low, space.high, strict=True)})
        said = " and ".join(f"[{low:g}, {high:g}]" for low, high in bounds)
        return f"{space.shape[0]} values in {said}, {space.dtype}"

    shown = _looked_at("observations", observations)
    yield shown
    yield _looked_at("actions", actions)
    yield _looked_at("limit of steps", lambda: f"{horizon(env, where)} in an episode")
    if shown.verdict == "no":
        yield Finding("reward, by row", "-", "the observations come first")
        return
    try:
        reward = EnvReward(env, where, shift)
    except UnsupportedEnvError as unfit:
        yield Finding("reward, by row", "no", unfit.problem, unfit.remedy)
        return
    yield Finding("reward, by row", "yes", "in [-1, 0] on goals of four episodes")
    if native:
        theirs = "" if reward.batched else "; the environment's own is wrong, for other libraries"
        yield Finding("reward, by batch", "yes", f"computed in torch, on the device{theirs}")
    elif reward.batched:
        yield Finding("reward, by batch", "yes", "the same as by row")
    else:
        slow = "not the same as by row, so it is called row by row, which is slow"
        remedy = "let compute_reward take goals of shape (N, goal): axis=-1 instead of all values"
        yield Finding("reward, by batch", "but", slow, remedy)


def _looked_at(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "yes", look())
    except UnsupportedEnvError as unfit:
        return Finding(what, "no", unfit.problem, unfit.remedy)


def _played(env: gym.Env[Any, Any], where: str) -> Iterator[Finding]:
    """What an episode shows, played again after the same seed."""
    what = "same seed, same episode"
    try:
        goal_size = spaces.flatdim(goal_space(env.observation_space, where)["desired_goal"])
        action_space(env, where)
    except UnsupportedEnvError:
        yield Finding(what, "-", "observations and actions come first")
        return
    try:
        # The first of three is left out, so that both others come after the same episode.
        _, first, second = (_play(env, where) for _ in range(3))
        repeated = _repeated(env, where, what, first, second)
        begun = [_play(env, where, seed, longest=0)[0] for seed in range(GOALS)]
    except UnsupportedEnvError as unfit:
        yield Finding(what, "no", unfit.problem, unfit.remedy)
        return
    yield repeated
    if first[-1].success is None:
        remedy = 'put "is_success" into info, if success is something else'
        yield Finding("success", "yes", "not told in info: a reward of 0 counts", remedy)
    else:
        yield Finding("success", "yes", "told in info")
    yield from _told_apart(first, begun, goal_size)


def _told_apart(played: list[_Moment], begun: list[_Moment], goal_size: int) -> Iterator[Finding]:
    """Whether values differ on the scale on which a policy sees them: the normaliser's.

    Args:
        played: An episode.
        begun: The first moments of others.
        goal_size: Values of a goal.
    """
    shown = np.stack([moment.shown for moment in (*played, *begun)])  # (moments, values)
    state_size = shown.shape[1] - 2 * goal_size
    sizes = zip(KEYS, (state_size, goal_size, goal_size), strict=True)
    names = [f"value {i + 1} of {key!r}" for key, size in sizes for i in range(size)]
    yield judge_size(np.abs(shown).max(axis=0), names)
    state, achieved, goal = np.split(shown, [state_size, state_size + goal_size], axis=1)
    differs = deviation(goal[len(played) :]) > 0  # from episode to episode
    # Achieved goals are goals in hindsight, and have a part in their scale.
    spread = np.where(differs, deviation(np.concatenate([achieved, goal])), 0.0)
    yield judge_spread(deviation(state), spread, names[-goal_size:])


def judge_size(largest: np.ndarray, names: list[str]) -> Finding:
    """Whether values are beyond what is clipped; by the largest of each, shape (values,)."""
    what, worst = "size of values", int(largest.argmax())
    if largest[worst] <= CLIP_RAW:
        return Finding(what, "yes", f"up to {largest[worst]:.3g}, where {CLIP_RAW:g} is seen")
    found = f"{names[worst]} comes to {largest[worst]:.4g}: beyond {CLIP_RAW:g} all look alike"
    return Finding(what, "but", found, "rescale what it shows, as from millimetres to metres")


def judge_spread(state: np.ndarray, goal: np.ndarray, names: list[str]) -> Finding:
    """Whether values differ too little; by the standard deviations of states and of goals."""
    what, fine = "spread of values", (goal > 0) & (goal < FINE)
    if fine.any():
        which = int(fine.argmax())
        found = f"{names[which]} has a standard deviation of {goal[which]:.2g}"
    elif 0 < state.max() < FINE:  # a single one is often noise, such as of a gripper that is shut
        found = f"no standard deviation in 'observation' is above {state.max():.2g}"
    else:
        return Finding(what, "yes", "enough to tell states and goals apart")
    found += f": far below {MIN_STD:g} values look alike"
    return Finding(what, "but", found, "rescale what it shows, as from kilometres to metres")


def deviation(values: np.ndarray) -> np.ndarray:
    """Standard deviations of values of shape (N, size); 0 where they differ by rounding alone."""
    std = values.std(axis=0)
    rounding = ROUNDING * np.maximum(np.abs(values).max(axis=0), MIN_STD)
    return np.where(std > rounding, std, 0.0)


def _repeated(
    env: gym.Env[Any, Any], where: str, what: str, first: list[_Moment], second: list[_Moment]
) -> Finding:
    """Whether a seed decides an episode: at once, and after episodes of other seeds."""
    step = _first_difference(first, second)
    if step is not None:
        found = f"another one from step {step} on: no run could be repeated, or resumed as it was"
        remedy = "call super().reset(seed=seed), and draw all random numbers from self.np_random"
        return Finding(what, "but", found, remedy)
    _play(env, where, seed=1)
    step = _first_difference(first, _play(env, where))
    if step is not None:
        found = f"after other episodes another one from step {step} on: no run could be resumed "
        remedy = "let reset undo all that the simulation remembers, or make it anew"
        return Finding(what, "but", found + "as it was", remedy)
    return Finding(what, "yes", f"{len(first) - 1} steps with random actions, digit for digit")


def _first_difference(first: list[_Moment], second: list[_Moment]) -> int | None:
    """The step from which two episodes are not the same; None if they are."""
    for step, (one, other) in enumerate(zip(first, second, strict=False)):
        if not np.array_equal(one.shown, other.shown) or one.reward != other.reward:
            return step
    return None if len(first) == len(second) else min(len(first), len(second))


def _play(
    env: gym.Env[Any, Any], where: str, seed: int = 0, longest: int = LONGEST
) -> list[_Moment]:
    """An episode after a seed, or its beginning, with random actions.

    Raises:
        UnsupportedEnvError: The environment fails, or shows what its spaces do not have.
    """
    space, random = action_space(env, where), np.random.default_rng(seed)
    with failing(where, "reset"):
        shown, _ = env.reset(seed=seed)
        played = [_Moment(_flat(env, shown, where), 0.0, None)]
    for _ in range(longest):
        action = random.uniform(space.low, space.high).astype(space.dtype)
        with failing(where, "step"):
            shown, reward, terminated, truncated, info = env.step(action)
            played.append(_Moment(_flat(env, shown, where), float(reward), success_from_info(info)))
        if terminated or truncated:
            break
    return played


def _flat(env: gym.Env[Any, Any], shown: Any, where: str) -> np.ndarray:
    """The three vectors of an observation as one; not what its space says, or not finite: refused.

    Raises:
        UnsupportedEnvError: Says which one.
    """
    for key in KEYS:
        if not isinstance(shown, Mapping) or key not in shown:
            raise UnsupportedEnvError(
                where, f"it shows no {key!r}", "mend the observation, or the space"
            )
        value, shape = np.asarray(shown[key]), env.observation_space[key].shape  # type: ignore[index]
        if value.shape != shape:
            problem = f"{key!r} has shape {value.shape}, its space says {shape}"
            raise UnsupportedEnvError(where, problem, "mend the observation, or the space")
        if not np.isfinite(value).all():
            problem = f"{key!r} is not finite: {value}"
            raise UnsupportedEnvError(
                where, problem, "training ends at such a number; mend the simulation"
            )
    return np.concatenate([np.asarray(shown[key], np.float64) for key in KEYS])
