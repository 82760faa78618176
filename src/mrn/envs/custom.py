"""Custom Gymnasium goal environments as tasks, with the environment's own reward."""

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from mrn.envs.objects import unknown_object
from mrn.envs.requirements import (
    UnsupportedEnvError,
    action_space,
    goal_space,
    horizon,
    reward_method,
    wrap_env_errors,
)
from mrn.envs.success import EnvSuccess
from mrn.envs.tasks import ENVPOOL_ENV_IDS, OBJECT_PREFIX, TASKS, Task, TaskSpec
from mrn.envs.versions import warn_if_fetch_moved
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.plugins import describe_error, describe_module, import_plugin

_WITHOUT_GOALS = ("AdroitHand", "FrankaKitchen")
"""Environments of Gymnasium-Robotics that are not goal environments with vectors as goals."""


def make_env(env_id: str, kwargs: Mapping[str, Any] | None = None) -> gym.Env[Any, Any]:
    """Create one environment; `package.module:Id-v0` imports the module first.

    Args:
        env_id: Registered Gymnasium id.
        kwargs: Keyword arguments for the environment's constructor.

    Raises:
        UserError: The id is unknown, or the constructor fails.
    """
    register_robotics()
    module, _, name = env_id.rpartition(":")
    if name.startswith("Fetch"):
        warn_if_fetch_moved()
    registered = set(gym.registry)
    imported = import_plugin(module) if module else None
    try:
        return gym.make(name, **(kwargs or {}))
    except UserError:  # of an environment object
        raise
    except gym.error.UnregisteredEnv:
        if name.startswith(OBJECT_PREFIX):
            raise unknown_object(name) from None
        if imported:
            candidates = _ids_of(module) | (set(gym.registry) - registered)
            if not candidates:
                raise UserError(
                    f"unknown environment {env_id!r}: {describe_module(imported)} registers no "
                    "environment. If this is not your module, rename yours"
                ) from None
            raise unknown_name(
                "environment", env_id, sorted(f"{module}:{i}" for i in candidates)
            ) from None
        more = "`mrn tasks` lists more; name a custom environment package.module:Id-v0"
        raise unknown_name("task", env_id, [*TASKS, *_similar_ids(name)], more) from None
    except gym.error.DependencyNotInstalled as error:
        if "mujoco_py" in str(error) and (latest := _latest_version(name)) != name:
            same = latest in ENVPOOL_ENV_IDS
            raise UserError(
                f"cannot make environment {env_id!r}: its simulator, mujoco-py, is unmaintained; "
                f"use {latest} instead"
                + (f", which EnvPool also simulates under the name {name}" if same else "")
            ) from None
        raise UserError(f"cannot make environment {env_id!r}: {error}") from error
    except gym.error.Error as error:
        raise UserError(f"cannot make environment {env_id!r}: {error}") from error
    except (Exception, SystemExit) as error:  # a custom constructor may raise anything
        raise UserError(f"cannot make environment {env_id!r}: {describe_error(error)}") from error


def register_robotics() -> None:
    """Register the environments of Gymnasium-Robotics."""
    # Importing it prints a notice about the Adroit environments, which no task uses.
    with contextlib.redirect_stderr(io.StringIO()):
        import gymnasium_robotics
    gym.register_envs(gymnasium_robotics)


