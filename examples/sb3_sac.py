"""Train Stable-Baselines3's SAC with a metric critic, and evaluate mrn policies with its tools.

Run `python examples/sb3_sac.py`. It takes about a minute.
"""

# --8<-- [start:train]
from pathlib import Path

import gymnasium as gym
import gymnasium_robotics
from stable_baselines3 import SAC, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

import mrn
from mrn.integrations.sb3 import MetricSACPolicy

folder = Path("runs/sb3")
folder.mkdir(parents=True, exist_ok=True)

gym.register_envs(gymnasium_robotics)
env = make_vec_env("FetchReach-v4", seed=0)
env = VecNormalize(env, norm_reward=False, clip_obs=5.0, epsilon=1e-4)
model = SAC(
    MetricSACPolicy,
    env,
    policy_kwargs={"critic": "mrn", "critic_hidden_dim": 128, "net_arch": [128, 128]},
    replay_buffer_class=HerReplayBuffer,
    ent_coef="auto_0.05",
    buffer_size=50_000,
    learning_starts=500,
    train_freq=50,  # one episode, then one gradient step per environment step
    gradient_steps=50,
    learning_rate=1e-3,
    gamma=0.95,
    tau=0.05,
    seed=0,
)
model.learn(4_000)
# --8<-- [end:train]

# --8<-- [start:load]
model.save(folder / "reach.zip")
env.save(folder / "reach-statistics.pkl")

env = VecNormalize.load(folder / "reach-statistics.pkl", make_vec_env("FetchReach-v4", seed=1))
env.training = False
model = SAC.load(folder / "reach.zip", env=env)
# --8<-- [end:load]

# --8<-- [start:evaluate]
successes = []


def record_success(local_variables, _):
    """Record whether an episode ends at its goal."""
    if local_variables["done"]:
        successes.append(local_variables["info"]["is_success"])


evaluate_policy(model, env, n_eval_episodes=10, callback=record_success)
print(f"{sum(successes):.0f} of {len(successes)} episodes end at the goal")
# --8<-- [end:evaluate]

# --8<-- [start:predict]
agent = mrn.load("zoo:FetchReach")  # or a run folder
reward, deviation = evaluate_policy(agent, make_vec_env("FetchReach-v4", 2), n_eval_episodes=10)
print(f"return {reward:.1f} +- {deviation:.1f} per episode of 50 steps")
# --8<-- [end:predict]
