"""One cycle of training: episodes into the replay, then updates from it."""

import torch
from torch import Tensor

from mrn.config import Config
from mrn.envs import GoalVectorEnv, Task
from mrn.replay import Episodes, Hindsight, ReplayBuffer
from mrn.training.agent import Agent
from mrn.training.device import settle_memory, torch_threads
from mrn.training.rollout import play
from mrn.training.seeding import make_generator


class Trainer:
    """An agent with its memory: the state of a run between two cycles."""

    def __init__(self, config: Config, task: Task, device: torch.device) -> None:
        """Build an untrained agent and an empty replay."""
        self.config, memory = config, config.memory
        self.agent = Agent(config, task.shape, device)
        self.episodes = Episodes.allocate(task.shape, config.schedule.episodes)
        self.replay = ReplayBuffer(task.shape, memory.capacity, device, len(self.episodes.length))
        self.hindsight = Hindsight(memory.relabel, memory.relabel_probability, task.reward)
        self.sampling = make_generator(config.seed, "replay", device)
        self.env_steps = self.updates = 0
        settle_memory()

    def collect(self, envs: GoalVectorEnv, seed: int | None = None) -> None:
        """Play one episode in each environment, exploring; store them and learn their scale."""
        with torch_threads(1):
            policy = self.agent.explorer(envs.task.horizon, envs.num_envs)
            play(envs, policy, self.episodes, seed)
            steps = int(self.episodes.length.sum())
            self.replay.add(self.episodes)
            self.agent.normalizer.update(self.hindsight.newest(self.replay, steps, self.sampling))
        self.env_steps += steps

    def learn(self, sums: Tensor) -> None:
        """Take a cycle's updates, then one of the targets; their metrics are added to `sums`."""
        learner, count = self.agent.learner, self.config.schedule.updates
        for _ in range(count):
            batch = self.hindsight.sample(
                self.replay, self.config.learning.batch_size, self.sampling
            )
            sums += learner.update(self.agent.normalizer(batch))
        learner.update_targets()
        self.updates += count
