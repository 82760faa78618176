"""Trainers of the benchmarks have a filled replay buffer."""

import torch

from benchmarks.trainers import fill_replay, make_trainer


def test_fill_replay_stores_the_requested_transitions():
    trainer = make_trainer("FetchPush", buffer_size=10_000, hidden_dim=16)
    fill_replay(trainer, 5_000)
    assert len(trainer.replay) == 5_000
    assert not torch.equal(trainer.agent.normalizer.state.scale, torch.ones(25))
