"""The number of threads changes at most the rounding of sums (docs/sweeps.md)."""

import pytest
import torch

from mrn.config import Config
from mrn.envs import TASKS, make_envs
from mrn.training.trainer import Trainer
from mrn.utils.device import torch_threads


def train_briefly(critic: str, threads: int) -> Trainer:
    config = Config.of("FetchReach", critic=critic, num_envs=2, gradient_steps=3, buffer_size=200)
    task = TASKS["FetchReach"]
    trainer = Trainer(config, task, torch.device("cpu"))
    with make_envs(task.spec, 2, "envpool", threads) as envs, torch_threads(threads):
        trainer.collect(envs)
        trainer.learn()
    return trainer


@pytest.mark.parametrize("critic", ["mrn", "monolithic", "bvn", "iqe"])
def test_threads_change_only_the_last_digits(critic, count):
    one, *others = (train_briefly(critic, threads) for threads in (1, 2, 4))
    for threads, other in zip((2, 4), others, strict=True):
        assert torch.equal(one.replay.state, other.replay.state)  # simulation is bit-identical
        assert torch.allclose(one.losses, other.losses, rtol=1e-4)
        learned = one.agent.state_dict()
        differ = [k for k, v in other.agent.state_dict().items() if not torch.equal(v, learned[k])]
        count(f"{critic}, {threads} threads and 1: {len(differ)} of {len(learned)} tensors differ")
