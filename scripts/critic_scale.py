"""Scale of untrained critics: `python -m scripts.critic_scale`.

A policy starts to move once the critic's dependence on the action outweighs the action penalty. A
critic that is initialized on a small scale therefore learns late, whatever its architecture.
"""

from typing import NamedTuple

import torch
from torch import nn

from mrn.critics import make_critic
from mrn.critics.base import count_parameters
from mrn.envs import TASKS
from mrn.utils.tables import Table, print_table

SPEC = TASKS["FetchPush"].spec
DIMS = (SPEC.state_dim, SPEC.action_dim, SPEC.goal_dim)
CRITICS = ("mrn", "dn", "dn-released", "wn", "wn-released", "pqe", "pqe-released")
CRITICS += ("iqe", "bvn", "monolithic")
INITIALIZATIONS, BATCH = 10, 256


class InitialScale(NamedTuple):
    """Statistics of untrained critics on inputs of unit scale."""

    distance: float
    """Mean of -Q."""
    slope: float
    """Mean norm of dQ/da."""


def measure(name: str) -> InitialScale:
    """Measure a critic with the dimensions of FetchPush, without touching the global RNG."""
    total = torch.zeros(2)
    with torch.random.fork_rng(devices=[]):
        for seed in range(INITIALIZATIONS):
            torch.manual_seed(seed)
            critic = make_critic(name, *DIMS)
            state, goal = torch.randn(BATCH, DIMS[0]), torch.randn(BATCH, DIMS[2])
            action = (torch.rand(BATCH, DIMS[1]) * 2 - 1).requires_grad_()
            q = critic(state, action, goal)
            (slope,) = torch.autograd.grad(q.sum(), action)  # (B, action)
            total += torch.stack([-q.detach().mean(), slope.norm(dim=-1).mean()])
    return InitialScale(*(total / INITIALIZATIONS).tolist())


def scale_table() -> Table:
    """Return one row per critic, relative to MRN."""
    heads = ("critic", "weights", "parameters counted", "mean of -Q", "mean norm of dQ/da")
    scales = {name: measure(name) for name in CRITICS}
    rows = []
    for name, scale in scales.items():
        with torch.device("meta"):
            critic = make_critic(name, *DIMS)
        ratio = scale.slope / scales["mrn"].slope
        slope = f"{scale.slope:.4f} ({ratio:.2f} x mrn)"
        counts = (f"{_weights(critic):,}", f"{count_parameters(critic):,}")
        rows.append((f"`{name}`", *counts, f"{scale.distance:.3f}", slope))
    return heads, rows


def _weights(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


if __name__ == "__main__":
    print_table(scale_table())
