"""Small algorithms, and transitions of random numbers for them."""

import torch
from torch import Tensor, nn

from mrn.algorithms import Algorithm
from mrn.batch import Batch
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
        steps=torch.full((size,), torch.inf),
    )
    relabelled = torch.rand(size, generator=g) < 0.8
    batch.steps[relabelled] = torch.randint(1, 20, (int(relabelled.sum()),), generator=g).float()
    return batch


def double(batch: Batch) -> Batch:
    return Batch(*(x.double() if x.is_floating_point() else x for x in batch))


def generator(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_gradients(learned: nn.Module, plain: nn.Module, loss: Tensor) -> None:
    """Hold the gradients that a algorithm has set against those of a loss computed plainly."""
    expected = torch.autograd.grad(loss, list(plain.parameters()), retain_graph=True)
    for weight, gradient in zip(learned.parameters(), expected, strict=True):
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-6, atol=1e-12)


def moves(weight: Tensor, steps) -> list[bool]:
    """Whether a weight is another one after each of some steps."""
    moved = []
    for step in steps:
        before = weight.detach().clone()
        step()
        moved.append(not torch.equal(weight, before))
    return moved
