"""What followed sampled transitions in their episodes."""

import math

import torch
from torch import Tensor

from mrn.batch import Trajectory, TrajectorySampling
from mrn.envs.rewards import Reward
from mrn.replay.buffer import ReplayBuffer, StoredTransitions
from mrn.replay.goals import geometric_steps


class TrajectorySampler:
    """Sampler of a future goal for every transition, and of a state on the way to it.

    The way ends where the episode first achieves the goal, which may be before the sampled step.
    """

    def __init__(self, buffer: ReplayBuffer, sampling: TrajectorySampling, reward: Reward) -> None:
        """Sample from a buffer, which may still be empty; `reward` decides what achieves a goal."""
        self.buffer, self.sampling, self.reward = buffer, sampling, reward

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
        future_goal = self.buffer.achieved_after(rows, future)
        limit = (
            self._first_hit(rows, future, future_goal) if sampling.next_state_prob < 1 else future
        )
        waypoint = torch.minimum(waypoint, limit).int()
        return Trajectory(
            achieved=stored.next_achieved,
            future_goal=future_goal,
            future_steps=future.float(),
            waypoint=self.buffer.state_after(rows, waypoint),
            waypoint_steps=waypoint.float(),
        )

    def _first_hit(self, rows: Tensor, future: Tensor, goal: Tensor) -> Tensor:
        """Return the number of steps after which the episodes first achieve their future goals."""
        steps = torch.arange(1, self.buffer.horizon + 1, device=rows.device)  # (T,)
        before = torch.minimum(steps, future.unsqueeze(1))  # (B, T)
        achieved = self.buffer.achieved_after(
            rows.repeat_interleave(len(steps)), before.flatten().to(rows.dtype)
        )
        goals = goal.repeat_interleave(len(steps), dim=0)
        hit = (self.reward(achieved, goals) == 0).view_as(before)
        hit |= before == future.unsqueeze(1)
        return 1 + hit.byte().argmax(dim=1)  # the first of several maxima
