"""Rollouts: one episode in each of N parallel environments."""

from collections.abc import Callable, Iterator

import numpy as np

from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs import GoalVectorEnv, Observation
from mrn.replay import Episodes
from mrn.utils.errors import DIVERGED_HINT, RunError

Policy = Callable[[Observation], np.ndarray]
"""Function from observations of N environments to actions in [-1, 1], shape (N, action)."""


def collect_episodes(
    envs: GoalVectorEnv,
    policy: Policy,
    into: Episodes,
    seed: int | None = None,
    episode: int = 0,
) -> Episodes:
    """Play one episode in each environment and store it in preallocated arrays.

    Environments that end early are stepped until all have ended, because a vector environment steps
    all of them together. Rows beyond an episode's length are never read.

    Args:
        envs: The environments.
        policy: The policy that acts.
        into: The arrays to overwrite; also the return value.
        seed: Seed of the episodes; None continues with the next ones.
        episode: Index of the episode for this seed.

    Raises:
        RunError: An observation or an action is not finite.
    """
    into.length.fill(envs.task.horizon)
    into.terminated.fill(False)
    running = np.ones(envs.num_envs, bool)
    observation = envs.reset(seed, episode)
    _store(into, 0, observation, envs.first)
    for t in range(envs.task.horizon):
        action = policy(observation)
        _check_finite("action of the policy", action, t, envs.first, DIVERGED_HINT)
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
    """Play a number of episodes over all ranks, one per environment at a time.

    Yields:
        Episodes of this rank, in arrays that the next iteration overwrites. The last rollout drops
        the surplus environments. This does not favor short episodes, because all environments play
        in lockstep.
    """
    into = Episodes.allocate(envs.task, envs.num_envs)
    total_envs = envs.num_envs * ranks.size
    for start in range(0, episodes, total_envs):
        played = collect_episodes(envs, policy, into, seed, start // total_envs)
        needed = min(max(episodes - start - envs.first, 0), envs.num_envs)
        yield Episodes(*(values[:needed] for values in played))


KEYS = {"state": "observation", "achieved": "achieved_goal", "goal": "desired_goal"}
"""Keys of a goal environment's observation, by the names of `Observation`."""


def _store(into: Episodes, t: int, observation: Observation, first: int) -> None:
    for name, value in observation._asdict().items():
        stored = getattr(into, name)[:, t]
        with np.errstate(over="ignore"):  # values beyond float32 fail the check below
            stored[:] = value
        _check_finite(f"{KEYS[name]} of the environment", stored, t, first)


def _check_finite(name: str, value: np.ndarray, t: int, first: int, remedy: str = "") -> None:
    """Raise if a value is not finite; a remedy marks errors that resuming would repeat."""
    if not np.isfinite(value).all():
        env = int(np.argwhere(~np.isfinite(value))[0, 0])
        where = f"environment {first + env}, step {t}"
        message = f"the {name} is not finite ({where}): {value[env]}"
        raise RunError(message + (f"; {remedy}" if remedy else ""), resumable=not remedy)
