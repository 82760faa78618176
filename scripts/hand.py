"""What Shadow Hand policies do with the object: `python -m scripts.hand RUN...`.

For the given runs and for untrained policies: how often the object is dropped, how far it is
rotated, and how much policy and critic depend on the goal. Also the share of Pen goals that no
pose reaches. Takes 5 minutes on one core for three runs. Writes policies.json and goals.json to
results/shadow-hand.
"""

import math
import sys
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import mrn
from mrn.agent import Agent
from mrn.config import Config
from mrn.envs import find_task, make_envs
from mrn.envs.rewards import HandReward
from mrn.replay import Episodes
from mrn.training.rollout import iter_rollouts
from mrn.utils.errors import UserError, report_errors
from mrn.utils.intervals import wilson
from mrn.utils.seeding import make_generator
from mrn.utils.tables import Table, print_table
from scripts.studies import ROOT, write_table

RESULTS = ROOT / "results" / "shadow-hand"
UNTRAINED, PENS = ("BlockRotateZ", "EggRotate", "PenRotate"), ("PenRotate", "PenFull")
EPISODES, NUM_ENVS, SEED, GOALS = 300, 50, 7, 2000
DROP_HEIGHT = 0.05
"""Meters below its initial height at which an object counts as dropped."""
PROBED_STEPS = (0, 10, 30, 60)
"""Steps of an episode at which policy and critic are evaluated, unless the object was dropped."""


def hand_reward(task: str) -> HandReward:
    """Return the reward of a Shadow Hand task.

    Raises:
        UserError: The task is not a Shadow Hand task.
    """
    reward = find_task(task).reward
    if not isinstance(reward, HandReward):
        raise UserError(f"{task} is not a Shadow Hand task")
    return reward


def unreachable(reward: HandReward, goals: Tensor) -> Tensor:
    """Return whether no rotation of the pen reaches a goal, shape (B,).

    With Euler angles x, y of a pose and x', y' of the goal, the reward compares
    +-cos((x - x') / 2) cos((y - y') / 2) with cos(threshold / 2). The sign depends on the goal. A
    negative sign is compensated only if x and x' lie on different sides of +-pi.
    """
    w, i, j, k = goals[..., 3:].unbind(dim=-1)
    x = torch.atan2(2 * (w * i - j * k), 1 - 2 * (i * i + j * j))
    return (reward(goals, goals) < 0) & (x.abs() < math.pi - reward.rotation_threshold)


def angle_between(reward: HandReward, poses: Tensor, others: Tensor) -> Tensor:
    """Return the angle between rotations (for the pen: between axes) in [0, pi], shape (B,)."""
    p, q = poses[..., 3:].double(), others[..., 3:].double()
    if reward.ignore_z:
        return torch.arccos((z_axis(p) * z_axis(q)).sum(dim=-1).clamp(-1, 1))
    return 2 * torch.arccos((p * q).sum(dim=-1).abs().clamp(max=1))


def z_axis(quaternion: Tensor) -> Tensor:
    """Return the rotated z axis, shape (B, 3)."""
    w, i, j, k = quaternion.unbind(dim=-1)
    return torch.stack([2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j)], dim=-1)


def is_dropped(heights: Tensor) -> Tensor:
    """Return whether the object lies below the hand, for heights of shape (N, T + 1)."""
    return heights < heights[:, :1] - DROP_HEIGHT


