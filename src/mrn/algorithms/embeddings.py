"""Critics of the quasimetric algorithms: actions, states and goals as points of one space.

Three encoders share a head d: phi(s, a), psi(s) and the goal encoder h(g). A goal of the robot
tasks is a part of a state, so it cannot be embedded as one. Instead, algorithms tie both
encoders by transitions of zero cost: d(psi(s'), h(g)) = 0 if s' achieves g.
"""

import torch
from torch import Tensor, nn

from mrn.critics import Critic, Dims
from mrn.critics.base import Linear, mlp
from mrn.critics.heads import Head
from mrn.critics.metric import MetricCritic
from mrn.critics.shared import SharedMetricCritic
from mrn.utils.errors import UserError


def quasimetric_head_of(critic: Critic) -> tuple[int, Head]:
    """Return the width of a critic's encoders and its head, to build other encoders below it.

    Raises:
        UserError: The critic has other encoders, or its head is not a quasimetric.
    """
    if type(critic) is not MetricCritic or not critic.is_quasimetric:
        raise UserError(
            f"the algorithm needs an mrn.critics.metric.MetricCritic with a quasimetric head, got "
            f"{type(critic).__name__}: choose a critic such as mrn or iqe"
        )
    first = critic.e1[0]
    assert isinstance(first, Linear)
    return first.out_features, critic.head


class GoalCritic(SharedMetricCritic):
    """Critic Q(s, a, g) = -d(phi(s, a), h(g))."""

    def pairs(self, start: Tensor, goal: Tensor) -> Tensor:
        """Return the distances of all pairs, (B, B), of embeddings (B, width) and goals (B, goal).

        Rows are starts and columns are goals.
        """
        return self.head.pairs(start, self.embed_goal(goal))


class StateCritic(GoalCritic):
    """`GoalCritic` that also embeds states: psi(s)."""

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build phi, h and psi with two layers each."""
        super().__init__(dims, hidden_dim, head)
        self.psi = mlp([dims.state, hidden_dim, hidden_dim], activate_last=True)

    def embed_state(self, state: Tensor, achieved: Tensor | None = None) -> Tensor:
        """Return psi(s), shape (B, width)."""
        return self.psi(state)

    def achieved_goal_distance(self, state: Tensor, achieved: Tensor) -> Tensor:
        """Return d(psi(s), h(g)), shape (B,), for the goals that the states achieve."""
        return self.head(self.psi(state), self.embed_goal(achieved))


class LatentModelCritic(StateCritic):
    """`StateCritic` with phi(s, a) = T(psi(s), a): a model of the transition in latent space.

    T(z, a) = z + MLP(z, a) predicts psi(s'), so -Q is the distance from the next state.
    """

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build h, psi and T, which starts as the identity."""
        super().__init__(dims, hidden_dim, head)
        self.e1 = mlp([hidden_dim + dims.action, hidden_dim, hidden_dim])
        last = self.e1[-1]
        assert isinstance(last, Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def predict(self, embedding: Tensor, action: Tensor) -> Tensor:
        """Return T(z, a), shape (B, width)."""
        return embedding + self.e1(torch.cat([embedding, action], dim=-1))

    def embed(self, state: Tensor, action: Tensor) -> Tensor:
        """Return T(psi(s), a), shape (B, width)."""
        return self.predict(self.psi(state), action)
