"""Any Gymnasium goal environment as a task: its spaces are checked, its own reward is used."""

import contextlib
import importlib
import io
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from mrn.envs.tasks import TASKS, Task, TaskShape
from mrn.errors import UserError, unknown

KEYS = ("observation", "achieved_goal", "desired_goal")


def make_env(env_id: str) -> gym.Env[Any, Any]:
    """Make one environment by its id; `package.module:Id-v0` imports the module first."""
    register_robotics()
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        return gym.make(name)
    except ImportError as error:
        raise UserError(f"cannot import what environment {env_id!r} needs: {error}") from error
    except gym.error.UnregisteredEnv:
        raise unknown("task", env_id, [*TASKS, *_similar_ids(name)]) from None
    except gym.error.Error as error:
        raise UserError(f"cannot make environment {env_id!r}: {error}") from error


def register_robotics() -> None:
    """Make Gymnasium-Robotics' environments known to Gymnasium."""
    # On import it prints a notice about Adroit environments, which none of the tasks is.
    with contextlib.redirect_stderr(io.StringIO()):
        import gymnasium_robotics
    gym.register_envs(gymnasium_robotics)


def task_of(env_id: str, reward_shift: float = 0.0) -> Task:
    """Describe a goal environment as a task, after checking that it is one.

    Raises:
        UserError: Its spaces, its reward or its registration do not fit; says what and the remedy.
    """
    env = make_env(env_id)
    where = f"environment {env_id!r}"
    space, action = env.observation_space, env.action_space
    if not isinstance(space, spaces.Dict) or not set(KEYS) <= set(space):
        raise UserError(
            f"{where} is no goal environment: its observations must be a Dict with the keys "
            f"{', '.join(KEYS)}, got {space}"
        )
    for key in KEYS:
        if not isinstance(space[key], spaces.Box) or len(space[key].shape or ()) != 1:
            raise UserError(
                f"{where}: {key!r} must be a vector (a Box of one dimension), got {space[key]}; "
                "gymnasium.wrappers.FlattenObservation shows how to flatten a space"
            )
    if space["achieved_goal"].shape != space["desired_goal"].shape:
        raise UserError(f"{where}: achieved_goal and desired_goal must have the same shape")
    if not isinstance(action, spaces.Box) or len(action.shape) != 1 or not action.is_bounded():
        raise UserError(
            f"{where}: the action space must be a bounded Box of one dimension, got {action}; "
            "gymnasium.wrappers.RescaleAction gives it bounds"
        )
    horizon = env.spec.max_episode_steps if env.spec else None
    if horizon is None:
        raise UserError(f"{where} has no limit of steps: register it with max_episode_steps")
    shape = TaskShape(
        name=env_id,
        env_id=env_id,
        state_dim=spaces.flatdim(space["observation"]),
        goal_dim=spaces.flatdim(space["desired_goal"]),
        action_low=tuple(map(float, action.low)),
        action_high=tuple(map(float, action.high)),
        horizon=horizon,
        reward_shift=reward_shift,
    )
    return Task(shape, EnvReward(env, where, reward_shift))


class EnvReward:
    """The environment's own `compute_reward`, on batches of tensors.

    It runs on the host, in NumPy. It is called once per batch if the environment's version is
    right for batches (checked at the start against calls row by row), else once per row.
    """

    def __init__(self, env: gym.Env[Any, Any], where: str, shift: float) -> None:
        """Check on real goals that the reward can be recomputed and lies in [-1, 0]."""
        self.where, self.shift = where, shift
        try:
            self.compute = env.get_wrapper_attr("compute_reward")
        except AttributeError:
            raise UserError(
                f"{where} has no compute_reward(achieved_goal, desired_goal, info), "
                "which hindsight needs to reward other goals"
            ) from None
        achieved, desired = self._probe(env)
        rows = self._by_row(achieved, desired)
        try:
            batched = np.asarray(self.compute(achieved, desired, {}))
            self.batched = batched.shape == rows.shape and np.array_equal(batched, rows)
        except Exception:  # whatever a user's reward raises on a batch it was not written for
            self.batched = False
        self._shifted(rows)

    @staticmethod
    def _probe(env: gym.Env[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Achieved and desired goals of a few resets: as they are, as if reached, and between."""
        seen = [env.reset(seed=seed)[0] for seed in range(4)]
        desired = np.stack([obs["desired_goal"] for obs in seen])
        variants = [np.stack([obs["achieved_goal"] for obs in seen]), desired]
        for column in range(desired.shape[1]):  # reached but for one value
            off = desired.copy()
            off[:, column] = variants[0][:, column]
            variants.append(off)
        return np.concatenate(variants), np.concatenate([desired] * len(variants))

    def _by_row(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        rows = zip(achieved, desired, strict=True)
        return np.asarray([float(self.compute(a.copy(), d.copy(), {})) for a, d in rows])

    def _shifted(self, reward: np.ndarray) -> np.ndarray:
        reward = reward + self.shift
        if not ((reward >= -1) & (reward <= 0)).all():  # NaN fails too
            worst = reward[~((reward >= -1) & (reward <= 0))][0]
            raise UserError(
                f"{self.where}: rewards must lie in [-1, 0] (-1 until the goal, 0 at it), got "
                f"{worst:g}; where it gives 1 at the goal and 0 elsewhere, set reward_shift to -1"
            )
        return reward

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Rewards of goals of shape (B, goal), on their device."""
        a, d = achieved.cpu().double().numpy(), desired.cpu().double().numpy()
        reward = np.asarray(self.compute(a, d, {})) if self.batched else self._by_row(a, d)
        return torch.as_tensor(self._shifted(reward), dtype=achieved.dtype, device=achieved.device)


def _similar_ids(name: str) -> list[str]:
    """Registered ids that begin like the name, for the error's list of what there is."""
    return sorted(env_id for env_id in gym.registry if env_id.lower().startswith(name.lower()[:5]))
