"""Networks of the toy example: d(x0, xg) built from the critics' modules, all of one size."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mrn.critics import REFERENCE_HIDDEN_DIM, nearest_size
from mrn.critics.base import Critic, Dims, count_parameters, mlp
from mrn.critics.bilinear import Bilinear
from mrn.critics.heads import ENCODER_DIM, HEADS, Head, HeadDesign
from mrn.critics.monolithic import Monolithic

POINTS = Dims(state=2, action=0, goal=2)
"""Points of the square as critic inputs: starts are states, and there are no actions."""


class QuasimetricModel(nn.Module):
    """d(x0, xg) = head(e(x0), e(xg)).

    Start and goal are points of the same square, so they share one encoder. The head's guarantees
    for embeddings therefore hold for points.
    """

    def __init__(self, width: int, head: Head) -> None:
        """Build a two-layer encoder below the head, as in the critics."""
        super().__init__()
        self.encoder = mlp([2, width, width], activate_last=True)
        self.head = head

    def forward(self, start: Tensor, goal: Tensor) -> Tensor:
        """Return d, shape (B,)."""
        return self.head(self.encoder(start), self.encoder(goal))


class CriticModel(nn.Module):
    """d(x0, xg) = -Q(x0, no action, xg), for critics that are not quasimetrics."""

    def __init__(self, critic: Critic) -> None:
        """Wrap a critic with the dimensions `POINTS`."""
        super().__init__()
        self.critic = critic

    def forward(self, start: Tensor, goal: Tensor) -> Tensor:
        """Return d, shape (B,)."""
        return -self.critic(start, start[..., :0], goal)


@dataclass(frozen=True)
class Model:
    """A type of network in the study."""

    title: str
    """Name in figures and tables."""
    build: Callable[[int, int], nn.Module]
    """Builds a network from the encoder width and the size that sets its parameter count."""


def _metric(title: str, head: HeadDesign) -> Model:
    return Model(title, lambda width, size: QuasimetricModel(*head.build_on(width, size)))


MODELS: dict[str, Model] = {
    "mrn": _metric("MRN", HEADS["mrn"]),
    "mrn-sym": _metric("MRN, symmetric part", HEADS["mrn-sym"]),
    "mrn-asym": _metric("MRN, asymmetric part", HEADS["mrn-asym"]),
    "bvn": Model("BVN", lambda _, size: CriticModel(Bilinear(POINTS, size, state_in_phi=True))),
    "monolithic": Model("monolithic", lambda _, size: CriticModel(Monolithic(POINTS, size))),
    "dn": _metric("DN", HEADS["dn"]),
    "wn": _metric("WN", HEADS["wn"]),
    "pqe": _metric("PQE", HEADS["pqe"]),
    "iqe": _metric("IQE", HEADS["iqe"]),
}


def make_model(name: str, width: int) -> nn.Module:
    """Build a network with the parameter count of a monolithic one of the given width."""
    build = MODELS[name].build
    encoder = round(ENCODER_DIM * width / REFERENCE_HIDDEN_DIM)
    with torch.device("meta"):  # shapes only: no memory, no random numbers
        target = count_parameters(Monolithic(POINTS, width))
        size = nearest_size(lambda size: count_parameters(build(encoder, size)), target)
    return build(encoder, size)
