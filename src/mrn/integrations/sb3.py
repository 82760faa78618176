"""Our critics in Stable-Baselines3's DDPG, TD3 and SAC, by a policy class."""

from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from mrn.critics import REFERENCE_HIDDEN_DIM, Critic, Dims, make_critic
from mrn.envs.requirements import goal_space
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra

import_extra("stable_baselines3", "sb3")  # says how to install it, where the next lines would not

from stable_baselines3.common.policies import BasePolicy, ContinuousCritic  # noqa: E402
from stable_baselines3.common.preprocessing import get_action_dim  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule, TensorDict  # noqa: E402
from stable_baselines3.sac.policies import MultiInputPolicy as SACPolicy  # noqa: E402
from stable_baselines3.td3.policies import MultiInputPolicy as TD3Policy  # noqa: E402

__all__ = ["MetricPolicy", "MetricSACPolicy"]

KEYS = ("observation", "desired_goal")
"""What a critic looks at; `achieved_goal` is hindsight's."""


class StateAndGoal(BaseFeaturesExtractor):
    """What a critic sees of an observation, side by side: the state, then the goal."""

    def __init__(self, observation_space: spaces.Dict, dims: Dims) -> None:
        """Take the sizes of both."""
        super().__init__(observation_space, features_dim=dims.state + dims.goal)

    def forward(self, observations: TensorDict) -> Tensor:
        """Shape (B, state + goal)."""
        return torch.cat([observations[key] for key in KEYS], dim=1)


class GoalCritics(ContinuousCritic):
    """Critics Q(s, a, g) of one architecture, with the interface of Stable-Baselines3's own.

    Its actions are in [-1, 1] already, whatever the environment's bounds are, as ours must be.
    """

    q_networks: list[Critic]  # type: ignore[assignment]  # ours take three vectors

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        critic: str,
        hidden_dim: int,
        n_critics: int,
    ) -> None:
        """Make the critics; each begins with weights of its own.

        Args:
            observation_space: Of a goal environment.
            action_space: Its actions.
            critic: As `mrn.make_critic` takes it.
            hidden_dim: As `mrn.make_critic` takes it.
            n_critics: How many.
        """
        state, goal = (spaces.flatdim(observation_space[key]) for key in KEYS)
        dims = Dims(state, get_action_dim(action_space), goal)
        features = StateAndGoal(observation_space, dims)
        super().__init__(
            observation_space,
            action_space,
            net_arch=[],
            features_extractor=features,
            features_dim=features.features_dim,
            n_critics=0,  # none of its own
            share_features_extractor=False,
        )
        self.dims, self.n_critics = dims, n_critics
        for number in range(n_critics):
            network = make_critic(critic, dims.state, dims.action, dims.goal, hidden_dim)
            self.add_module(f"qf{number}", network)
            self.q_networks.append(network)

    def forward(self, obs: PyTorchObs, actions: Tensor) -> tuple[Tensor, ...]:
        """Q of each critic, shape (B, 1)."""
        state, goal = self._inputs(obs)
        return tuple(network(state, actions, goal).unsqueeze(1) for network in self.q_networks)

    def q1_forward(self, obs: PyTorchObs, actions: Tensor) -> Tensor:
        """Q of the first critic, shape (B, 1)."""
        state, goal = self._inputs(obs)
        return self.q_networks[0](state, actions, goal).unsqueeze(1)

    def _inputs(self, obs: PyTorchObs) -> tuple[Tensor, ...]:
        features = self.extract_features(obs, self.features_extractor)
        return features.split([self.dims.state, self.dims.goal], dim=1)


class _WithGoalCritics(BasePolicy):
    """What the policies have in common: Stable-Baselines3's actor, our critics."""

    critic_kwargs: dict[str, Any]

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Box,
        lr_schedule: Schedule,
        critic: str = "mrn",
        critic_width: int = REFERENCE_HIDDEN_DIM,
        **kwargs: Any,
    ) -> None:
        """Build actor, critics and targets; `policy_kwargs` come here.

        Args:
            observation_space: Of a goal environment.
            action_space: Its actions.
            lr_schedule: Of the optimisers.
            critic: A name that `mrn critics` lists, or `package.module:name` of one of your own.
            critic_width: Width of the monolithic critic that has as many parameters.
            **kwargs: What Stable-Baselines3's own policy takes, for the actor and the optimisers;
                and `n_critics`.

        Raises:
            UserError: The observations are none of a goal environment, there is no such critic, or
                a setting is for critics of another kind.
        """
        space = goal_space(observation_space, f"the environment of {type(self).__name__}")
        if kwargs.get("share_features_extractor"):
            raise UserError(
                "share_features_extractor: our critics look at the state and the goal "
                "themselves, so that they have no features to share; leave it out"
            )
        if isinstance(kwargs.get("net_arch"), dict):
            raise UserError(
                f"net_arch is for the actor alone, got {kwargs['net_arch']}; give its layers as a "
                "list, such as [256, 256, 256], and the size of the critics as critic_width"
            )
        # Before the rest, because Stable-Baselines3 makes the networks in its constructor.
        self.critic_name, self.critic_width = critic, critic_width
        super().__init__(space, action_space, lr_schedule, **kwargs)

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> GoalCritics:
        """Critics of the architecture that was asked for; the actor's features are not used."""
        critics = GoalCritics(
            self.observation_space,  # type: ignore[arg-type]  # checked in the constructor
            self.action_space,  # type: ignore[arg-type]  # and by Stable-Baselines3
            self.critic_name,
            self.critic_width,
            self.critic_kwargs["n_critics"],
        )
        return critics.to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        ours = {"critic": self.critic_name, "critic_width": self.critic_width}
        return super()._get_constructor_parameters() | ours


class MetricPolicy(_WithGoalCritics, TD3Policy):
    """For DDPG and TD3: `TD3(MetricPolicy, env, policy_kwargs={"critic": "mrn"}, ...)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As the others.

        Raises:
            UserError: SAC makes it, which has a policy of its own.
        """
        if "use_sde" in kwargs:  # which is how SAC asks
            raise UserError("MetricPolicy is for DDPG and TD3: SAC takes MetricSACPolicy")
        super().__init__(*args, **kwargs)


class WrongPolicyError(UserError, AttributeError):
    """An algorithm asked a policy for what policies of another one have."""


class MetricSACPolicy(_WithGoalCritics, SACPolicy):
    """For SAC: `SAC(MetricSACPolicy, env, policy_kwargs={"critic": "mrn"}, ...)`."""

    def __getattr__(self, name: str) -> Any:
        """What is missing, as `nn.Module` says it; DDPG and TD3 miss a target of the actor."""
        if name == "actor_target":
            raise WrongPolicyError("MetricSACPolicy is for SAC: DDPG and TD3 take MetricPolicy")
        return super().__getattr__(name)
