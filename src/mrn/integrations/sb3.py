"""Policy classes that use metric critics in Stable-Baselines3's DDPG, TD3 and SAC."""

import warnings
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mrn.critics import REFERENCE_HIDDEN_DIM, Critic, Dims, make_critic
from mrn.critics.metric import MetricCritic
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra
from mrn.utils.renames import SB3_KEYWORDS
from mrn.utils.validation import PositiveInt, check

import_extra("stable_baselines3", "sb3")  # raises an error with an install hint

from gymnasium import spaces  # noqa: E402
from stable_baselines3.common.policies import BasePolicy, ContinuousCritic  # noqa: E402
from stable_baselines3.common.preprocessing import get_action_dim  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule, TensorDict  # noqa: E402
from stable_baselines3.sac.policies import MultiInputPolicy as SACPolicy  # noqa: E402
from stable_baselines3.td3.policies import MultiInputPolicy as TD3Policy  # noqa: E402

from mrn.envs.requirements import goal_space  # noqa: E402

__all__ = ["MetricPolicy", "MetricSACPolicy"]

CRITIC_KEYS = ("observation", "desired_goal")
"""Observation keys that critics use; `achieved_goal` is only for hindsight relabeling."""
MAX_TARGET = 0.25
"""Target value above which a metric critic warns, because it cannot be positive."""


class StateGoalExtractor(BaseFeaturesExtractor):
    """Features extractor that concatenates state and goal."""

    def __init__(self, observation_space: spaces.Dict, dims: Dims) -> None:
        """Set the feature size to the sum of both dimensions."""
        super().__init__(observation_space, features_dim=dims.state + dims.goal)

    def forward(self, observations: TensorDict) -> Tensor:
        """Return state and goal, shape (B, state_dim + goal_dim)."""
        return torch.cat([observations[key] for key in CRITIC_KEYS], dim=1)


class GoalContinuousCritic(ContinuousCritic):
    """Ensemble of critics Q(s, a, g) with the interface of Stable-Baselines3's `ContinuousCritic`.

    Stable-Baselines3 rescales actions to [-1, 1] before they reach the critic, as `Critic` expects.
    """

    q_networks: list[Critic]  # type: ignore[assignment]  # these take three tensors

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        critic: str,
        hidden_dim: int,
        n_critics: int,
    ) -> None:
        """Create the critics, each with its own initial weights.

        Args:
            observation_space: Observation space of a goal environment.
            action_space: Action space of the environment.
            critic: Critic architecture, see `mrn.make_critic`.
            hidden_dim: Hidden dimension, see `mrn.make_critic`.
            n_critics: Number of critics.
        """
        state, goal = (spaces.flatdim(observation_space[key]) for key in CRITIC_KEYS)
        dims = Dims(state, get_action_dim(action_space), goal)
        features = StateGoalExtractor(observation_space, dims)
        super().__init__(
            observation_space,
            action_space,
            net_arch=[],
            features_extractor=features,
            features_dim=features.features_dim,
            n_critics=0,  # create no MLP critics
            share_features_extractor=False,
        )
        self.dims, self.n_critics = dims, n_critics
        for index in range(n_critics):
            network = make_critic(critic, dims.state, dims.action, dims.goal, hidden_dim)
            self.add_module(f"qf{index}", network)
            self.q_networks.append(network)

        self.checks_targets = isinstance(self.q_networks[0], MetricCritic)

    def forward(self, obs: PyTorchObs, actions: Tensor) -> tuple[Tensor, ...]:
        """Return Q of each critic, shape (B, 1)."""
        state, goal = self._split(obs)
        q = tuple(network(state, actions, goal).unsqueeze(1) for network in self.q_networks)
        # Actions from the replay buffer have no gradient; those of an actor update do.
        if self.checks_targets and q[0].requires_grad and not actions.requires_grad:
            q[0].register_hook(partial(self._check_targets, q[0].detach()))
        return q

    def _check_targets(self, q: Tensor, gradient: Tensor) -> None:
        """Warn once if targets are positive, as with rewards of 0 and 1.

        Stable-Baselines3 shows rewards and targets only to its loss. For its mean of squares, the
        gradient is 2 (q - target) / B in TD3, and half of that in SAC. The latter gives a lower
        bound of a positive target, because Q is not positive.
        """
        target = float((q - gradient * (len(q) / 2)).max())
        if self.checks_targets and target > MAX_TARGET:
            self.checks_targets = False
            warnings.warn(
                f"the critic's targets reach {target:.2g}, but a metric critic cannot be positive "
                "and would learn Q = 0. Rewards must be -1 before the goal and 0 at the goal: "
                "subtract 1 from rewards of 0 and 1. With SAC, also start with a low temperature "
                "such as ent_coef='auto_0.05'",
                stacklevel=2,
            )

    def q1_forward(self, obs: PyTorchObs, actions: Tensor) -> Tensor:
        """Return Q of the first critic, shape (B, 1)."""
        state, goal = self._split(obs)
        return self.q_networks[0](state, actions, goal).unsqueeze(1)

    def _split(self, obs: PyTorchObs) -> tuple[Tensor, ...]:
        features = self.extract_features(obs, self.features_extractor)
        return features.split([self.dims.state, self.dims.goal], dim=1)


