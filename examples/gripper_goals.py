"""FetchPush with the gripper's position in its goals, as in the authors' code of CRL and QRL.

A goal has six numbers: where the gripper and the object should be. Both are the place that
FetchPush asks for; only the object decides about success. Train it with
`mrn train examples.gripper_goals:PushWithGripper-v0 --algo crl` from the folder above.
"""

import gymnasium as gym
import gymnasium_robotics
import numpy as np

gym.register_envs(gymnasium_robotics)


# --8<-- [start:wrapper]
class PushWithGripper(gym.ObservationWrapper):
    """FetchPush whose goals start with a position of the gripper."""

    def __init__(self):
        super().__init__(gym.make("FetchPush-v4").unwrapped)
        goal = gym.spaces.Box(-np.inf, np.inf, (6,), np.float64)
        goals = {"achieved_goal": goal, "desired_goal": goal}
        self.observation_space = gym.spaces.Dict(dict(self.env.observation_space.spaces) | goals)

    def observation(self, observation):
        gripper, desired = observation["observation"][:3], observation["desired_goal"]
        return {
            "observation": observation["observation"],
            "achieved_goal": np.concatenate([gripper, observation["achieved_goal"]]),
            "desired_goal": np.concatenate([desired, desired]),
        }

    def compute_reward(self, achieved_goal, desired_goal, info):
        return self.env.compute_reward(achieved_goal[..., 3:], desired_goal[..., 3:], info)


# --8<-- [end:wrapper]
if "PushWithGripper-v0" not in gym.registry:
    gym.register("PushWithGripper-v0", PushWithGripper, max_episode_steps=50)
