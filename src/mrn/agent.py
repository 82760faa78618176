"""A policy with all it needs to act: networks, normaliser, and the shape of its task."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from mrn.algorithms import Algorithm, AlgorithmSettings, Policy, find_algorithm
from mrn.algorithms.exploration import uniform_actions
from mrn.config import Config
from mrn.critics import Critic, Dims, make_critic
from mrn.envs import Observation, Task, TaskSpec, find_task
from mrn.replay import Normalizer
from mrn.runs.layout import WEIGHTS, weights_file
from mrn.runs.policy_file import compress_policy, expand_policy, read_policy, write_policy
from mrn.utils.device import find_device
from mrn.utils.errors import UserError, lookup
from mrn.utils.seeding import make_generator, seeded_weights
from mrn.utils.validation import from_dict
from mrn.zoo import find_entry

if TYPE_CHECKING:
    from mrn.training.evaluation import Evaluation
    from mrn.training.reach import Reach


class Agent:
    """What `mrn.train` and `mrn.load` return: a algorithm with its normaliser."""

    def __init__(self, config: Config, spec: TaskSpec, device: torch.device) -> None:
        """Build an untrained agent; its weights depend on the configuration's seed alone."""
        self.config, self.spec, self.device = config, spec, device
        with seeded_weights(config.seed):
            self.algorithm = _make_algorithm(config, spec).to(device)
        self.normalizer = Normalizer(spec).to(device)
        bounds = (spec.action_low, spec.action_high, getattr(torch, spec.action_dtype))
        self.policy = Policy(self.normalizer, self.algorithm.actor, *bounds).to(device)
        self._prediction = make_generator(config.seed, "prediction", device)  # not training's

    @cached_property
    def task(self) -> Task:
        """What it was trained for, with its reward; one of the user's own is made for this."""
        return find_task(self.spec.env_id, self.spec.reward_shift, self.spec.env_kwargs)

    @torch.no_grad()
    def act(self, observation: Observation) -> np.ndarray:
        """The policy's actions for N environments, in [-1, 1], shape (N, action)."""
        return self.policy.unit(*self._tensors(observation)).cpu().numpy()

    def explorer(
        self, steps: int, num_envs: int, generator: torch.Generator, uniform: bool = False
    ) -> Callable[[Observation], np.ndarray]:
        """The policy as it acts in training, for so many steps; all noise is drawn at once.

        Args:
            steps: Of an episode.
            num_envs: Environments side by side.
            generator: Source of the noise.
            uniform: Uniform actions instead, as at the start of a run.
        """
        if uniform:
            dims = (self.spec.action_dim, steps, num_envs)
            explore = uniform_actions(*dims, generator)
        else:
            explore = self.algorithm.explorer(steps, num_envs, generator)

        def act(observation: Observation) -> np.ndarray:
            return explore(*self.policy.inputs(*self._tensors(observation))).cpu().numpy()

        return act

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Choose an action, by Stable-Baselines3's convention.

        Args:
            observation: A goal environment's observation, or a batch of them, with any number of
                axes before the last; a bare array, which the convention allows, is refused.
            state: Ignored; here for the convention.
            episode_start: Ignored; here for the convention.
            deterministic: The policy's own action, or one with training's exploration.

        Returns:
            The action in the environment's own units, and None.
        """
        arrays = self._checked(observation)
        batch = arrays[0].shape[:-1]  # none of one observation
        states, goals = (array.reshape(-1, array.shape[-1]) for array in arrays)  # (N, size)
        inputs = self._tensors(Observation(states, goals, goals))
        with torch.no_grad():
            if deterministic:
                actions = self.policy(*inputs)
            else:
                explore = self.algorithm.explorer(1, len(states), self._prediction)
                actions = self.policy.to_bounds(explore(*self.policy.inputs(*inputs)))
        return actions.cpu().numpy().reshape(*batch, self.spec.action_dim), None

    def _checked(self, observation: Any) -> tuple[np.ndarray, np.ndarray]:
        """State and goal of an observation that this policy can act on, as arrays of our own.

        Others may be what torch does not take, or warns of: read-only, backwards, big-endian.
        """
        name = f"this policy of {self.spec.name}"
        try:
            arrays = [np.asarray(observation[key]) for key in ("observation", "desired_goal")]
        except (KeyError, TypeError, IndexError):
            raise UserError(
                f"{name} needs a dictionary with the keys 'observation' and 'desired_goal', got "
                f"{list(observation) if isinstance(observation, dict) else type(observation)}"
            ) from None
        sizes = (self.spec.state_dim, self.spec.goal_dim)
        if any(x.shape[-1:] != (size,) for x, size in zip(arrays, sizes, strict=True)):
            raise UserError(
                f"{name} expects observations of {sizes[0]} and goals of {sizes[1]} values, got "
                f"shapes {arrays[0].shape} and {arrays[1].shape}"
            )
        if arrays[0].shape[:-1] != arrays[1].shape[:-1]:
            raise UserError(
                f"{name} needs as many goals as observations, got shapes {arrays[0].shape} and "
                f"{arrays[1].shape}"
            )
        for key, array in zip(("observation", "desired_goal"), arrays, strict=True):
            if array.dtype.kind not in "biuf":
                raise UserError(f"{name}: {key!r} must hold numbers, got {array.dtype}")
            if not np.isfinite(array).all():
                raise UserError(f"{name}: {key!r} holds a number that is not finite: {array}")
        state, goal = (np.array(array, np.float32, order="C") for array in arrays)
        return state, goal

    def evaluate(
        self,
        episodes: int = 100,
        seed: int = 0,
        engine: str = "auto",
        threads: int | None = None,
        progress: bool = False,
        goal: Sequence[float] | np.ndarray | None = None,
    ) -> "Evaluation":
        """Play episodes without noise, on either engine whatever engine trained the policy.

        Args:
            episodes: How many.
            seed: Of the environments.
            engine: `envpool`, `gymnasium`, or `auto`.
            threads: CPU threads for the simulation; by default all cores.
            progress: Whether to show a progress bar.
            goal: One of the user's choice for all episodes; by default each draws its own.

        Raises:
            UserError: A number is out of range, there is no such engine, it does not have the
                policy's task, or the goal does not fit it.
        """
        from mrn.training.evaluation import evaluate_agent  # which knows agents

        return evaluate_agent(self, episodes, seed, engine, threads, progress, goal)

    def reach(
        self,
        env: Any,
        goal: Sequence[float] | np.ndarray,
        seed: int | None = None,
        observation: dict[str, np.ndarray] | None = None,
        steps: int | None = None,
    ) -> "Reach":
        """Go to a goal of the user's choice, in a Gymnasium goal environment, until it is reached.

        Args:
            env: The environment; its own goal has no effect, unless it ends its episodes there.
            goal: As its `desired_goal` would be. One unlike those of the training is warned of.
            seed: Of the reset that this begins with.
            observation: The last one, to go on from there without a reset.
            steps: Actions at most; by default as many as an episode of the training had.

        Raises:
            UserError: The goal or the environment does not fit the policy, or the environment
                fails.
        """
        from mrn.training.reach import reach  # which knows agents

        return reach(self, env, goal, seed, observation, steps)

    def _tensors(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """States and goals on the device."""
        state, goal = (
            torch.as_tensor(array, dtype=torch.float32, device=self.device)
            for array in (observation.state, observation.goal)
        )
        return state, goal

    def state_dict(self) -> dict[str, Tensor]:
        """All weights and statistics by name, in place."""
        return _state(self.algorithm, self.normalizer)

    def save(self, path: str | Path, small: bool = False) -> None:
        """Write one safetensors file that `load` needs nothing else for.

        Args:
            path: The file.
            small: Without the targets, and in half precision: a quarter to half of the size, to act
                by and to look into. What is loaded from it acts by the rounded weights.
        """
        tensors = self.state_dict()
        about: dict[str, Any] = {"config": self.config.to_dict(), "task": vars(self.spec)}
        if small:
            about, tensors = about | {"small": True}, compress_policy(tensors)
        write_policy(Path(path), about, tensors)

    @classmethod
    def load(cls, path: str | Path, device: str | torch.device = "auto") -> "Agent":
        """Read a file written by `save`; `mrn.load` takes a run folder or a name of the zoo, too.

        Nothing in it is executed; but a module that it names, of a user's own critic or agent, is
        imported.

        Raises:
            UserError: The file is missing, damaged or not one of ours.
        """
        about, tensors = read_policy(Path(path))
        config = Config.from_json(about.get("config"), str(path))
        spec = from_dict(TaskSpec, about.get("task"), str(path))
        with torch.device("meta"):  # sizes first: a forged one must not cost memory
            own = _state(_make_algorithm(config, spec), Normalizer(spec))
            if about.get("small"):
                tensors = expand_policy(tensors, own)
            check_tensors(own, tensors, str(path))
        found = device if isinstance(device, torch.device) else find_device(device)
        agent = cls(config, spec, found)
        with torch.no_grad():
            for name, value in agent.state_dict().items():
                value.copy_(tensors[name])
        return agent


def _make_algorithm(config: Config, spec: TaskSpec) -> Algorithm:
    dims, settings = Dims(spec.state_dim, spec.action_dim, spec.goal_dim), config.algo_config
    assert isinstance(settings, AlgorithmSettings)  # a plain table is for reading alone

    def critic() -> Critic:
        sizes = (dims.state, dims.action, dims.goal)
        return make_critic(config.critic, *sizes, hidden_dim=settings.hidden_dim)

    return find_algorithm(config.algo)(dims, critic, settings)


def _state(algorithm: nn.Module, normalizer: nn.Module) -> dict[str, Tensor]:
    parts = {"algorithm": algorithm, "normalizer": normalizer}
    return {
        f"{part}.{name}": value
        for part, module in parts.items()
        for name, value in module.state_dict().items()
    }


def check_tensors(own: dict[str, Tensor], loaded: dict[str, Tensor], where: str) -> None:
    """Refuse tensors whose names, shapes or types are not one's own."""

    def layout(tensors: dict[str, Tensor]) -> dict[str, Any]:
        return {name: (tuple(value.shape), value.dtype) for name, value in tensors.items()}

    if strange := dict(layout(own).items() ^ layout(loaded).items()):
        raise UserError(f"{where} does not fit this agent: {sorted(strange)[0]!r} differs")


def find_weights(run: str | Path, weights: str = "latest") -> Path:
    """The weights file of a run folder, of `zoo:NAME`, or the file itself."""
    path = find_entry(run) or Path(run)
    lookup("weights", weights, dict.fromkeys(WEIGHTS))
    if path.is_dir():
        path = weights_file(path, weights)
        if not path.exists():
            why = "no run folder, or no epoch of it is finished yet"
            if find_entry(run):
                why = "a policy of the zoo has its latest weights alone"
            raise UserError(f"{run} holds no {path.name}: {why}")
    elif not path.exists():
        raise UserError(f"there is no run folder or weights file {run}")
    elif weights != WEIGHTS[0]:
        raise UserError(f"{run} is one file of weights: name its folder to choose {weights!r}")
    return path


def output_folder(run: str | Path) -> Path:
    """Where what is made of a run goes: its folder; the current one for a policy of the zoo."""
    path = Path(run)
    return path if path.is_dir() else path.parent
