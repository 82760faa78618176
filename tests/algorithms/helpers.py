"""Small algorithms and random batches for them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mrn.algorithms import Algorithm
from mrn.batch import Batch, Trajectory
from mrn.critics import Critic, Dims, make_critic

DIMS = Dims(state=6, action=3, goal=2)


def make_algorithm(
    kind: type[Algorithm], critic: str = "mrn", seed: int = 0, **settings
) -> Algorithm:
    torch.manual_seed(seed)

    def factory() -> Critic:
        return make_critic(critic, DIMS.state, DIMS.action, DIMS.goal, hidden_dim=32)

    return kind(DIMS, factory, kind.Settings(hidden_dim=32, **settings))


def random_batch(size: int = 64, seed: int = 1) -> Batch:
    g = torch.Generator().manual_seed(seed)
    batch = Batch(
        state=torch.randn(size, DIMS.state, generator=g),
        action=torch.rand(size, DIMS.action, generator=g) * 2 - 1,
        goal=torch.randn(size, DIMS.goal, generator=g),
        next_state=torch.randn(size, DIMS.state, generator=g),
        reward=-(torch.rand(size, generator=g) < 0.7).float(),
        terminated=torch.rand(size, generator=g) < 0.2,
        steps_to_goal=torch.full((size,), torch.inf),
    )
    relabeled = torch.rand(size, generator=g) < 0.8
    steps = torch.randint(1, 20, (int(relabeled.sum()),), generator=g).float()
    batch.steps_to_goal[relabeled] = steps
    all_steps = torch.randint(1, 20, (size,), generator=g).float()
    all_steps[::7] = torch.inf  # as with earlier goals of the strategy `episode`
    same = batch._replace(
        goal=torch.randn(size, DIMS.goal, generator=g),
        reward=-(torch.rand(size, generator=g) < 0.7).float(),
        terminated=torch.rand(size, generator=g) < 0.2,
        steps_to_goal=all_steps,
    )
    future_steps = torch.randint(1, 20, (size,), generator=g).float()
    trajectory = Trajectory(
        achieved=torch.randn(size, DIMS.goal, generator=g),
        future_goal=torch.randn(size, DIMS.goal, generator=g),
        future_steps=future_steps,
        waypoint=torch.randn(size, DIMS.state, generator=g),
        waypoint_steps=(future_steps / 2).ceil(),
    )
    change = torch.randn(size, DIMS.goal, generator=g)
    return batch._replace(relabeled=same, trajectory=trajectory, achieved_change=change)


def map_tensors(function: Callable[[Tensor], Tensor], batch):
    """Apply a function to every tensor of a batch, including those of nested tuples."""
    if isinstance(batch, Tensor):
        return function(batch)
    return batch and type(batch)(*(map_tensors(function, each) for each in batch))


def double(batch: Batch) -> Batch:
    return map_tensors(lambda x: x.double() if x.is_floating_point() else x, batch)


def generator(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_gradients(network: nn.Module, reference: nn.Module, loss: Tensor) -> None:
    """Compare the gradients set by an algorithm with those of a reference loss."""
    expected = torch.autograd.grad(loss, list(reference.parameters()), retain_graph=True)
    for weight, gradient in zip(network.parameters(), expected, strict=True):
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-6, atol=1e-12)


def changes(weight: Tensor, steps) -> list[bool]:
    """Return for each step, a function to call, whether it changes the weight."""
    changed = []
    for step in steps:
        before = weight.detach().clone()
        step()
        changed.append(not torch.equal(weight, before))
    return changed
