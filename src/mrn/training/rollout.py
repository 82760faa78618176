"""Playing episodes: N environments from a reset to the end of each one's episode."""

from collections.abc import Callable

import numpy as np

from mrn.envs import GoalVectorEnv, Observation
from mrn.errors import UserError
from mrn.replay import Episodes

Policy = Callable[[Observation], np.ndarray]
"""Observations of N environments to actions in [-1, 1], shape (N, action)."""


def play(envs: GoalVectorEnv, policy: Policy, into: Episodes, seed: int | None = None) -> Episodes:
    """Play one episode in each environment, into arrays that are overwritten.

    An environment that ends early is stepped on until all have ended (a vector of environments
    has one clock), but what it does then lies beyond its episode's length and is never read.

    Args:
        envs: The environments.
        policy: Chooses the actions.
        into: Where to write; also what is returned.
        seed: If given, decides all that is random in the environments from here on.
    """
    into.length.fill(envs.task.horizon)
    into.terminated.fill(False)
    running = np.ones(envs.num_envs, bool)
    observation = envs.reset(seed)
    _store(into, 0, observation)
    for t in range(envs.task.horizon):
        action = policy(observation)
        step = envs.step(action)
        observation = step.observation
        into.action[:, t] = action
        into.success[:, t] = step.success
        _store(into, t + 1, observation)
        ended = running & (step.terminated | step.truncated)
        if ended.any():
            into.length[ended] = t + 1
            into.terminated[ended] = step.terminated[ended]
            running &= ~ended
            if not running.any():
                break
    return into


def _store(into: Episodes, t: int, observation: Observation) -> None:
    for name, value in observation._asdict().items():
        if not np.isfinite(value).all():
            env = int(np.argwhere(~np.isfinite(value))[0, 0])
            raise UserError(
                f"not a finite number in the environment's {name} (environment {env}, step {t}): "
                f"{value[env]}; mend the environment"
            )
        getattr(into, name)[:, t] = value
