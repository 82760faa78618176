"""Control a robot with an exported policy. The loop needs neither torch nor mrn.

Run `python examples/onnx_control_loop.py`. It takes a few seconds. Without an argument it exports
the zoo policy for FetchReach first; otherwise the argument is the path of an ONNX file.
"""

# --8<-- [start:loop]
import sys
from pathlib import Path

import gymnasium as gym
import gymnasium_robotics
import numpy as np
import onnxruntime


def reach(policy_file, goal):
    """Run the policy for 50 steps and return the final position of the gripper."""
    policy = onnxruntime.InferenceSession(policy_file)
    gym.register_envs(gymnasium_robotics)
    env = gym.make("FetchReach-v4")  # replace with your robot
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        inputs = {
            "observation": observation["observation"][None].astype(np.float32),
            "desired_goal": goal[None].astype(np.float32),
        }
        (actions,) = policy.run(["action"], inputs)
        observation, *_ = env.step(actions[0])
    return observation["achieved_goal"]


# --8<-- [end:loop]


def export_policy(path):
    """Export the zoo policy for FetchReach, as `mrn export zoo:FetchReach` does."""
    import mrn
    from mrn.integrations.onnx import export

    export(mrn.load("zoo:FetchReach"), path, force=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        policy_file = Path(sys.argv[1])
    else:
        policy_file = Path("runs/policy.onnx")
        export_policy(policy_file)
    goal = np.array([1.3, 0.8, 0.6])
    print("goal", *goal)
    print("final position", *reach(policy_file, goal))
