"""DDPG with hindsight replay and a metric residual network (MRN) critic, in a single file.

Read it from top to bottom and change anything: it uses PyTorch and Gymnasium-Robotics, and does not
import `mrn`. The settings are those of the recipe `fast`, without redraws. Run

    python examples/mrn_single_file.py --env_id FetchPush-v4 --epochs 12

FetchReach, the default, takes about a minute on one core. It leaves out checkpoints, EnvPool, other
critics and algorithms, and environments that end episodes early.

MRN: Liu et al. 2023, https://arxiv.org/abs/2208.08133. HER: Andrychowicz et al. 2017,
https://arxiv.org/abs/1707.01495. DDPG: Lillicrap et al. 2015, https://arxiv.org/abs/1509.02971.
"""

import argparse
import copy
import time
from dataclasses import dataclass, fields
from itertools import pairwise

import gymnasium as gym
import gymnasium_robotics
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.nn import functional as F

gym.register_envs(gymnasium_robotics)


@dataclass
class Settings:
    """Everything that determines a run; each field is an option of the command line."""

    env_id: str = "FetchReach-v4"
    seed: int = 1
    epochs: int = 1
    cycles: int = 25  # per epoch; a cycle is one episode in each environment, then updates
    num_envs: int = 10
    gradient_steps: int = 40  # per cycle
    warmup_episodes: int = 200  # with uniform random actions
    eval_episodes: int = 50  # after each epoch
    buffer_episodes: int = 20_000  # capacity of the replay buffer
    batch_size: int = 1024
    learning_rate: float = 1e-3
    discount: float = 0.98
    tau: float = 0.1  # step size of a target update
    target_update_interval: int = 4  # updates between two target updates
    action_penalty: float = 0.3  # weight of the mean squared action in the actor's loss
    exploration_noise: float = 0.2
    random_action_prob: float = 0.3
    her_ratio: float = 0.8  # fraction of transitions with a goal that was achieved later
    hidden_dim: int = 256  # of the actor
    critic_dim: int = 176  # of the critic, which then has as many weights as an MLP of 256
    embedding_dim: int = 16  # of phi and h


# Networks -----------------------------------------------------------------------------------------


def mlp(*sizes):
    """Return linear layers with ReLU in between."""
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Actor(nn.Module):
    """Deterministic policy a = tanh(MLP(s, g))."""

    def __init__(self, state_dim, action_dim, goal_dim, width):
        super().__init__()
        self.net = mlp(state_dim + goal_dim, width, width, width, action_dim)

    def forward(self, state, goal):
        return self.net(torch.cat([state, goal], dim=-1)).tanh()


class MRNCritic(nn.Module):
    """Q(s, a, g) = -d(x, y) with x = e1(s, a), y = e2(s, g), and a distance of two parts.

    d(x, y) = sqrt(mean_i (phi_i(x) - phi_i(y))^2) + max_j relu(h_j(x) - h_j(y))

    The first part is symmetric, the residual is not. Both satisfy the triangle inequality for all
    weights, so Q has the structure of an optimal value function by construction.
    """

    def __init__(self, state_dim, action_dim, goal_dim, width, embedding_dim=16):
        super().__init__()
        self.e1 = mlp(state_dim + action_dim, width, width)
        self.e2 = mlp(state_dim + goal_dim, width, width)
        self.phi = mlp(width, width, embedding_dim)
        self.h = mlp(width, width, embedding_dim)

    def forward(self, state, action, goal):
        x = self.e1(torch.cat([state, action], dim=-1)).relu()
        y = self.e2(torch.cat([state, goal], dim=-1)).relu()
        difference = self.phi(x) - self.phi(y)
        # vector_norm has the gradient 0 at 0, where the square root of a mean has none.
        symmetric = torch.linalg.vector_norm(difference, dim=-1) / difference.shape[-1] ** 0.5
        asymmetric = (self.h(x) - self.h(y)).amax(dim=-1).relu()
        return -(symmetric + asymmetric)


