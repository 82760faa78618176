"""What the benchmarks have in common: trainers with a filled replay."""

import numpy as np
import torch

from mrn.config import Config
from mrn.envs import TASKS, TaskSpec
from mrn.replay import Episodes
from mrn.training.trainer import Trainer

CPU = torch.device("cpu")
CYCLE_EPISODES = 20


def make_trainer(task: str, critic: str = "mrn", **settings: object) -> Trainer:
    """A trainer on the CPU, by the paper's protocol where settings do not say otherwise."""
    config = Config.of(task, critic=critic, device="cpu", **settings)
    return Trainer(config, TASKS[task], CPU)


def warmup_episodes(shape: TaskSpec) -> Episodes:
    """A cycle's episodes of random numbers."""
    rng = np.random.default_rng(0)
    episodes = Episodes.allocate(shape, CYCLE_EPISODES)
    for array in (episodes.state, episodes.achieved, episodes.goal, episodes.action):
        array[:] = rng.normal(size=array.shape)
    np.clip(episodes.action, -1, 1, out=episodes.action)
    episodes.length.fill(shape.horizon)
    return episodes


def fill(trainer: Trainer, transitions: int) -> None:
    """Store random episodes until the replay holds so many transitions."""
    episodes = warmup_episodes(trainer.agent.spec)
    while len(trainer.replay) < transitions:
        trainer.replay.add(episodes)
    newest = trainer.hindsight.newest(1000, trainer.generators["replay"])
    trainer.agent.normalizer.update(newest)


def one_update(trainer: Trainer) -> None:
    """Sample, relabel, normalise, update: what the training loop does 40 times a cycle."""
    trainer.updates += 1
    trainer.agent.algorithm.update(
        one_batch(trainer), trainer.updates, trainer.generators["algo_config"]
    )


def one_batch(trainer: Trainer):
    """Sample, relabel and normalise alone."""
    size = trainer.config.algo_config.batch_size
    batch = trainer.hindsight.sample(size, trainer.generators["replay"])
    return trainer.agent.normalizer(batch)
