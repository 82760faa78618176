"""Standardization of states and goals by running statistics."""

import torch
from torch import Tensor, nn

from mrn.batch import Batch
from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs.tasks import TaskSpec
from mrn.utils.normalization import CLIP_RAW, CLIP_STD, MIN_STD


class RunningNorm(nn.Module):
    """Standardization of vectors by the running mean and std of all data, kept in float64."""

    count: Tensor
    mean: Tensor
    squares: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, size: int) -> None:
        """Start with mean 0 and std 1."""
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("squares", torch.zeros(size, dtype=torch.float64))
        # Float32 copies of the mean and of 1 / std, for `forward`.
        self.register_buffer("shift", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    @torch.no_grad()
    def update(self, values: Tensor, ranks: Ranks = SINGLE_PROCESS) -> None:
        """Add values of shape (B, size) from every rank to the statistics."""
        values = values.double().clamp(-CLIP_RAW, CLIP_RAW)
        mean = values.mean(dim=0)
        count = torch.full_like(mean, len(values))
        moments = torch.stack([count, mean, (values - mean).square().sum(dim=0)])  # (3, size)
        for each in ranks.all_gather(moments):
            self._merge(each[0, 0], *each[1:])

    def _merge(self, count: Tensor, mean: Tensor, squares: Tensor) -> None:
        """Merge the statistics of more values, exactly (Chan et al. 1979)."""
        total = self.count + count
        delta = mean - self.mean
        self.squares += squares
        self.squares += delta.square() * self.count * count / total
        self.mean += delta * count / total
        self.count.copy_(total)
        variance = self.squares / self.count
        self.shift.copy_(self.mean)
        self.scale.copy_(variance.clamp(min=MIN_STD**2).rsqrt())

    def forward(self, values: Tensor) -> Tensor:
        """Return the values standardized and clipped."""
        values = values.clamp(-CLIP_RAW, CLIP_RAW)  # a copy, so that the rest can work in place
        return values.sub_(self.shift).mul_(self.scale).clamp_(-CLIP_STD, CLIP_STD)


class Normalizer(nn.Module):
    """Running norms of states and goals."""

    def __init__(self, spec: TaskSpec) -> None:
        """Create a norm for each."""
        super().__init__()
        self.state = RunningNorm(spec.state_dim)
        self.goal = RunningNorm(spec.goal_dim)

    def update(self, batch: Batch, ranks: Ranks = SINGLE_PROCESS) -> None:
        """Add the states and goals of a batch from every rank to the statistics."""
        self.state.update(batch.state, ranks)
        self.goal.update(batch.goal, ranks)

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with standardized states and goals."""
        state, next_state = self.state(batch.state), self.state(batch.next_state)
        relabeled = batch.relabeled
        if relabeled is not None:
            relabeled = relabeled._replace(
                state=state, goal=self.goal(relabeled.goal), next_state=next_state
            )
        trajectory = batch.trajectory
        if trajectory is not None:
            trajectory = trajectory._replace(
                achieved=self.goal(trajectory.achieved),
                future_goal=self.goal(trajectory.future_goal),
                waypoint=self.state(trajectory.waypoint),
            )
        achieved_change = batch.achieved_change
        if achieved_change is not None:
            achieved_change = achieved_change * self.goal.scale
        return batch._replace(
            state=state,
            goal=self.goal(batch.goal),
            next_state=next_state,
            relabeled=relabeled,
            trajectory=trajectory,
            achieved_change=achieved_change,
        )
