"""What followed sampled transitions in their episodes."""

import math

import torch
from torch import Tensor

from mrn.batch import Trajectory, TrajectorySampling
from mrn.replay.buffer import ReplayBuffer, StoredTransitions
from mrn.replay.goals import geometric_steps


class TrajectorySampler:
    """Sampler of a future goal for every transition, and of a state on the way to it."""

    def __init__(self, buffer: ReplayBuffer, sampling: TrajectorySampling) -> None:
        """Sample from a buffer, which may still be empty."""
        self.buffer, self.sampling = buffer, sampling

    def sample(
        self, rows: Tensor, stored: StoredTransitions, generator: torch.Generator
    ) -> Trajectory:
        """Return what followed the transitions that start at the given rows, (B,)."""
        sampling = self.sampling
        uniform = torch.rand(
            3, len(rows), generator=generator, device=generator.device, dtype=torch.float64
        )
        future = geometric_steps(uniform[0], stored.until_end, sampling.discount)
        log = math.log(sampling.waypoint_decay) if sampling.waypoint_decay else -math.inf
        waypoint = torch.log1p(-uniform[1]).div_(log).floor_().add_(1)
        waypoint = torch.where(uniform[2] < sampling.next_state_prob, 1, waypoint)
        waypoint = torch.minimum(waypoint, future).int()
        return Trajectory(
            achieved=stored.next_achieved,
            future_goal=self.buffer.achieved_after(rows, future),
            future_steps=future.float(),
            waypoint=self.buffer.state_after(rows, waypoint),
            waypoint_steps=waypoint.float(),
        )
