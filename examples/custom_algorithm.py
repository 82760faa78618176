"""Train with a custom algorithm that regresses the critic on hindsight distances.

Run `python examples/custom_algorithm.py`. It takes a few seconds.
"""

# --8<-- [start:algorithm]
from dataclasses import dataclass

import torch

from mrn.algorithms import Algorithm, AlgorithmSettings
from mrn.algorithms.adam import Adam
from mrn.algorithms.exploration import NoiseSettings, add_noise
from mrn.algorithms.losses import actor_loss
from mrn.algorithms.networks import Actor
from mrn.utils.validation import NonNegativeFloat


@dataclass(frozen=True)
class StopwatchSettings(NoiseSettings, AlgorithmSettings):
    """Common settings, exploration noise and an action penalty."""

    action_penalty: NonNegativeFloat = 1.0
    """Weight of the squared action in the actor loss."""


class Stopwatch(Algorithm):
    """Fit the critic to the number of steps to relabeled goals; the actor maximizes it."""

    Settings = StopwatchSettings
    METRICS = ("critic_loss", "actor_loss")  # names of the values that `update` returns

    def __init__(self, dims, make_critic, settings):
        super().__init__(dims, make_critic, settings)
        self.settings = settings
        self.critic = make_critic()  # the architecture that the run selects
        self.actor = Actor(dims, settings.hidden_dim)
        self.optimizer = Adam(self.parameters(), settings.learning_rate)

    @property
    def optimizers(self):
        return {"optimizer": self.optimizer}

    def update(self, batch, update_step, generator):
        state, goal = batch.state, batch.goal
        relabeled = torch.isfinite(batch.steps_to_goal)
        cost = torch.where(relabeled, batch.steps_to_goal - 1, 0)  # the last step is free
        self.optimizer.zero_grad()
        goal_side = self.critic.goal_side(state, goal)  # shared by both losses
        q = self.critic.score(state, batch.action, goal_side)
        critic_loss = torch.where(relabeled, q + cost, 0).square().mean()
        critic_loss.backward()
        action = self.actor(state, goal)
        policy_loss = actor_loss(
            self.critic.score(state, action, goal_side), action, self.settings.action_penalty
        )
        policy_loss.backward(inputs=list(self.actor.parameters()))
        self.optimizer.step()
        return torch.stack([critic_loss, policy_loss]).detach()  # no device synchronization

    def explorer(self, steps, num_envs, generator):
        return add_noise(self.actor, self.settings, steps, num_envs, generator)


# --8<-- [end:algorithm]
# --8<-- [start:train]
if __name__ == "__main__":
    import mrn

    agent = mrn.train(
        "FetchReach",
        algo="custom_algorithm:Stopwatch",
        critic="mrn",
        action_penalty=0.5,
        epochs=1,  # too short to learn: use the defaults for a full run
        cycles=2,
        gradient_steps=5,
        eval_episodes=20,
        run_dir="runs/stopwatch",
        resume=True,  # skip training if the run is already complete
    )
    print(agent.evaluate(episodes=20))
# --8<-- [end:train]