class Normalizer:
    """Standardizes vectors by the mean and standard deviation of everything seen so far."""

    def __init__(self, size):
        self.count, self.sum, self.squares = 0, np.zeros(size), np.zeros(size)
        self.mean, self.std = torch.zeros(size), torch.ones(size)

    def update(self, values):
        values = np.clip(values.astype(np.float64), -200, 200)
        self.count += len(values)
        self.sum += values.sum(axis=0)
        self.squares += np.square(values).sum(axis=0)
        mean = self.sum / self.count
        variance = np.maximum(self.squares / self.count - mean**2, 0.01**2)
        self.mean = torch.as_tensor(mean, dtype=torch.float32)
        self.std = torch.as_tensor(np.sqrt(variance), dtype=torch.float32)

    def __call__(self, values):
        values = torch.as_tensor(values, dtype=torch.float32).clamp(-200, 200)
        return ((values - self.mean) / self.std).clamp(-5, 5)


# Replay with hindsight ----------------------------------------------------------------------------


class Replay:
    """Whole episodes of T steps. Sampling relabels a fraction of the goals (strategy `future`)."""

    def __init__(self, episodes, horizon, state_dim, action_dim, goal_dim, compute_reward):
        self.state = np.zeros((episodes, horizon + 1, state_dim), np.float32)
        self.achieved = np.zeros((episodes, horizon + 1, goal_dim), np.float32)
        self.goal = np.zeros((episodes, horizon, goal_dim), np.float32)
        self.action = np.zeros((episodes, horizon, action_dim), np.float32)
        self.horizon, self.compute_reward, self.added = horizon, compute_reward, 0

    def add(self, state, achieved, goal, action):
        """Store N episodes, in place of the oldest if the buffer is full."""
        rows = (self.added + np.arange(len(action))) % len(self.action)
        self.state[rows], self.achieved[rows] = state, achieved
        self.goal[rows], self.action[rows] = goal, action
        self.added += len(action)

    def sample(self, size, her_ratio, rng, newest=None):
        """Return transitions of all episodes, or of the `newest` ones."""
        stored = min(self.added, len(self.action))
        age = rng.integers(0, newest or stored, size)  # 0 is the newest episode
        row = (self.added - 1 - age) % len(self.action)
        t = rng.integers(0, self.horizon, size)
        later = rng.integers(t + 1, self.horizon + 1)  # uniform in t+1 .. T
        relabeled = rng.random(size) < her_ratio
        goal = np.where(relabeled[:, None], self.achieved[row, later], self.goal[row, t])
        reward = self.compute_reward(self.achieved[row, t + 1], goal, {})
        return {
            "state": self.state[row, t],
            "action": torch.from_numpy(self.action[row, t]),
            "goal": goal,
            "next_state": self.state[row, t + 1],
            "reward": torch.as_tensor(reward, dtype=torch.float32),
        }


# Training -----------------------------------------------------------------------------------------


def play(envs, act, seed):
    """Play one episode per environment; return its arrays, and success at the last step (N,)."""
    observation, _ = envs.reset(seed=seed)
    observations, actions = [observation], []
    for _ in range(envs.envs[0].spec.max_episode_steps):
        actions.append(act(observation))
        observation, _, terminated, _, info = envs.step(actions[-1])
        assert not terminated.any(), "episodes must have a fixed length"
        observations.append(observation)

    def stack(key, steps):  # (N, steps, size)
        return np.stack([each[key] for each in observations[:steps]], axis=1)

    length = len(actions)
    episodes = (
        stack("observation", length + 1),
        stack("achieved_goal", length + 1),
        stack("desired_goal", length),
        np.stack(actions, axis=1),
    )
    return episodes, info["is_success"].astype(bool)


def make_envs(env_id, count):
    """Return environments that wait for an explicit reset after an episode."""
    makers = [lambda: gym.make(env_id)] * count
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)


