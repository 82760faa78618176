"""Agent: a trained policy with predict, evaluate, reach and save."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from mrn.algorithms import Algorithm, AlgorithmSettings, Policy
from mrn.algorithms.build import make_algorithm
from mrn.algorithms.exploration import uniform_actions
from mrn.config import Config
from mrn.critics import Dims
from mrn.envs import Observation, Task, TaskSpec, find_task
from mrn.envs.observations import parse_observation
from mrn.envs.tasks import passes_arguments
from mrn.replay import Normalizer
from mrn.runs import policy_file
from mrn.runs.curve import learning_curve
from mrn.utils.device import find_device
from mrn.utils.files import as_path
from mrn.utils.plugins import require_consent
from mrn.utils.seeding import make_generator, seeded_weights
from mrn.utils.validation import PositiveInt, check, from_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mrn.training.callbacks import Callback, EpochFunction
    from mrn.training.evaluation import Evaluation
    from mrn.training.reach import Reach


class Agent:
    """A trained agent: networks, normalizer and task specification."""

    def __init__(self, config: Config, spec: TaskSpec, device: torch.device) -> None:
        """Build an untrained agent; the initial weights depend only on the seed of the settings."""
        self.config, self.spec, self.device = config, spec, device
        with seeded_weights(config.seed):
            self.algorithm = _make_algorithm(config, spec).to(device)
        self.normalizer = Normalizer(spec).to(device)
        bounds = (spec.action_low, spec.action_high, getattr(torch, spec.action_dtype))
        self.policy = Policy(self.normalizer, self.algorithm.actor, *bounds).to(device)
        # Separate from the generators of training.
        self._prediction = make_generator(config.seed, "prediction", device)
        self.selection: policy_file.Selection | None = None
        """How the epoch of these weights was chosen; None if they are the latest."""
        self.run_dir: Path | None = None
        """Run folder with the checkpoints of this agent, if any."""
        self.epoch: int | None = None
        """Epoch of training after which the weights were saved; None if unknown."""

    def __repr__(self) -> str:
        weights = "latest" if self.selection is None else f"best, epoch {self.selection.epoch}"
        return (
            f"Agent(task={self.spec.name!r}, method={self.config.method!r}, "
            f"seed={self.config.seed}, weights={weights!r}, device={str(self.device)!r})"
        )

    @cached_property
    def task(self) -> Task:
        """The training task with its reward function; a custom environment is created once."""
        return find_task(self.spec.env_id, self.spec.reward_shift, self.spec.env_kwargs)

    def on_cpu(self) -> "Agent":
        """Return this agent, or if it is on a GPU, a copy on the CPU."""
        if self.device.type == "cpu":
            return self
        copy = Agent(self.config, self.spec, torch.device("cpu"))
        copy.load_state_dict(self.state_dict())
        return copy

    @torch.no_grad()
    def act(self, observation: Observation) -> np.ndarray:
        """Return deterministic actions for N environments, in [-1, 1], shape (N, action)."""
        return self.policy.unit(*self._tensors(observation)).cpu().numpy()

    def explorer(
        self, steps: int, num_envs: int, generator: torch.Generator, uniform: bool = False
    ) -> Callable[[Observation], np.ndarray]:
        """Return the exploration policy for one episode; all noise is drawn in advance.

        Args:
            steps: Maximum number of steps of the episode.
            num_envs: Number of parallel environments.
            generator: Source of randomness.
            uniform: Whether to draw uniform random actions instead, as in the warmup.
        """
        if uniform:
            explore = uniform_actions(self.spec.action_dim, steps, num_envs, generator)
        else:
            explore = self.algorithm.explorer(steps, num_envs, generator)

        def act(observation: Observation) -> np.ndarray:
            return explore(*self.policy.inputs(*self._tensors(observation))).cpu().numpy()

        return act

    @torch.no_grad()
    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Return actions, with the signature of Stable-Baselines3's `predict`.

        Args:
            observation: Observation of a goal environment, a dictionary, or a batch of them with
                any number of leading axes.
            state: Ignored; for compatibility.
            episode_start: Ignored; for compatibility.
            deterministic: Whether to act without exploration noise.

        Returns:
            The actions within the environment's bounds, and None.

        Raises:
            UserError: The observation does not fit the policy.
        """
        arrays = parse_observation(observation, self.spec)
        batch = arrays[0].shape[:-1]  # () for a single observation
        states, goals = (array.reshape(-1, array.shape[-1]) for array in arrays)  # (N, size)
        inputs = self._tensors(Observation(states, goals, goals))
        if deterministic:
            actions = self.policy(*inputs)
        else:
            explore = self.algorithm.explorer(1, len(states), self._prediction)
            actions = self.policy.to_bounds(explore(*self.policy.inputs(*inputs)))
        return actions.cpu().numpy().reshape(*batch, self.spec.action_dim), None

    def evaluate(
        self,
        episodes: int = 100,
        seed: int = 0,
        engine: str = "auto",
        threads: int | None = None,
        progress: bool = False,
        goal: Sequence[float] | np.ndarray | None = None,
        render: bool = False,
    ) -> "Evaluation":
        """Play episodes without exploration noise, on any engine that has the task.

        Args:
            episodes: Number of episodes.
            seed: Seed of the environments.
            engine: `envpool`, `gymnasium`, or `auto`.
            threads: CPU threads for the simulation; by default all cores.
            progress: Whether to show a progress bar.
            goal: Goal of all episodes; by default each episode samples its own.
            render: Whether to show the episodes in a window, one after another.

        Raises:
            UserError: A number is out of range, the engine is unknown or does not have the task,
                or the goal does not fit.
        """
        from mrn.training.evaluation import evaluate_agent  # imports this module

        return evaluate_agent(self, episodes, seed, engine, threads, progress, goal, render)

    def learn(
        self,
        steps: int,
        progress: bool = True,
        callbacks: "Sequence[Callback | EpochFunction]" = (),
    ) -> "Agent":
        """Continue training from the last checkpoint in the run folder; return this agent.

        The result is bit-identical to a run of that length from the start. The run's `stop_at` no
        longer applies.

        Args:
            steps: Additional environment steps, rounded up to whole epochs of full-length episodes.
            progress: Whether to show the progress.
            callbacks: As in `mrn.train`.

        Raises:
            UserError: The agent has no run folder, its checkpoints are gone, or it has the weights
                of the best epoch.
        """
        from mrn.training.extension import extend_run  # imports this module

        extend_run(self, steps, progress, callbacks)
        return self

    def reach(
        self,
        env: Any,
        goal: Sequence[float] | np.ndarray,
        seed: int | None = None,
        observation: dict[str, np.ndarray] | None = None,
        steps: int | None = None,
    ) -> "Reach":
        """Act in a Gymnasium goal environment until a chosen goal is reached.

        Args:
            env: The environment. Its own goal is ignored, unless its episodes end there.
            goal: The goal, in the format of `desired_goal`. Warns if it is outside the training
                range.
            seed: Seed of the reset before the first action.
            observation: Last observation, to continue without a reset.
            steps: Maximum number of actions; by default the length of a training episode.

        Raises:
            UserError: The goal or the environment does not fit the policy, or the environment
                fails.
        """
        from mrn.training.reach import reach  # imports this module

        return reach(self, env, goal, seed, observation, steps)

    def plot(self) -> "Figure":
        """Return the learning curve of the run as a figure, which notebooks show.

        Raises:
            UserError: There is no evaluation to plot, or Matplotlib is missing.
        """
        return learning_curve(self.run_dir, f"{self.spec.name}, {self.config.method}")

    def _tensors(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """Return states and goals on the device."""
        state, goal = (
            torch.as_tensor(array, dtype=torch.float32, device=self.device)
            for array in (observation.state, observation.goal)
        )
        return state, goal

    def state_dict(self) -> dict[str, Tensor]:
        """Return all weights and statistics by name, sharing memory with the agent."""
        return _state_dict(self.algorithm, self.normalizer)

    @torch.no_grad()
    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy all weights and statistics from the output of `state_dict`."""
        for name, value in self.state_dict().items():
            value.copy_(tensors[name])

    def save(self, path: str | Path, small: bool = False) -> None:
        """Write a self-contained safetensors file.

        Args:
            path: The file.
            small: Whether to leave out target networks and save in half precision, a quarter to
                half of the size. The loaded policy acts with the rounded weights.
        """
        about: dict[str, Any] = {"config": self.config.to_dict(), "task": vars(self.spec)}
        selection = None if self.selection is None else vars(self.selection)
        optional = {"epoch": self.epoch, "selection": selection, "small": small or None}
        about |= {name: value for name, value in optional.items() if value is not None}
        tensors = policy_file.compress_policy(self.state_dict()) if small else self.state_dict()
        policy_file.write_policy(as_path("path", path), about, tensors)

    @classmethod
    def load(
        cls, path: str | Path, device: str | torch.device = "auto", trust_code: bool = False
    ) -> "Agent":
        """Load a file written by `save`. `mrn.load` also accepts run folders and zoo names.

        The file cannot contain code, but may name modules of a custom environment, critic or
        algorithm. They are imported only with `trust_code`, or if they were imported before.

        Raises:
            UserError: The file is missing, damaged or not a policy, or names custom code without
                `trust_code`.
        """
        path = as_path("path", path)
        about, tensors = policy_file.read_policy(path)
        config = Config.from_json(about.get("config"), str(path), trust_code)
        spec = from_dict(TaskSpec, about.get("task"), str(path))
        arguments = passes_arguments(spec.env_id, spec.env_kwargs)
        require_consent(str(path), {"environment": spec.env_id}, arguments, trust_code)
        with torch.device("meta"):  # compare sizes before allocating memory for them
            own = _state_dict(_make_algorithm(config, spec), Normalizer(spec))
            if about.get("small"):
                tensors = policy_file.expand_policy(tensors, own)
            policy_file.check_tensors(own, tensors, str(path))
        device = device if isinstance(device, torch.device) else find_device(device)
        agent = cls(config, spec, device)
        check("epoch", epoch := about.get("epoch"), PositiveInt | None)
        agent.epoch = epoch
        if "selection" in about:
            agent.selection = from_dict(policy_file.Selection, about["selection"], str(path))
        agent.load_state_dict(tensors)
        return agent


def _make_algorithm(config: Config, spec: TaskSpec) -> Algorithm:
    dims = Dims(spec.state_dim, spec.action_dim, spec.goal_dim)
    assert isinstance(config.algo_config, AlgorithmSettings)  # plain tables are for reading only
    return make_algorithm(config.algo, config.critic, dims, config.algo_config)


def _state_dict(algorithm: nn.Module, normalizer: nn.Module) -> dict[str, Tensor]:
    return nn.ModuleDict({"algorithm": algorithm, "normalizer": normalizer}).state_dict()