def goal_table() -> Table:
    """Return the share of goals that no pose reaches."""
    rows = []
    for name in PENS:
        with make_envs(find_task(name).spec, NUM_ENVS) as envs:
            goals = [envs.reset(SEED, number).goal.copy() for number in range(GOALS // NUM_ENVS)]
        missed = unreachable(hand_reward(name), torch.from_numpy(np.concatenate(goals)))
        share = wilson(int(missed.sum()), GOALS)
        interval = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
        rows.append((name, f"{100 * share.value:.1f} {interval}"))
    return ("task", f"unreachable, % of {GOALS:,} goals"), rows


HEADS = (
    "policy",
    "noise",
    "dropped, %",
    "success, %",
    "rotation",
    "goal, start",
    "goal, end",
    "action",
    "action change",
    "dQ/da",
    "Q gain",
)


def policy_row(name: str, agent: Agent, noise: bool) -> tuple[str, ...]:
    """Play episodes and return a row of the table; angles are medians in degrees."""
    steps = agent.spec.horizon * EPISODES // NUM_ENVS
    generator = make_generator(SEED, "noise", agent.device)
    policy = agent.explorer(steps, NUM_ENVS, generator) if noise else agent.act
    with make_envs(agent.spec, NUM_ENVS) as envs:
        batches = [
            episode_outcomes(hand_reward(agent.config.task), episodes) + probe(agent, episodes)
            for episodes in iter_rollouts(envs, policy, EPISODES, SEED)
        ]
    dropped, rotation, first, last, success, action, change, slope, gain = (
        torch.cat(each).double() for each in zip(*batches, strict=True)
    )
    return (
        name,
        "yes" if noise else "no",
        *(f"{100 * share.mean():.0f}" for share in (dropped, success)),
        *(f"{math.degrees(angle.median()):.0f}" for angle in (rotation, first, last)),
        *(f"{squares.mean().sqrt():.2f}" for squares in (action, change)),
        f"{slope.median():.2f}",
        f"{gain.mean():.2f}",
    )


def episode_outcomes(reward: HandReward, episodes: Episodes) -> tuple[Tensor, ...]:
    """Return per episode: dropped, rotation, angle to the goal at start and end, success."""
    achieved, goal = torch.from_numpy(episodes.achieved), torch.from_numpy(episodes.goal[:, 0])
    first, last = achieved[:, 0], achieved[:, -1]
    return (
        is_dropped(achieved[..., 2])[:, -1],
        angle_between(reward, first, last),
        angle_between(reward, first, goal),
        angle_between(reward, last, goal),
        torch.from_numpy(episodes.success[:, -1].copy()),
    )


def probe(agent: Agent, episodes: Episodes) -> tuple[Tensor, ...]:
    """Compare the episode's goal with that of another episode while the object is in the hand.

    Returns:
        The squared action without noise, the squared change of the action under the other goal,
        the norm of dQ/da, and the gain in Q over the action for the other goal.
    """
    held = ~is_dropped(torch.from_numpy(episodes.achieved[..., 2]))[:, PROBED_STEPS]  # (N, steps)
    state, goal = (
        torch.from_numpy(each[:, PROBED_STEPS]) for each in (episodes.state, episodes.goal)
    )  # (N, steps, ...)
    other = goal.roll(1, dims=0)  # of the previous episode
    critic, actor = agent.algorithm.critic, agent.algorithm.actor
    assert critic is not None  # checked by `load`
    state, goal = agent.policy.inputs(state[held], goal[held])
    with torch.no_grad():
        action, others = actor(state, goal), actor(state, agent.normalizer.goal(other[held]))
    action.requires_grad_()
    q = critic(state, action, goal)
    (slope,) = torch.autograd.grad(q.sum(), action)
    with torch.no_grad():
        change = (action - others).square().mean(dim=-1)
        gain = q - critic(state, others, goal)
        return action.square().mean(dim=-1), change, slope.norm(dim=-1), gain


def load(run: str) -> Agent:
    """Load a trained agent.

    Raises:
        UserError: The agent has no critic, or its task is not a Shadow Hand task.
    """
    agent = mrn.load(run, device="cpu")
    hand_reward(agent.config.task)
    if agent.algorithm.critic is None:
        raise UserError(f"{run} has no critic")
    return agent


def policy_table(agents: Sequence[Agent]) -> Table:
    """Return rows for untrained policies with noise, then for the given agents."""
    rows = []
    for task in UNTRAINED:
        agent = Agent(Config.of(task, seed=SEED), find_task(task).spec, torch.device("cpu"))
        rows.append(policy_row(f"{task}, untrained", agent, noise=True))
    for agent in agents:
        name = f"{agent.config.task}, {agent.config.method}, {agent.config.epochs} epochs"
        rows += [policy_row(name, agent, noise) for noise in (True, False)]
    return HEADS, rows


def main(runs: Sequence[str]) -> None:
    """Print and write both tables.

    Raises:
        UserError: No run is given.
    """
    if not runs:
        raise UserError("give the runs to evaluate: python -m scripts.hand RUN...")
    agents = [load(run) for run in runs]
    for name, table in {"goals": goal_table(), "policies": policy_table(agents)}.items():
        print_table(table)
        write_table(RESULTS / f"{name}.json", table)


if __name__ == "__main__":
    with report_errors():
        main(sys.argv[1:])
