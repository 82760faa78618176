"""Any Gymnasium goal environment as a task: its spaces are checked, its own reward is used."""

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from mrn.envs.requirements import (
    UnsupportedEnvError,
    action_space,
    failing,
    goal_space,
    horizon,
    reward_method,
)
from mrn.envs.tasks import ON_ENVPOOL, TASKS, Task, TaskSpec
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.plugins import describe_error, import_plugin


def make_env(env_id: str, kwargs: Mapping[str, Any] | None = None) -> gym.Env[Any, Any]:
    """Make one environment by its id; `package.module:Id-v0` imports the module first.

    Args:
        env_id: As it is registered.
        kwargs: What its constructor is given.

    Raises:
        UserError: There is no such environment, or it cannot be made; says where it failed.
    """
    register_robotics()
    module, _, name = env_id.rpartition(":")
    before = set(gym.registry)
    if module:
        import_plugin(module)
    try:
        return gym.make(name, **(kwargs or {}))
    except gym.error.UnregisteredEnv:
        if module:
            theirs = _ids_of(module) | (set(gym.registry) - before)
            raise unknown_name(
                "environment", env_id, sorted(f"{module}:{i}" for i in theirs)
            ) from None
        more = "`mrn tasks` lists further ones, and package.module:Id-v0 is one of your own"
        raise unknown_name("task", env_id, [*TASKS, *_similar_ids(name)], more) from None
    except gym.error.DependencyNotInstalled as error:
        if "mujoco_py" in str(error) and (newest := _newest(name)) in ON_ENVPOOL:
            raise UserError(
                f"cannot make environment {env_id!r}: its simulator, mujoco-py, is no more; "
                f"{newest} is its successor, and what EnvPool has under the name of {name}"
            ) from None
        raise UserError(f"cannot make environment {env_id!r}: {error}") from error
    except gym.error.Error as error:
        raise UserError(f"cannot make environment {env_id!r}: {error}") from error
    except Exception as error:  # whatever its constructor raises
        raise UserError(f"cannot make environment {env_id!r}: {describe_error(error)}") from error


def register_robotics() -> None:
    """Make Gymnasium-Robotics' environments known to Gymnasium."""
    # On import it prints a notice about Adroit environments, which none of the tasks is.
    with contextlib.redirect_stderr(io.StringIO()):
        import gymnasium_robotics
    gym.register_envs(gymnasium_robotics)


def task_of(
    env_id: str, reward_shift: float = 0.0, kwargs: Mapping[str, Any] | None = None
) -> Task:
    """Describe a goal environment as a task, after checking that it is one.

    Args:
        env_id: As it is registered; `package.module:Id-v0` imports the module first.
        reward_shift: Added to its rewards.
        kwargs: What its constructor is given.

    Raises:
        UserError: Its spaces, its reward or its registration do not fit; says what and the remedy.
    """
    env = make_env(env_id, kwargs)
    where = f"environment {env_id!r}"
    space, action = goal_space(env.observation_space, where), action_space(env, where)
    spec = TaskSpec(
        name=env_id,
        env_id=env_id,
        state_dim=spaces.flatdim(space["observation"]),
        goal_dim=spaces.flatdim(space["desired_goal"]),
        action_low=tuple(map(float, action.low)),
        action_high=tuple(map(float, action.high)),
        horizon=horizon(env, where),
        reward_shift=reward_shift,
        action_dtype="float64" if action.dtype == np.float64 else "float32",
        env_kwargs=dict(kwargs or {}),
    )
    return Task(spec, EnvReward(env, where, reward_shift))


class EnvReward:
    """The environment's own `compute_reward`, on batches of tensors.

    It runs on the host, in NumPy. It is called once per batch if the environment's version is
    right for batches (checked at the start against calls row by row), else once per row.
    """

    def __init__(self, env: gym.Env[Any, Any], where: str, shift: float) -> None:
        """Check on real goals that the reward can be recomputed and lies in [-1, 0]."""
        self.where, self.shift = where, shift
        self.compute = reward_method(env, where)
        with failing(where, "reset"):
            achieved, desired = self._probe(env)
        rows = self._by_row(achieved, desired)
        try:
            batched = np.asarray(self.compute(achieved, desired, {}))
            # A dense reward may be rounded otherwise; a wrong one is off by far more.
            self.batched = batched.shape == rows.shape and np.allclose(batched, rows, atol=1e-6)
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
        with failing(self.where, "compute_reward"):
            return np.asarray([float(self.compute(a.copy(), d.copy(), {})) for a, d in rows])

    def _shifted(self, reward: np.ndarray) -> np.ndarray:
        reward = reward + self.shift
        if not ((reward >= -1) & (reward <= 0)).all():  # NaN fails too
            worst = reward[~((reward >= -1) & (reward <= 0))][0]
            raise UnsupportedEnvError(
                self.where,
                f"rewards must lie in [-1, 0] (-1 until the goal, 0 at it), got {worst:g}",
                "where it gives 1 at the goal and 0 elsewhere, set reward_shift to -1",
            )
        return reward

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Rewards of goals of shape (B, goal), on their device."""
        a, d = achieved.cpu().double().numpy(), desired.cpu().double().numpy()
        if self.batched:
            with failing(self.where, "compute_reward"):
                reward = np.asarray(self.compute(a, d, {}))
        else:
            reward = self._by_row(a, d)
        return torch.as_tensor(self._shifted(reward), dtype=achieved.dtype, device=achieved.device)


def _ids_of(module: str) -> set[str]:
    """Ids whose environments live in a module, or in its package."""
    return {
        env_id
        for env_id, spec in gym.registry.items()
        if str(getattr(spec.entry_point, "__module__", spec.entry_point)).startswith(module)
    }


def _similar_ids(name: str) -> list[str]:
    """Registered ids that begin like the name, for the error's list of what there is."""
    return sorted(env_id for env_id in gym.registry if env_id.lower().startswith(name.lower()[:5]))


def _newest(env_id: str) -> str:
    """The id of an environment with its highest version."""
    name = gym.registry[env_id].name
    versions = [spec for spec in gym.registry.values() if spec.name == name]
    return max(versions, key=lambda spec: spec.version or 0).id
