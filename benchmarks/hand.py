"""What a policy of the Shadow Hand does with its object: `python -m benchmarks.hand RUN ...`.

The runs named, and untrained policies: how often the object falls out of the hand, how far it is
turned, and how much policy and critic make of the goal. Also how many goals of the Pen no pose
reaches. 5 minutes of one core with three runs; results/README.md gets the tables.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

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
from mrn.utils.tables import Table, print_table, require_sections, write_sections

PAGE = Path(__file__).parents[1] / "results" / "README.md"
UNTRAINED, PENS = ("BlockRotateZ", "EggRotate", "PenRotate"), ("PenRotate", "PenFull")
EPISODES, NUM_ENVS, SEED, GOALS = 300, 50, 7, 2000
FALLEN = 0.05
"""Metres below its start at which the object is in the hand no more."""
LOOKED_AT = (0, 10, 30, 60)
"""Steps of an episode at which policy and critic are asked, while the object is in the hand."""


def hand_reward(task: str) -> HandReward:
    """The reward of a task of the Hand.

    Raises:
        UserError: It is none.
    """
    reward = find_task(task).reward
    if not isinstance(reward, HandReward):
        raise UserError(f"{task} is no task in which the Hand turns something")
    return reward


def unreachable(reward: HandReward, goals: Tensor) -> Tensor:
    """Whether no rotation of the pen counts as a goal's, shape (B,).

    With the angles x, y of a pose and x', y' of the goal, the reward compares
    +-cos((x - x') / 2) cos((y - y') / 2), the sign being the goal's, with cos(threshold / 2). Where
    it is a minus, x and x' have to lie on both sides of +-pi.
    """
    w, i, j, k = goals[..., 3:].unbind(dim=-1)
    x = torch.atan2(2 * (w * i - j * k), 1 - 2 * (i * i + j * j))
    return (reward(goals, goals) < 0) & (x.abs() < math.pi - reward.rotation_threshold)


def apart(reward: HandReward, poses: Tensor, others: Tensor) -> Tensor:
    """The angle between two rotations, for the pen between its axes, in [0, pi], shape (B,)."""
    p, q = poses[..., 3:].double(), others[..., 3:].double()
    if reward.ignore_z:
        return torch.arccos((axis(p) * axis(q)).sum(dim=-1).clamp(-1, 1))
    return 2 * torch.arccos((p * q).sum(dim=-1).abs().clamp(max=1))


def axis(quaternion: Tensor) -> Tensor:
    """Where a rotation takes the axis z, shape (B, 3)."""
    w, i, j, k = quaternion.unbind(dim=-1)
    return torch.stack([2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j)], dim=-1)


def fallen(heights: Tensor) -> Tensor:
    """Whether an object is below its hand, by heights of shape (N, T + 1); the same shape."""
    return heights < heights[:, :1] - FALLEN


def table_of_goals() -> Table:
    """The share of goals that no pose reaches."""
    rows = []
    for name in PENS:
        with make_envs(find_task(name).spec, NUM_ENVS) as envs:
            goals = [envs.reset(SEED, number).goal.copy() for number in range(GOALS // NUM_ENVS)]
        found = unreachable(hand_reward(name), torch.from_numpy(np.concatenate(goals)))
        share = wilson(int(found.sum()), GOALS)
        interval = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
        rows.append((name, f"{100 * share.value:.1f} {interval}"))
    return ("task", f"no pose reaches, % of {GOALS:,} goals"), rows


HEADS = (
    "policy",
    "noise",
    "falls, %",
    "success, %",
    "turned",
    "from the goal",
    "in the end",
    "actions",
    "by the goal",
    "slope of Q",
    "worth",
)


def row(name: str, agent: Agent, noise: bool) -> tuple[str, ...]:
    """What happens in episodes, angles in degrees, and what policy and critic say in them."""
    steps = agent.spec.horizon * EPISODES // NUM_ENVS
    generator = make_generator(SEED, "noise", agent.device)
    policy = agent.explorer(steps, NUM_ENVS, generator) if noise else agent.act
    with make_envs(agent.spec, NUM_ENVS) as envs:
        outcomes = [
            outcome(hand_reward(agent.config.task), played) + asked(agent, played)
            for played in iter_rollouts(envs, policy, EPISODES, SEED)
        ]
    falls, turned, first, last, success, action, change, slope, worth = (
        torch.cat(each).double() for each in zip(*outcomes, strict=True)
    )
    return (
        name,
        "yes" if noise else "no",
        *(f"{100 * share.mean():.0f}" for share in (falls, success)),
        *(f"{math.degrees(angle.median()):.0f}" for angle in (turned, first, last)),
        *(f"{squares.mean().sqrt():.2f}" for squares in (action, change)),
        f"{slope.median():.2f}",
        f"{worth.mean():.2f}",
    )


def outcome(reward: HandReward, played: Episodes) -> tuple[Tensor, ...]:
    """Of each episode: fallen, turned by, the goal's angle at first and at last, success."""
    achieved, goal = torch.from_numpy(played.achieved), torch.from_numpy(played.goal[:, 0])
    first, last = achieved[:, 0], achieved[:, -1]
    return (
        fallen(achieved[..., 2])[:, -1],
        apart(reward, first, last),
        apart(reward, first, goal),
        apart(reward, last, goal),
        torch.from_numpy(played.success[:, -1].copy()),
    )


