"""One cycle of training: episodes into the replay, then updates from it."""

import math
from typing import Any

import torch
from torch import Tensor

from mrn.agent import Agent, check_tensors
from mrn.algorithms import AlgorithmSettings
from mrn.config import Config
from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs import GoalVectorEnv, Task
from mrn.replay import Episodes, Hindsight, ReplayBuffer
from mrn.replay.buffer import check_capacity
from mrn.runs.metrics import check_columns
from mrn.training.clock import Clock
from mrn.training.rollout import collect_episodes
from mrn.utils.device import torch_threads
from mrn.utils.errors import DIVERGED_HINT, RunError, UserError
from mrn.utils.files import checksum
from mrn.utils.seeding import derive_seed, make_generator


class Trainer:
    """An agent with its memory: the state of a run between two cycles.

    Of a run of many processes each has a share of a cycle's episodes, of the replay and of every
    batch, and random numbers of its own. The gradients' mean over the processes is that over the
    whole batch, so that all have the same weights.
    """

    def __init__(
        self, config: Config, task: Task, device: torch.device, ranks: Ranks = SINGLE_PROCESS
    ) -> None:
        """Build an untrained agent and an empty replay.

        Raises:
            UserError: The ranks cannot divide the work equally.
        """
        self.config, self.ranks, memory = config, ranks, config.replay
        assert isinstance(config.algo_config, AlgorithmSettings)
        totals = {"num_envs": config.schedule.num_envs, "batch_size": config.algo_config.batch_size}
        count, self.batch_size = ranks.divide(**totals)
        check_capacity(memory.buffer_size, config.schedule.num_envs, task.spec.horizon)
        self.agent = Agent(config, task.spec, device)
        check_columns(self.metrics, f"METRICS of algorithm {config.algo!r}")
        for optimizer in self.agent.algorithm.optimizers.values():
            optimizer.combine = ranks.all_reduce_mean
        self.episodes = Episodes.allocate(task.spec, count)
        self.replay = ReplayBuffer(task.spec, memory.buffer_size // ranks.size, device, count)
        self.hindsight = Hindsight(
            self.replay,
            memory.goal_selection_strategy,
            memory.her_ratio,
            task.reward,
            memory.redraws,
        )
        self.generators = {
            name: make_generator(config.seed, name, device, ranks.rank)
            for name in ("replay", "learning", "exploration")
        }
        self.losses = torch.zeros(len(self.metrics), device=device)
        self.epoch, self.cycle = 1, 0  # the epoch in progress, and cycles done in it
        self.env_steps = self.updates = 0
        self.best = -1.0  # highest success rate
        self.clock = Clock()  # of the epoch in progress

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the algorithm's metrics."""
        return self.agent.algorithm.METRICS

    @property
    def played(self) -> int:
        """Episodes since the run began."""
        schedule = self.config.schedule
        return ((self.epoch - 1) * schedule.cycles + self.cycle) * schedule.num_envs

    def collect(self, envs: GoalVectorEnv) -> None:
        """Play one episode in each environment, exploring; store them and learn their scale."""
        seed = derive_seed(self.config.seed, "environments", self.epoch)
        with torch_threads(1):
            uniform = self.played < self.config.schedule.warmup_episodes
            exploring = (envs.task.horizon, envs.num_envs, self.generators["exploration"], uniform)
            collect_episodes(envs, self.agent.explorer(*exploring), self.episodes, seed, self.cycle)
            steps = int(self.episodes.length.sum())
            self.replay.add(self.episodes)
            newest = self.hindsight.newest(steps, self.generators["replay"])
            self.agent.normalizer.update(newest, self.ranks)
        played = int(self.ranks.all_reduce_sum(torch.tensor(steps)))
        self.env_steps += played
        self.clock.steps += played

    def learn(self) -> None:
        """Take a cycle's updates, and what the algorithm does after them; metrics add up."""
        algorithm, count = self.agent.algorithm, self.config.schedule.gradient_steps
        sampling, learning = self.generators["replay"], self.generators["learning"]
        for number in range(self.updates + 1, self.updates + count + 1):
            batch = self.hindsight.sample(self.batch_size, sampling)
            metrics = algorithm.update(self.agent.normalizer(batch), number, learning)
            if metrics.shape != self.losses.shape:
                raise UserError(
                    f"update of algorithm {self.config.algo!r} must return a value for each of "
                    f"{self.metrics}, got shape {tuple(metrics.shape)}"
                )
            self.losses += metrics
        algorithm.end_cycle()
        self.updates += count
        self.cycle += 1

    def mean_losses(self) -> dict[str, float]:
        """Mean metrics of the epoch's updates so far, read from the device once.

        Raises:
            RunError: One is not a finite number.
        """
        count = max(self.cycle * self.config.schedule.gradient_steps, 1)
        (losses,) = self.ranks.all_reduce_mean([self.losses])
        means = dict(zip(self.metrics, (losses / count).tolist(), strict=True))
        for name, value in means.items():
            if not math.isfinite(value):
                raise RunError(
                    f"{name} is not a finite number after {self.updates:,} updates (epoch "
                    f"{self.epoch}, cycle {self.cycle}); {DIVERGED_HINT}",
                    resumable=False,
                )
        return means

    def next_epoch(self) -> None:
        """Begin another epoch."""
        self.epoch, self.cycle = self.epoch + 1, 0
        self.losses.zero_()
        self.clock = Clock()

    def counters(self) -> dict[str, Any]:
        """Where the run stands."""
        names = ("epoch", "cycle", "env_steps", "updates", "best", "clock")
        return {name: getattr(self, name) for name in names}

    def tensors(self) -> dict[str, Tensor]:
        """All that changes in training but the replay: by name, in place but for generators."""
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

    def is_own(self, name: str) -> bool:
        """Whether one of `tensors` differs between the processes of a run.

        Weights are the same in all, and so are their moments and the normaliser. What a algorithm
        notes in buffers it notes of its own batches.
        """
        buffers = (f"algorithm.{buffer}" for buffer, _ in self.agent.algorithm.named_buffers())
        return name == "losses" or name.startswith("generator.") or name in buffers

    def fingerprint(self) -> str:
        """A checksum of all that the processes of a run have in common; nothing for one alone."""
        shared = self.tensors() if self.ranks.size > 1 else {}
        return checksum(
            b"".join(v.cpu().numpy().tobytes() for k, v in shared.items() if not self.is_own(k))
        )

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Take the state that `tensors` and `counters` returned.

        Raises:
            UserError: They are of another agent.
        """
        own = self.tensors()
        for name, generator in self.generators.items():
            state = own.pop(f"generator.{name}")
            saved = tensors.pop(f"generator.{name}", torch.empty(0))
            if saved.shape == state.shape and saved.dtype == state.dtype:
                generator.set_state(saved)
            else:  # of another kind of device: go on from a new seed
                purpose = f"{name} after {counters['updates']}"
                generator.manual_seed(derive_seed(self.config.seed, purpose, self.ranks.rank))
        check_tensors(own, tensors, "the checkpoint")
        for name, value in own.items():
            value.copy_(tensors[name])
        for name, value in counters.items():
            setattr(self, name, value)