def train(settings):
    """Train an actor; return the success rate of each epoch, the actor and the critic."""
    s = settings
    rng = np.random.default_rng(s.seed)
    torch.manual_seed(s.seed)
    envs, eval_envs = make_envs(s.env_id, s.num_envs), make_envs(s.env_id, s.num_envs)
    env = envs.envs[0]
    spaces, horizon = env.observation_space, env.spec.max_episode_steps
    state_dim, goal_dim = (spaces[key].shape[0] for key in ("observation", "desired_goal"))
    dims = state_dim, env.action_space.shape[0], goal_dim
    assert (np.abs(env.action_space.low) == 1).all(), "actions must be in [-1, 1]"

    actor = Actor(*dims, s.hidden_dim)
    critic = MRNCritic(*dims, s.critic_dim, s.embedding_dim)
    actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
    weights = [*actor.parameters(), *critic.parameters()]
    target_weights = [*actor_target.parameters(), *critic_target.parameters()]
    optimizer = torch.optim.Adam(weights, s.learning_rate)
    norm_state, norm_goal = Normalizer(state_dim), Normalizer(goal_dim)
    replay = Replay(s.buffer_episodes, horizon, *dims, env.unwrapped.compute_reward)

    @torch.no_grad()
    def policy(observation):
        state, goal = observation["observation"], observation["desired_goal"]
        return actor(norm_state(state), norm_goal(goal)).numpy()

    def explore(observation):
        uniform = rng.uniform(-1, 1, (s.num_envs, dims[1]))
        if replay.added < s.warmup_episodes:
            return uniform
        action = policy(observation)
        action = action + s.exploration_noise * rng.standard_normal(action.shape)
        is_random = rng.random((s.num_envs, 1)) < s.random_action_prob
        return np.where(is_random, uniform, action.clip(-1, 1))

    def update(step):
        batch = replay.sample(s.batch_size, s.her_ratio, rng)
        state, next_state = norm_state(batch["state"]), norm_state(batch["next_state"])
        goal = norm_goal(batch["goal"])
        with torch.no_grad():
            next_q = critic_target(next_state, actor_target(next_state, goal), goal)
            # Rewards are -1 or 0, so every value lies in [-1 / (1 - discount), 0].
            target = (batch["reward"] + s.discount * next_q).clamp(-1 / (1 - s.discount), 0)
        critic_loss = F.mse_loss(critic(state, batch["action"], goal), target)
        action = actor(state, goal)
        actor_loss = s.action_penalty * action.square().mean() - critic(state, action, goal).mean()
        # Both gradients at the same weights; the actor's loss does not train the critic.
        optimizer.zero_grad()
        critic_loss.backward()
        actor_loss.backward(inputs=list(actor.parameters()))
        optimizer.step()
        if step % s.target_update_interval == 0:
            with torch.no_grad():
                for target_weight, weight in zip(target_weights, weights, strict=True):
                    target_weight.lerp_(weight, s.tau)
        return critic_loss

    successes, updates, started = [], 0, time.perf_counter()
    for epoch in range(1, s.epochs + 1):
        for _ in range(s.cycles):
            episodes, _ = play(envs, explore, seed=int(rng.integers(2**31)))
            replay.add(*episodes)
            newest = replay.sample(s.num_envs * horizon, s.her_ratio, rng, newest=s.num_envs)
            norm_state.update(newest["state"])
            norm_goal.update(newest["goal"])
            for _ in range(s.gradient_steps):
                updates += 1
                critic_loss = update(updates)
        rounds = -(-s.eval_episodes // s.num_envs)  # evaluation has its own seeds
        played = [play(eval_envs, policy, seed=10**6 * epoch + 1000 * i)[1] for i in range(rounds)]
        successes.append(float(np.mean(played)))
        print(
            f"epoch {epoch}: success {successes[-1]:.0%}, critic loss {critic_loss.item():.3f}, "
            f"{replay.added * horizon:,} steps, {time.perf_counter() - started:.0f} s"
        )
    envs.close()
    eval_envs.close()
    return successes, actor, critic


def parse_settings():
    """Read the settings from the command line, for example `--env_id FetchPush-v4`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for field in fields(Settings):
        parser.add_argument(f"--{field.name}", type=field.type, default=field.default)
    return Settings(**vars(parser.parse_args()))


if __name__ == "__main__":
    train(parse_settings())
