"""Playing episodes: N environments from a reset to the end of each one's episode."""

from collections.abc import Callable, Iterator

import numpy as np

from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs import GoalVectorEnv, Observation
from mrn.replay import Episodes
from mrn.utils.errors import DIVERGED_HINT, RunError

Policy = Callable[[Observation], np.ndarray]
"""Observations of N environments to actions in [-1, 1], shape (N, action)."""


def collect_episodes(
    envs: GoalVectorEnv,
    policy: Policy,
    into: Episodes,
    seed: int | None = None,
    episode: int = 0,
) -> Episodes:
    """Play one episode in each environment, into arrays that are overwritten.

    An environment that ends early is stepped on until all have ended (a vector of environments
    has one clock), but what it shows then lies beyond its episode's length and is never read;
    Gymnasium's environments rest meanwhile.

    Args:
        envs: The environments.
        policy: Chooses the actions.
        into: Where to write; also what is returned.
        seed: If given, begin the episode of a number since this seed; else the next one.
        episode: That number.
    """
    into.length.fill(envs.task.horizon)
    into.terminated.fill(False)
    running = np.ones(envs.num_envs, bool)
    observation = envs.reset(seed, episode)
    _store(into, 0, observation, envs.first)
    for t in range(envs.task.horizon):
        action = policy(observation)
        _check("policy's action", action, t, envs.first, DIVERGED_HINT)
        step = envs.step(action)
        observation = step.observation
        into.action[:, t] = action
        into.success[:, t] = step.success
        _store(into, t + 1, observation, envs.first)
        ended = running & (step.terminated | step.truncated)
        if ended.any():
            into.length[ended] = t + 1
            into.terminated[ended] = step.terminated[ended]
            running &= ~ended
            if not running.any():
                break
    return into


def iter_rollouts(
    envs: GoalVectorEnv, policy: Policy, episodes: int, seed: int, ranks: Ranks = SINGLE_PROCESS
) -> Iterator[Episodes]:
    """Play so many episodes since a seed, as many at a time as there are environments over all ranks.

    Yields:
        Episodes of this process, in arrays that the next ones overwrite. Environments play in
        lockstep, so that leaving out the surplus of the last round favours no one.
    """
    into = Episodes.allocate(envs.task, envs.num_envs)
    for before in range(0, episodes, envs.num_envs * ranks.size):
        played = collect_episodes(envs, policy, into, seed, before // (envs.num_envs * ranks.size))
        wanted = min(max(episodes - before - envs.first, 0), envs.num_envs)
        yield Episodes(*(values[:wanted] for values in played))


def _store(into: Episodes, t: int, observation: Observation, first: int) -> None:
    for name, value in observation._asdict().items():
        stored = getattr(into, name)[:, t]
        with np.errstate(over="ignore"):  # what does not fit float32 is refused below
            stored[:] = value
        _check(f"environment's {name}", stored, t, first)


def _check(what: str, value: np.ndarray, t: int, first: int, remedy: str = "") -> None:
    """Refuse what is not finite; a remedy is given where going on would come to the same point."""
    if not np.isfinite(value).all():
        env = int(np.argwhere(~np.isfinite(value))[0, 0])
        where = f"{what} (environment {first + env}, step {t}): {value[env]}"
        told = f"not a finite number in the {where}" + (f"; {remedy}" if remedy else "")
        raise RunError(told, resumable=not remedy)
