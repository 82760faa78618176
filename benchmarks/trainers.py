"""Trainers with a filled replay buffer, shared by the benchmarks."""

import numpy as np
import torch

from mrn.batch import Batch
from mrn.config import Config
from mrn.envs import TASKS, TaskSpec
from mrn.replay import Episodes
from mrn.training.trainer import Trainer

CPU = torch.device("cpu")
NUM_ENVS = 20
"""Environments of the paper's protocol."""


def make_trainer(
    task: str, critic: str = "mrn", device: torch.device = CPU, **settings: object
) -> Trainer:
    """Return a trainer. Settings default to the paper's protocol."""
    config = Config.of(task, critic=critic, device=str(device), **settings)
    return Trainer(config, TASKS[task], device)


def random_episodes(spec: TaskSpec) -> Episodes:
    """Return one cycle of episodes filled with random numbers."""
    rng = np.random.default_rng(0)
    episodes = Episodes.allocate(spec, NUM_ENVS)
    for array in (episodes.state, episodes.achieved, episodes.goal, episodes.action):
        array[:] = rng.normal(size=array.shape)
    np.clip(episodes.action, -1, 1, out=episodes.action)
    episodes.length.fill(spec.horizon)
    return episodes


def fill_replay(trainer: Trainer, transitions: int) -> None:
    """Store random episodes until the replay buffer holds at least `transitions`."""
    episodes = random_episodes(trainer.agent.spec)
    while len(trainer.replay) < transitions:
        trainer.replay.add(episodes)
    newest = trainer.hindsight.newest(1000, trainer.generators["replay"])
    trainer.agent.normalizer.update(newest)


def run_update(trainer: Trainer) -> None:
    """Sample, relabel, normalize and update, as the training loop does 40 times per cycle."""
    trainer.updates += 1
    trainer.update(sample_batch(trainer), trainer.updates)


def sample_batch(trainer: Trainer) -> Batch:
    """Sample, relabel and normalize one batch."""
    size = trainer.config.algo_config.batch_size
    batch = trainer.hindsight.sample(size, trainer.generators["replay"])
    return trainer.agent.normalizer(batch)