class _GoalPolicy(BasePolicy):
    """Base class of the policies: actor of Stable-Baselines3, critics of this package."""

    critic_kwargs: dict[str, Any]

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Box,
        lr_schedule: Schedule,
        critic: str = "mrn",
        critic_hidden_dim: int = REFERENCE_HIDDEN_DIM,
        **kwargs: Any,
    ) -> None:
        """Create actor, critics and target networks. `policy_kwargs` are passed here.

        Args:
            observation_space: Observation space of a goal environment.
            action_space: Action space of the environment.
            lr_schedule: Learning rate schedule.
            critic: Critic architecture (`mrn critics`), or `package.module:name` of a custom one.
            critic_hidden_dim: Hidden dimension of the monolithic critic. All other critics match
                its number of parameters.
            **kwargs: Keyword arguments of Stable-Baselines3's policy: actor, optimizers,
                `n_critics`.

        Raises:
            UserError: The environment is not a goal environment, the critic is unknown, or a
                keyword argument does not apply to these critics.
        """
        for old, new in SB3_KEYWORDS.items():
            if old in kwargs:
                raise UserError(f"{old} was renamed to {new}")
        space = goal_space(observation_space, f"the environment of {type(self).__name__}")
        if kwargs.get("share_features_extractor"):
            raise UserError(
                "share_features_extractor must be False: these critics take state and goal "
                "directly and have no features to share"
            )
        if isinstance(kwargs.get("net_arch"), dict):
            raise UserError(
                "net_arch applies only to the actor and must be a list such as [256, 256, 256], "
                f"got {kwargs['net_arch']}; set the size of the critics with critic_hidden_dim"
            )
        check("n_critics", kwargs.get("n_critics", 1), PositiveInt)
        # Set first, because the constructor of Stable-Baselines3 creates the networks.
        self.critic_name, self.critic_hidden_dim = critic, critic_hidden_dim
        super().__init__(space, action_space, lr_schedule, **kwargs)

    def make_critic(
        self, features_extractor: BaseFeaturesExtractor | None = None
    ) -> GoalContinuousCritic:
        """Create the critics; the actor's features extractor is not used."""
        critics = GoalContinuousCritic(
            self.observation_space,  # type: ignore[arg-type]  # checked in the constructor
            self.action_space,  # type: ignore[arg-type]  # checked by Stable-Baselines3
            self.critic_name,
            self.critic_hidden_dim,
            self.critic_kwargs["n_critics"],
        )
        return critics.to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {"critic": self.critic_name, "critic_hidden_dim": self.critic_hidden_dim}
        return super()._get_constructor_parameters() | own


class MetricPolicy(_GoalPolicy, TD3Policy):
    """Policy class for DDPG and TD3 with a metric critic.

    Example: `TD3(MetricPolicy, env, policy_kwargs={"critic": "mrn"}, ...)`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the policy, see `policy_kwargs` above.

        Raises:
            UserError: `use_sde` is given, by SAC or in a dictionary that SAC has used before.
        """
        if "use_sde" in kwargs:  # SAC adds it to the caller's dictionary
            raise UserError(
                "MetricPolicy is for DDPG and TD3 and has no use_sde. For SAC, use "
                "MetricSACPolicy. For DDPG and TD3, do not reuse the policy_kwargs of a SAC "
                "model, to which SAC adds use_sde: pass a new dictionary to each model"
            )
        super().__init__(*args, **kwargs)


class WrongPolicyError(UserError, AttributeError):
    """The policy class does not match the algorithm."""


class MetricSACPolicy(_GoalPolicy, SACPolicy):
    """Policy class for SAC with a metric critic.

    Example: `SAC(MetricSACPolicy, env, policy_kwargs={"critic": "mrn"}, ...)`.
    """

    def __getattr__(self, name: str) -> Any:
        """Raise `WrongPolicyError` for the actor target, which only DDPG and TD3 look up."""
        if name == "actor_target":
            raise WrongPolicyError("MetricSACPolicy is for SAC; use MetricPolicy for DDPG and TD3")
        return super().__getattr__(name)
