"""Train on a custom goal environment: a boat that crosses a pond with a current.

Run `python examples/custom_environment.py`. It takes about ten seconds.
"""

# --8<-- [start:environment]
import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Pond(gym.Env):
    """A boat on a square pond. A current pushes it to the right."""

    def __init__(self):
        position = spaces.Box(-2.0, 2.0, (2,), np.float64)
        self.observation_space = spaces.Dict(
            {"observation": position, "achieved_goal": position, "desired_goal": position}
        )
        self.action_space = spaces.Box(-0.2, 0.2, (2,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.boat = self.np_random.uniform(-1, 1, 2)
        self.goal = self.np_random.uniform(-1, 1, 2)
        return self._observe(), {}

    def step(self, action):
        self.boat = np.clip(self.boat + action + [0.05, 0.0], -2, 2)
        reward = float(self.compute_reward(self.boat, self.goal, {}))
        return self._observe(), reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal, desired_goal, info):
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distance > 0.15).astype(float)

    def _observe(self):
        return {
            "observation": self.boat.copy(),
            "achieved_goal": self.boat.copy(),
            "desired_goal": self.goal.copy(),
        }


# --8<-- [end:environment]
# --8<-- [start:register]
if "Pond-v0" not in gym.registry:
    gym.register("Pond-v0", Pond, max_episode_steps=25)
# --8<-- [end:register]


# --8<-- [start:train]
if __name__ == "__main__":
    import mrn

    agent = mrn.train(
        "custom_environment:Pond-v0",
        critic="mrn",
        epochs=2,
        cycles=8,
        batch_size=256,
        action_penalty=0.1,
        run_dir="runs/pond",
        resume=True,  # skip training if the run is already complete
    )

    env = gym.make("Pond-v0")
    observation, _ = env.reset(seed=1)
    for _ in range(25):
        action, _ = agent.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, info = env.step(action)
    print("reached the goal:", info["is_success"])
# --8<-- [end:train]
