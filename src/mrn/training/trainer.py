"""Trainer: collects episodes into the replay buffer and takes gradient steps from it."""

import math
from typing import Any

import torch
from torch import Tensor

from mrn.agent import Agent
from mrn.algorithms import AlgorithmSettings
from mrn.batch import Batch
from mrn.config import Config
from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs import GoalVectorEnv, Task
from mrn.replay import Episodes, Hindsight, ReplayBuffer
from mrn.replay.buffer import check_capacity
from mrn.runs.clock import Clock
from mrn.runs.metrics import check_columns
from mrn.runs.policy_file import check_tensors
from mrn.training.precision import resolve_precision
from mrn.training.rollout import collect_episodes
from mrn.utils.device import torch_threads
from mrn.utils.errors import DIVERGED_HINT, RunError, UserError
from mrn.utils.files import checksum
from mrn.utils.precision import Precision, hidden_bfloat16
from mrn.utils.seeding import derive_seed, make_generator


class Trainer:
    """An agent with its replay buffer: the state of a run between two cycles.

    With several ranks, each has an equal share of the environments, the replay buffer and every
    batch, and its own random numbers. Averaging the gradients over ranks gives the gradient of the
    whole batch, so all ranks keep the same weights.
    """

    def __init__(
        self,
        config: Config,
        task: Task,
        device: torch.device,
        ranks: Ranks = SINGLE_PROCESS,
        precision: Precision | None = None,
    ) -> None:
        """Build an untrained agent and an empty replay buffer.

        Args:
            config: Settings of the run.
            task: Training task.
            device: Device of the networks and of the replay buffer. Acting uses the CPU.
            ranks: Ranks of the run.
            precision: Precision of the updates; by default that of the settings on this device.

        Raises:
            UserError: The ranks cannot divide the environments or the batch equally.
        """
        self.config, self.ranks, replay = config, ranks, config.replay
        assert isinstance(config.algo_config, AlgorithmSettings)
        self.precision = precision or resolve_precision(config, device, ranks)
        totals = {"num_envs": config.schedule.num_envs, "batch_size": config.algo_config.batch_size}
        num_envs, self.batch_size = ranks.divide(**totals)
        check_capacity(replay.buffer_size, config.schedule.num_envs, task.spec.horizon)
        self.agent = Agent(config, task.spec, device)
        check_columns(self.metrics, f"METRICS of algorithm {config.algo!r}")
        for optimizer in self.agent.algorithm.optimizers.values():
            optimizer.combine = ranks.all_reduce_mean
        self.episodes = Episodes.allocate(task.spec, num_envs)
        self.replay = ReplayBuffer(task.spec, replay.buffer_size // ranks.size, device, num_envs)
        algorithm = self.agent.algorithm
        self.hindsight = Hindsight(
            self.replay,
            replay.goal_weights,
            task.reward,
            replay.redraws,
            algorithm.uses_relabeled,
            algorithm.discount,
            algorithm.trajectory_sampling,
            self._imagine if algorithm.imagines_goals else None,
        )
        devices = {"replay": device, "learning": device, "exploration": torch.device("cpu")}
        self.generators = {
            name: make_generator(config.seed, name, each, ranks.rank)
            for name, each in devices.items()
        }
        self.losses = torch.zeros(len(self.metrics), device=device)  # sums over the epoch
        self.epoch, self.cycle = 1, 0  # current epoch, and its completed cycles
        self.env_steps = self.updates = 0
        self.best = -1.0  # highest success rate so far
        self.clock = Clock()  # of the current epoch

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the algorithm's metrics."""
        return self.agent.algorithm.METRICS

    @property
    def episodes_played(self) -> int:
        """Episodes of all ranks since the start of the run."""
        schedule = self.config.schedule
        return ((self.epoch - 1) * schedule.cycles + self.cycle) * schedule.num_envs

    def collect(self, envs: GoalVectorEnv) -> None:
        """Play one exploration episode per environment, store it and update the normalizer."""
        seed = derive_seed(self.config.seed, "environments", self.epoch)
        is_warmup = self.episodes_played < self.config.schedule.warmup_episodes
        with torch_threads(1):
            policy = self.agent.on_cpu().explorer(
                envs.task.horizon, envs.num_envs, self.generators["exploration"], is_warmup
            )
            collect_episodes(envs, policy, self.episodes, seed, self.cycle)
            steps = int(self.episodes.length.sum())
            self.replay.add(self.episodes)
            newest = self.hindsight.newest(steps, self.generators["replay"])
            self.agent.normalizer.update(newest, self.ranks)
        total = int(self.ranks.all_reduce_sum(torch.tensor(steps)))
        self.env_steps += total
        self.clock.steps += total

    def _imagine(
        self, state: Tensor, goal: Tensor, uniform: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Let the algorithm predict changes of achieved goals, in the environment's units."""
        inputs = self.agent.policy.inputs(state, goal)
        change, steps = self.agent.algorithm.imagine(*inputs, uniform, generator)
        return change / self.agent.normalizer.goal.scale, steps

    def learn(self) -> None:
        """Take the gradient steps of a cycle and accumulate their metrics."""
        algorithm, count = self.agent.algorithm, self.config.schedule.gradient_steps
        sampling = self.generators["replay"]
        for update_step in range(self.updates + 1, self.updates + count + 1):
            batch = self.hindsight.sample(self.batch_size, sampling)
            metrics = self.update(self.agent.normalizer(batch), update_step)
            if not isinstance(metrics, Tensor) or metrics.shape != self.losses.shape:
                found = f"shape {tuple(metrics.shape)}" if isinstance(metrics, Tensor) else metrics
                raise UserError(
                    f"update of algorithm {self.config.algo!r} must return one value for each of "
                    f"{self.metrics} as a tensor, got {found}"
                )
            self.losses += metrics
        algorithm.end_cycle()
        self.updates += count
        self.cycle += 1

    def update(self, batch: Batch, update_step: int) -> Tensor:
        """Take one gradient step in the run's precision; return the algorithm's metrics."""
        with hidden_bfloat16(self.precision == "bfloat16"):
            return self.agent.algorithm.update(batch, update_step, self.generators["learning"])

    def mean_losses(self) -> dict[str, float]:
        """Return the mean metrics of the epoch so far, with a single read from the device.

        Raises:
            RunError: A metric is not finite.
        """
        count = max(self.cycle * self.config.schedule.gradient_steps, 1)
        (losses,) = self.ranks.all_reduce_mean([self.losses])
        means = dict(zip(self.metrics, (losses / count).tolist(), strict=True))
        for name, value in means.items():
            if not math.isfinite(value):
                raise RunError(
                    f"{name} is not finite after {self.updates:,} updates (epoch {self.epoch}, "
                    f"cycle {self.cycle}); {DIVERGED_HINT}",
                    resumable=False,
                )
        return means

    def next_epoch(self) -> None:
        """Start the next epoch."""
        self.epoch, self.cycle = self.epoch + 1, 0
        self.losses.zero_()
        self.clock = Clock()

    def counters(self) -> dict[str, Any]:
        """Return the counters by name, including the clock."""
        names = ("epoch", "cycle", "env_steps", "updates", "best", "clock")
        return {name: getattr(self, name) for name in names}

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that training changes, except for the replay buffer, by name.

        All tensors except the generator states share memory with the trainer.
        """
        return {
            **self.agent.state_dict(),
            **{
                f"{name}.{key}": value
                for name, optimizer in self.agent.algorithm.optimizers.items()
                for key, value in optimizer.state_dict().items()
            },
            "losses": self.losses,
            **{f"generator.{k}": v.get_state() for k, v in self.generators.items()},
        }

    def is_rank_local(self, name: str) -> bool:
        """Return whether one of `tensors` differs between ranks.

        Weights, optimizer moments and the normalizer are identical on all ranks. Buffers of an
        algorithm may contain statistics of the rank's own batches.
        """
        buffers = (f"algorithm.{buffer}" for buffer, _ in self.agent.algorithm.named_buffers())
        return name == "losses" or name.startswith("generator.") or name in buffers

    def fingerprint(self) -> str:
        """Return a checksum of all tensors that ranks share; constant for a single rank."""
        shared = self.tensors() if self.ranks.size > 1 else {}
        return checksum(
            b"".join(
                value.cpu().numpy().tobytes()
                for name, value in shared.items()
                if not self.is_rank_local(name)
            )
        )

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Load the state that `tensors` and `counters` returned.

        Raises:
            UserError: The tensors do not fit this agent.
        """
        own = self.tensors()
        for name, generator in self.generators.items():
            state = own.pop(f"generator.{name}")
            saved = tensors.pop(f"generator.{name}", torch.empty(0))
            if saved.shape == state.shape and saved.dtype == state.dtype:
                try:
                    generator.set_state(saved)
                except RuntimeError as error:
                    raise UserError(
                        f"the checkpoint is damaged: the state of random generator {name!r} is not "
                        f"valid: {error}"
                    ) from None
            else:  # saved on another type of device: continue with a new seed
                purpose = f"{name} after {counters['updates']}"
                generator.manual_seed(derive_seed(self.config.seed, purpose, self.ranks.rank))
        check_tensors(own, tensors, "the checkpoint")
        for name, value in own.items():
            value.copy_(tensors[name])
        for name, value in counters.items():
            setattr(self, name, value)
        if self.ranks.is_main:
            self.agent.algorithm.check_restored()