def make_custom_task(
    env_id: str, reward_shift: float = 0.0, kwargs: Mapping[str, Any] | None = None
) -> Task:
    """Create the task of a custom goal environment, after checking the environment.

    Args:
        env_id: Registered Gymnasium id; `package.module:Id-v0` imports the module first.
        reward_shift: Constant added to the rewards.
        kwargs: Keyword arguments for the environment's constructor.

    Raises:
        UserError: The environment cannot be created, or its spaces, reward or registration are
            not supported.
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
    reward = EnvReward(env, where, reward_shift)
    return Task(spec, reward, success=EnvSuccess(env, reward, where))


class EnvReward:
    """The environment's own `compute_reward`, applied to batches of tensors.

    It runs on the CPU, in NumPy. The method is called once per batch if it handles batches
    correctly, which the constructor tests against row-by-row calls, and once per row otherwise.
    """

    def __init__(self, env: gym.Env[Any, Any], where: str, shift: float) -> None:
        """Test on real goals that the reward can be recomputed and lies in [-1, 0]."""
        self.where, self.shift = where, shift
        self.compute = reward_method(env, where)
        with wrap_env_errors(where, "reset"):
            achieved, desired = self._sample_goals(env)
        rows = self._by_row(achieved, desired)
        try:
            batched = np.asarray(self.compute(achieved, desired, {}))
            # The tolerance admits different rounding of dense rewards; a wrong one is far off.
            self.batched = batched.shape == rows.shape and np.allclose(batched, rows, atol=1e-6)
        except Exception:  # a reward written for single rows may raise anything on a batch
            self.batched = False
        self._shift(rows)

    @staticmethod
    def _sample_goals(env: gym.Env[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return achieved and desired goals: as after a reset, reached, and partly reached."""
        observations = [env.reset(seed=seed)[0] for seed in range(4)]
        desired = np.stack([obs["desired_goal"] for obs in observations])
        variants = [np.stack([obs["achieved_goal"] for obs in observations]), desired]
        for column in range(desired.shape[1]):  # reached except for one coordinate
            off = desired.copy()
            off[:, column] = variants[0][:, column]
            variants.append(off)
        return np.concatenate(variants), np.concatenate([desired] * len(variants))

    def _by_row(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        rows = zip(achieved, desired, strict=True)
        with wrap_env_errors(self.where, "compute_reward"):
            return np.asarray([float(self.compute(a.copy(), d.copy(), {})) for a, d in rows])

    def _shift(self, reward: np.ndarray) -> np.ndarray:
        reward = reward + self.shift
        if not ((reward >= -1) & (reward <= 0)).all():  # NaN fails too
            worst = reward[~((reward >= -1) & (reward <= 0))][0]
            raise UnsupportedEnvError(
                self.where,
                f"rewards must lie in [-1, 0] (0 at the goal, -1 elsewhere), got {worst:g}",
                "if it returns 1 at the goal and 0 elsewhere, set reward_shift to -1",
            )
        return reward

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Return the rewards (B,) of goals (B, goal), on the device of the goals."""
        a, d = achieved.cpu().double().numpy(), desired.cpu().double().numpy()
        if self.batched:
            with wrap_env_errors(self.where, "compute_reward"):
                reward = np.asarray(self.compute(a, d, {}))
        else:
            reward = self._by_row(a, d)
        return torch.as_tensor(self._shift(reward), dtype=achieved.dtype, device=achieved.device)


def _ids_of(module: str) -> set[str]:
    """Return the registered ids whose entry point is in a module or its package."""
    return {
        env_id
        for env_id, spec in gym.registry.items()
        if str(getattr(spec.entry_point, "__module__", spec.entry_point)).startswith(module)
    }


def _similar_ids(name: str) -> list[str]:
    """Return the ids that share a prefix with the name and can be used, for the error message.

    Left out are old versions, which need mujoco-py, environments without vectors as goals, among
    them those of Gymnasium itself, and dense rewards that may be below -1.
    """

    def is_usable(env_id: str) -> bool:
        is_core = str(gym.registry[env_id].entry_point).startswith("gymnasium.envs")
        has_goals = not (is_core or env_id.startswith(_WITHOUT_GOALS))
        in_range = "Dense" not in env_id or env_id in ENVPOOL_ENV_IDS
        return has_goals and in_range and _latest_version(env_id) == env_id

    similar = (env_id for env_id in gym.registry if env_id.lower().startswith(name.lower()[:5]))
    return sorted(filter(is_usable, similar))


def _latest_version(env_id: str) -> str:
    """Return the id of the latest registered version of an environment."""
    name = gym.registry[env_id].name
    versions = [spec for spec in gym.registry.values() if spec.name == name]
    return max(versions, key=lambda spec: spec.version or 0).id
