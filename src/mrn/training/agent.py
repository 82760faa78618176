"""A policy with all it needs to act: networks, normaliser, and the shape of its task."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from mrn.agents import AGENTS
from mrn.config import Config, from_dict
from mrn.critics import Dims, make_critic
from mrn.envs import Observation, TaskShape
from mrn.errors import UserError, look_up
from mrn.replay import Normalizer
from mrn.training.rundir import write_atomically
from mrn.training.seeding import make_generator, seeded_weights

_DAMAGE = (safetensors.SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError)
"""What reading a damaged or foreign file can raise."""


class Agent:
    """What `mrn.train` and `mrn.load` return: a learner with its normaliser."""

    def __init__(self, config: Config, shape: TaskShape, device: torch.device) -> None:
        """Build an untrained agent; its weights depend on the configuration's seed alone."""
        self.config, self.shape, self.device = config, shape, device
        learner_class = look_up("agent", config.agent, AGENTS)
        sizes = (shape.state_dim, shape.action_dim, shape.goal_dim)
        with seeded_weights(config.seed):
            critic = make_critic(config.critic, *sizes, width=config.learning.width)
            self.learner = learner_class(Dims(*sizes), critic.to(device), config.learning)
        self.normalizer = Normalizer(shape).to(device)
        self.generator = make_generator(config.seed, "exploration", device)

    def act(self, observation: Observation) -> np.ndarray:
        """The policy's actions for N environments, in [-1, 1], shape (N, action)."""
        return self.learner.act(*self._inputs(observation)).cpu().numpy()

    def explorer(self, steps: int, num_envs: int) -> Callable[[Observation], np.ndarray]:
        """The same as training explores, for so many steps, whose noise is drawn at once."""
        noise = self.learner.draw_noise(steps, num_envs, generator=self.generator)
        moments = map(type(noise), *noise)

        def explore(observation: Observation) -> np.ndarray:
            inputs = self._inputs(observation)
            return self.learner.explore(*inputs, next(moments)).cpu().numpy()

        return explore

    def predict(
        self,
        observation: dict[str, np.ndarray],
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Choose an action, by Stable-Baselines3's convention.

        Args:
            observation: A goal environment's observation, or a batch of them.
            state: Ignored; here for the convention.
            episode_start: Ignored; here for the convention.
            deterministic: The policy's own action, or one with training's exploration.

        Returns:
            The action in the environment's own units, and None.
        """
        arrays = [np.asarray(observation[key]) for key in ("observation", "desired_goal")]
        sizes = (self.shape.state_dim, self.shape.goal_dim)
        if any(x.shape[-1:] != (size,) for x, size in zip(arrays, sizes, strict=True)):
            raise UserError(
                f"this policy of {self.shape.name} expects observations of {sizes[0]} and goals of "
                f"{sizes[1]} values, got shapes {arrays[0].shape} and {arrays[1].shape}"
            )
        states, goals = (np.atleast_2d(array) for array in arrays)
        policy = self.act if deterministic else self.explorer(1, len(states))
        action = self.shape.to_bounds(policy(Observation(states, goals, goals)))
        return action if arrays[0].ndim > 1 else action[0], None

    def _inputs(self, observation: Observation) -> tuple[Tensor, Tensor]:
        state, goal = (
            torch.as_tensor(array, dtype=torch.float32, device=self.device)
            for array in (observation.state, observation.goal)
        )
        return self.normalizer.state(state), self.normalizer.goal(goal)

    def state_dict(self) -> dict[str, Tensor]:
        """All weights and statistics by name."""
        parts = {"learner": self.learner, "normalizer": self.normalizer}
        return {
            f"{part}.{name}": value
            for part, module in parts.items()
            for name, value in module.state_dict().items()
        }

    def save(self, path: Path) -> None:
        """Write one safetensors file that `load` needs nothing else for."""
        about = {"config": self.config.to_dict(), "task": vars(self.shape)}
        tensors = {name: value.contiguous() for name, value in self.state_dict().items()}
        write_atomically(path, safetensors.torch.save(tensors, {"mrn": json.dumps(about)}))

    @classmethod
    def load(cls, path: Path, device: torch.device) -> "Agent":
        """Read a file written by `save`; nothing in it is executed.

        Raises:
            UserError: The file is missing, damaged or not one of ours.
        """
        try:
            with safetensors.safe_open(path, framework="pt", device=str(device)) as file:
                about = json.loads((file.metadata() or {})["mrn"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            config = from_dict(Config, about["config"], str(path))
            agent = cls(config, from_dict(TaskShape, about["task"], str(path)), device)
            for part, module in (("learner", agent.learner), ("normalizer", agent.normalizer)):
                prefix = f"{part}."
                module.load_state_dict(
                    {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
                )
        except FileNotFoundError:
            raise UserError(f"there is no file {path}") from None
        except _DAMAGE as error:
            raise UserError(f"{path} is not a policy saved by mrn: {error}") from None
        return agent


def find_weights(run: str | Path, weights: str = "latest") -> Path:
    """The weights file of a run folder, or the file itself."""
    path = Path(run)
    if path.is_dir():
        look_up("weights", weights, {"latest": None, "best": None})
        path = path / f"{weights}.safetensors"
        if not path.exists():
            raise UserError(
                f"{run} holds no {path.name}: no run folder, or no epoch of it is finished yet"
            )
    elif not path.exists():
        raise UserError(f"there is no run folder or weights file {run}")
    return path