def asked(agent: Agent, played: Episodes) -> tuple[Tensor, ...]:
    """Of states with the object in the hand, for the episode's goal and another episode's.

    The policy's squared action without noise, the square of what another goal would change in it,
    |dQ/da|, and by how much Q is higher than with the other goal's action.
    """
    held = ~fallen(torch.from_numpy(played.achieved[..., 2]))[:, LOOKED_AT]  # (N, steps)
    state, goal = (
        torch.from_numpy(each[:, LOOKED_AT]) for each in (played.state, played.goal)
    )  # (N, steps, ...)
    other = goal.roll(1, dims=0)  # of the episode before
    critic, actor = agent.algorithm.critic, agent.algorithm.actor
    assert critic is not None  # see `load`
    state, goal = agent.policy.inputs(state[held], goal[held])
    with torch.no_grad():
        action, others = actor(state, goal), actor(state, agent.normalizer.goal(other[held]))
    action.requires_grad_()
    q = critic(state, action, goal)
    (slope,) = torch.autograd.grad(q.sum(), action)
    with torch.no_grad():
        change = (action - others).square().mean(dim=-1)
        worth = q - critic(state, others, goal)
        return action.square().mean(dim=-1), change, slope.norm(dim=-1), worth


def load(run: str) -> Agent:
    """A trained agent.

    Raises:
        UserError: It has no critic, or its task is none of these.
    """
    agent = mrn.load(run, device="cpu")
    hand_reward(agent.config.task)
    if agent.algorithm.critic is None:
        raise UserError(f"{run} has no critic to be asked")
    return agent


def table_of_policies(agents: Sequence[Agent]) -> Table:
    """Untrained ones, which are little but their noise, then these."""
    rows = []
    for task in UNTRAINED:
        agent = Agent(Config.of(task, seed=SEED), find_task(task).spec, torch.device("cpu"))
        rows.append(row(f"{task}, untrained", agent, noise=True))
    for agent in agents:
        name = f"{agent.config.task}, {agent.config.method}, {agent.config.epochs} epochs"
        rows += [row(name, agent, noise) for noise in (True, False)]
    return HEADS, rows


def main(runs: Sequence[str]) -> None:
    """Print the tables, and write them into the page.

    Raises:
        UserError: No run is named; the page would lose those it has.
    """
    if not runs:
        raise UserError("name the runs to look at: python -m benchmarks.hand RUN ...")
    require_sections(PAGE, ["hand-goals", "hand-policies"])
    agents = [load(run) for run in runs]
    tables = {"hand-goals": table_of_goals(), "hand-policies": table_of_policies(agents)}
    for each in tables.values():
        print_table(each)
    write_sections(PAGE, tables)


if __name__ == "__main__":
    with report_errors():
        main(sys.argv[1:])
