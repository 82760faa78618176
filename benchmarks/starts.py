"""How untrained critics begin: `python -m benchmarks.starts` tells docs/differences.md.

A policy moves early where the untrained critic depends on the action enough to outweigh the penalty
on actions. So a rival that begins on a small scale begins late, for a reason that has nothing to do
with its form.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from mrn.critics import make_critic
from mrn.critics.base import count_parameters
from mrn.envs import TASKS
from mrn.utils.tables import Table, print_table, write_sections

PAGE = Path(__file__).parents[1] / "docs" / "differences.md"
SHAPE = TASKS["FetchPush"].spec
DIMS = (SHAPE.state_dim, SHAPE.action_dim, SHAPE.goal_dim)
CRITICS = ("mrn", "dn", "dn-released", "wn", "wn-released", "pqe", "pqe-released")
CRITICS += ("iqe", "bvn", "monolithic")
DRAWS, BATCH = 10, 256


class Start(NamedTuple):
    """Of untrained critics, over draws of the weights and inputs of unit scale."""

    distance: float
    """Mean of -Q."""
    slope: float
    """Mean length of the gradient of Q in the action."""


def start(name: str) -> Start:
    """Measure a critic on FetchPush's sizes, with global random numbers left as they were."""
    found = torch.zeros(2)
    with torch.random.fork_rng(devices=[]):
        for seed in range(DRAWS):
            torch.manual_seed(seed)
            critic = make_critic(name, *DIMS)
            state, goal = torch.randn(BATCH, DIMS[0]), torch.randn(BATCH, DIMS[2])
            action = (torch.rand(BATCH, DIMS[1]) * 2 - 1).requires_grad_()
            q = critic(state, action, goal)
            (slope,) = torch.autograd.grad(q.sum(), action)  # (B, action)
            found += torch.stack([-q.detach().mean(), slope.norm(dim=-1).mean()])
    return Start(*(found / DRAWS).tolist())


def table() -> Table:
    """A line for each critic, beside MRN."""
    heads = ("critic", "weights", "counted", "mean of -Q", "slope in the action")
    starts = {name: start(name) for name in CRITICS}
    own = starts["mrn"]
    rows = []
    for name, found in starts.items():
        with torch.device("meta"):
            critic = make_critic(name, *DIMS)
        cells = [f"{_weights(critic):,}", f"{count_parameters(critic):,}"]
        cells += [
            f"{found.distance:.3f}",
            f"{found.slope:.4f} ({found.slope / own.slope:.2f} x mrn)",
        ]
        rows.append((f"`{name}`", *cells))
    return heads, rows


def _weights(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def main() -> None:
    """Print the table, and write it into the page."""
    found = table()
    print_table(found)
    write_sections(PAGE, {"starts": found})


if __name__ == "__main__":
    main()
