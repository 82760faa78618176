"""Actor-critic skeleton of the algorithms that learn a quasimetric from trajectories.

The critic learns without rewards or target networks; each algorithm defines `critic_loss`. The
actor is SAC's, a squashed Gaussian with a learned temperature alpha. It minimizes
alpha log pi(a | s, g) - v(s, a, g), where v is minus the distance in steps.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.embeddings import GoalCritic, StateCritic, quasimetric_head_of
from mrn.algorithms.entropy import EntropySettings, sample_policy
from mrn.algorithms.exploration import Explorer, normal_like
from mrn.algorithms.losses import temperature_loss
from mrn.algorithms.networks import GaussianActor
from mrn.batch import Batch, Trajectory, TrajectorySampling
from mrn.critics import Critic, Dims
from mrn.critics.heads import HEADS
from mrn.utils.validation import Bounds, NonNegativeFloat


@dataclass(frozen=True)
class QuasimetricSettings(EntropySettings, AlgorithmSettings):
    """Hyperparameters shared by the quasimetric algorithms."""

    batch_size: Annotated[int, Bounds(ge=2, le=2**20)] = 256
    learning_rate: NonNegativeFloat = 3e-4


@dataclass(frozen=True)
class OccupancySettings(QuasimetricSettings):
    """Hyperparameters of algorithms whose distance is minus the log of a discounted occupancy."""

    discount: Annotated[float, Bounds(ge=0.1, lt=1)] = 0.98
    """Discount factor gamma of the state occupancy; also of the sampled future goals."""


@dataclass(frozen=True)
class ContrastiveSettings(OccupancySettings):
    """Hyperparameters of algorithms with a contrastive loss."""

    label_smoothing: Annotated[float, Bounds(ge=0, lt=1)] = 0.1
    """Probability that a pair matches by chance; bounds the distance of goals out of reach."""


class QuasimetricAlgorithm(Algorithm):
    """Base class: a critic that is minus a quasimetric, and a stochastic actor."""

    Settings: ClassVar[type[AlgorithmSettings]] = QuasimetricSettings
    METRICS: ClassVar[tuple[str, ...]] = (
        "critic_loss",
        "actor_loss",
        "mean_q",
        "entropy",
        "ent_coef",
    )
    Network: ClassVar[type[GoalCritic]] = StateCritic
    """Class of the critic."""

    actor: GaussianActor
    critic: Critic

    def __init__(
        self, dims: Dims, make_critic: CriticFactory, settings: QuasimetricSettings
    ) -> None:
        """Build the critic, the actor and the temperature."""
        super().__init__(dims, make_critic, settings)
        self.critic = self.make_network(dims, make_critic())
        self.actor = GaussianActor(dims, settings.hidden_dim)
        self.settings = settings
        self.log_temperature = nn.Parameter(torch.tensor(math.log(settings.ent_coef)))
        self.target_entropy = settings.target_entropy * dims.action
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        networks = [*self._actor_weights, *self.critic.parameters()]
        self.optimizer = Adam(networks, settings.learning_rate)
        self.temperature_optimizer = Adam([self.log_temperature], settings.learning_rate)

    def add_networks(self, *modules: nn.Module) -> None:
        """Train more networks with the critic."""
        for module in modules:
            self.optimizer.weights += module.parameters()

    @classmethod
    def can_use(cls, critic: str) -> bool:
        """Return whether a built-in critic is a plain one with a quasimetric head."""
        return critic in HEADS and HEADS[critic].is_quasimetric

    def make_network(self, dims: Dims, critic: Critic) -> Critic:
        """Build the encoders of the algorithm below the head of a critic."""
        return self.Network(dims, *quasimetric_head_of(critic))

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of all networks and that of the temperature."""
        return {"optimizer": self.optimizer, "temperature_optimizer": self.temperature_optimizer}

    def actor_value(self, q: Tensor) -> Tensor:
        """Return what the actor maximizes in addition to its entropy, shape (B,)."""
        return q

    @abstractmethod
    def critic_loss(self, batch: Batch, trajectory: Trajectory) -> tuple[Tensor, list[Tensor]]:
        """Return the loss of the critic, and the metrics that follow the common ones."""

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Update all networks and the temperature."""
        losses = self.compute_gradients(batch, generator)
        for optimizer in self.optimizers.values():
            optimizer.step()
        return losses

    def compute_gradients(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Set the gradients of all losses at the current weights; return `METRICS`."""
        assert batch.trajectory is not None  # see `trajectory_sampling`
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        critic_loss, own_metrics = self.critic_loss(batch, batch.trajectory)
        critic_loss.backward()

        with torch.no_grad():
            goal_side = self.critic.goal_side(batch.state, batch.goal)
            temperature = self.log_temperature.exp()
        noise = normal_like(batch.action, generator)
        action, log_prob = self.actor.sample(batch.state, batch.goal, noise)
        q = self.critic.score(batch.state, action, goal_side)
        policy_loss = temperature * log_prob.mean() - self.actor_value(q).mean()
        policy_loss.backward(inputs=self._actor_weights)
        temperature_loss(self.log_temperature, log_prob, self.target_entropy).backward()
        metrics = [critic_loss, policy_loss, q.mean(), -log_prob.mean(), temperature, *own_metrics]
        return torch.stack(metrics).detach()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the stochastic policy itself; the noise of all steps is drawn in advance."""
        return sample_policy(self.actor, steps, num_envs, generator)


class OccupancyAlgorithm(QuasimetricAlgorithm):
    """Base class of algorithms whose distance is minus the log of a discounted occupancy."""

    Settings: ClassVar[type[AlgorithmSettings]] = OccupancySettings
    is_log_occupancy = True

    settings: OccupancySettings

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: OccupancySettings) -> None:
        """Build the networks; sample future goals with the discount of the occupancy."""
        super().__init__(dims, make_critic, settings)
        self.discount = settings.discount
        self.trajectory_sampling = TrajectorySampling(settings.discount)

    def actor_value(self, q: Tensor) -> Tensor:
        """Return Q / -log gamma, shape (B,): minus the distance in steps."""
        return q / -math.log(self.discount)
