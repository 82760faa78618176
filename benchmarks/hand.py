"""What a policy of the Shadow Hand does with its object: `python -m benchmarks.hand RUN ...`.

The runs named, and untrained policies: how often the object falls out of the hand, how far it is
turned, and how much the critic makes of the action. Also at which goals being there does not
count. 9 minutes of one core with three runs; results/README.md gets the tables.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import mrn
from mrn.config import Config
from mrn.envs import TASKS, find_task, make_envs
from mrn.envs.rewards import HandReward
from mrn.intervals import wilson
from mrn.replay import Episodes
from mrn.seeding import make_generator
from mrn.tables import Table, require_sections, show, write_sections
from mrn.training.agent import Agent
from mrn.training.rollout import play_many

PAGE = Path(__file__).parents[1] / "results" / "README.md"
UNTRAINED = ("BlockRotateZ", "EggRotate", "PenRotate")
EPISODES, NUM_ENVS, SEED, GOALS = 300, 50, 7, 2000
FALLEN = 0.05
"""Metres below its start at which the object is in the hand no more."""
LOOKED_AT = (0, 10, 30, 60)
"""Steps of an episode at which the critic is asked."""


def hand_reward(task: str) -> HandReward:
    """The reward of a task of the Hand."""
    reward = find_task(task).reward
    assert isinstance(reward, HandReward), f"{task} is no task of the Hand"
    return reward


def unreachable(reward: HandReward, goals: Tensor) -> Tensor:
    """Whether not even the goal itself counts as reaching it, shape (B,)."""
    return reward(goals, goals) < 0


def apart(reward: HandReward, poses: Tensor, others: Tensor) -> Tensor:
    """The angle between two rotations in [0, pi]: unlike the reward's, the same for q and -q."""
    angle = reward.angle(poses, others)
    return torch.minimum(angle, 2 * math.pi - angle)


def fallen(heights: Tensor) -> Tensor:
    """Whether objects lie below their hands at the end, by their heights of shape (N, T + 1)."""
    return heights[:, -1] < heights[:, 0] - FALLEN


def table_of_goals() -> Table:
    """The share of goals that are unreachable, of every task of the Hand."""
    rows = []
    for name, task in TASKS.items():
        if not isinstance(task.reward, HandReward):
            continue
        with make_envs(task.shape, NUM_ENVS) as envs:
            resets = [envs.reset(SEED, number).goal.copy() for number in range(GOALS // NUM_ENVS)]
        bad = unreachable(task.reward, torch.from_numpy(np.concatenate(resets)))
        share = wilson(int(bad.sum()), len(bad))
        rows.append(
            (name, f"{100 * share.value:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]")
        )
    return ("task", f"of {GOALS:,} goals, being there does not count, %"), rows


def row(name: str, agent: Agent, noise: bool) -> tuple[str, ...]:
    """What happens in episodes, angles in degrees, and what the critic says in them."""
    steps = agent.shape.horizon * EPISODES // NUM_ENVS
    generator = make_generator(SEED, "noise", agent.device)
    policy = agent.explorer(steps, NUM_ENVS, generator) if noise else agent.act
    with make_envs(agent.shape, NUM_ENVS) as envs:
        outcomes = [
            outcome(hand_reward(agent.config.task), played) + asked(agent, played)
            for played in play_many(envs, policy, EPISODES, SEED)
        ]
    falls, turned, first, last, success, action, slope, choice = (
        torch.cat(each).double() for each in zip(*outcomes, strict=True)
    )
    return (
        name,
        "yes" if noise else "no",
        *(f"{100 * share.mean():.0f}" for share in (falls, success)),
        *(f"{math.degrees(angle.median()):.0f}" for angle in (turned, first, last)),
        f"{action.mean().sqrt():.2f}",
        f"{slope.median():.2f}",
        f"{choice.mean():.2f}",
    )


HEADS = (
    *("policy", "noise", "falls, %", "success, %", "turned", "from the goal", "in the end"),
    *("actions", "slope of Q", "choice"),
)


def outcome(reward: HandReward, played: Episodes) -> tuple[Tensor, ...]:
    """Of each episode: fallen, turned by, the goal's angle at first and at last, success."""
    achieved, goal = torch.from_numpy(played.achieved.copy()), torch.from_numpy(played.goal[:, 0])
    first, last = achieved[:, 0], achieved[:, -1]
    return (
        fallen(achieved[..., 2]),
        apart(reward, first, last),
        apart(reward, first, goal),
        apart(reward, last, goal),
        torch.from_numpy(played.success[:, -1].copy()),
    )


def asked(agent: Agent, played: Episodes) -> tuple[Tensor, Tensor, Tensor]:
    """The policy's squared actions, |dQ/da| there, and Q less that of another goal's action."""
    state = torch.from_numpy(played.state[:, LOOKED_AT]).flatten(0, 1)
    goal = torch.from_numpy(played.goal[:, LOOKED_AT]).flatten(0, 1)
    state, goal = agent.policy.inputs(state, goal)
    critic = agent.learner.critic
    assert critic is not None
    with torch.no_grad():
        action = agent.learner.actor(state, goal)
        other = agent.learner.actor(state, goal.roll(len(LOOKED_AT), 0))  # of the next episode
    action.requires_grad_()
    q = critic(state, action, goal)
    (slope,) = torch.autograd.grad(q.sum(), action)
    with torch.no_grad():
        choice = q - critic(state, other, goal)
        return action.square().mean(dim=-1), slope.norm(dim=-1), choice


def table_of_policies(runs: Sequence[str]) -> Table:
    """Untrained ones, which only the noise tells apart from no policy, then the runs'."""
    rows = []
    for task in UNTRAINED:
        agent = Agent(Config.of(task, seed=SEED), find_task(task).shape, torch.device("cpu"))
        rows.append(row(f"{task}, untrained", agent, noise=True))
    for run in runs:
        agent = mrn.load(run)
        name = f"{agent.config.task}, {agent.config.method}"
        rows += [row(name, agent, noise) for noise in (True, False)]
    return HEADS, rows


def main() -> None:
    """Print the tables, and write them into the page."""
    require_sections(PAGE, ["hand-goals", "hand-policies"])
    tables = {"hand-goals": table_of_goals(), "hand-policies": table_of_policies(sys.argv[1:])}
    for each in tables.values():
        show(each)
    write_sections(PAGE, tables)


if __name__ == "__main__":
    main()
