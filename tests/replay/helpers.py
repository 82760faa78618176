"""Episodes whose values encode the episode and step they come from."""

import numpy as np
import torch

from mrn.batch import Batch
from mrn.envs import TaskSpec
from mrn.replay import Episodes, ReplayBuffer

HORIZON = 10
SPEC = TaskSpec("Counting", "Counting-v0", 2, 1, (-1.0,), (1.0,), HORIZON)
CPU = torch.device("cpu")


def episode_of(value: torch.Tensor) -> torch.Tensor:
    return (value // 1000).long()


def step_of(value: torch.Tensor) -> torch.Tensor:
    return (value % 1000).long()


def counting_episodes(first: int, lengths: list[int], terminated: list[bool] | None = None):
    """Episode e at step t: state (1000 e + t, 0), achieved 1000 e + t, goal -e, action t / 100."""
    episodes = Episodes.allocate(SPEC, len(lengths))
    for array in (episodes.state, episodes.achieved, episodes.goal, episodes.action):
        array.fill(-777)  # rows beyond an episode's length must never be read
    for i, length in enumerate(lengths):
        stamp = 1000 * (first + i) + np.arange(length + 1)
        episodes.state[i, : length + 1, 0] = stamp
        episodes.achieved[i, : length + 1, 0] = stamp
        episodes.goal[i, : length + 1, 0] = -(first + i)
        episodes.action[i, :length, 0] = np.arange(length) / 100
    episodes.length[:] = lengths
    episodes.terminated[:] = terminated or [False] * len(lengths)
    return episodes


def filled_buffer(capacity: int, lengths: list[list[int]]) -> ReplayBuffer:
    """Return a buffer after one `add` per group of episode lengths."""
    buffer = ReplayBuffer(SPEC, capacity, CPU)
    first = 0
    for group in lengths:
        buffer.add(counting_episodes(first, group))
        first += len(group)
    return buffer


def same_batch(one: Batch, other: Batch) -> bool:
    """Return whether two batches are equal, including nested ones."""
    return all(
        a is b is None or (torch.equal(a, b) if isinstance(a, torch.Tensor) else same_batch(a, b))
        for a, b in zip(one, other, strict=True)
    )
