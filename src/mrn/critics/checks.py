"""Checks of a critic before training: output shape, sign and gradients."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from mrn.critics.base import Critic, Dims
from mrn.critics.metric import MetricCritic
from mrn.utils.findings import Finding
from mrn.utils.plugins import describe_error

BATCH = 5
"""Number of test inputs; unlike any size of a network, so that shapes cannot match by chance."""


def check_critic(critic: Critic, dims: Dims) -> list[Finding]:
    """Run every check on a copy of the critic; it can be used if no verdict is `error`."""
    return list(_check(copy.deepcopy(critic), dims))


def _check(critic: Critic, dims: Dims) -> Iterator[Finding]:
    weights: list[Tensor] = [weight for weight in critic.parameters() if weight.requires_grad]
    device = weights[0].device if weights else torch.device("cpu")
    state, action, goal = (_inputs(size, device) for size in (dims.state, dims.action, dims.goal))
    action.requires_grad_()
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            q = critic(state, action, goal)
            is_distance = critic.is_quasimetric or isinstance(critic, MetricCritic)
    except Exception as error:  # user code can raise anything
        yield Finding("output", "error", describe_error(error), "fix goal_side and score")
        return
    if not isinstance(q, Tensor) or q.shape != (BATCH,):
        found = f"shape {tuple(q.shape)}" if isinstance(q, Tensor) else type(q).__name__
        fix = f"return one value per row, shape ({BATCH},); squeeze or reduce the last axis"
        yield Finding("output", "error", f"{found} for a batch of {BATCH}", fix)
        return
    yield Finding("output", "ok", f"shape ({BATCH},) for a batch of {BATCH}")
    if not torch.isfinite(q).all():
        yield Finding("values", "error", "Q is not finite", "check the initial weights")
    elif is_distance and q.max() > 0:
        fix = "a distance must be non-negative, and Q is minus the distance"
        yield Finding("values", "error", f"Q is positive: {q.max():.3g}", fix)
    else:
        yield Finding("values", "ok", f"between {q.min():.3g} and {q.max():.3g}")
    yield _check_gradients(q, action, weights)


def _check_gradients(q: Tensor, action: Tensor, weights: list[Tensor]) -> Finding:
    """Check that Q depends on the action, for the actor, and on the weights, for the critic."""
    if not q.requires_grad:
        return Finding("gradients", "error", "none", "do not detach Q or disable gradients")
    of_action, *of_weights = torch.autograd.grad(q.sum(), [action, *weights], allow_unused=True)
    known = [gradient for gradient in (of_action, *of_weights) if gradient is not None]
    if of_action is None:
        return Finding("gradients", "error", "none for the action", "use the action in score")
    if len(known) == 1:
        return Finding("gradients", "error", "none for any weight", "register the networks")
    if not all(torch.isfinite(gradient).all() for gradient in known):
        return Finding("gradients", "error", "not finite", "check roots and divisions at 0")
    return Finding("gradients", "ok", f"finite; {len(known) - 1} of {len(weights)} weights")


def _inputs(size: int, device: torch.device) -> Tensor:
    """Return inputs of unit scale, shape (BATCH, size), without random numbers."""
    return torch.arange(BATCH * size, device=device).float().add(0.5).sin().view(BATCH, size)
