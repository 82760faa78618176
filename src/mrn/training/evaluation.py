"""How often a policy reaches its goal, without noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from mrn.agent import Agent
from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs import GoalVectorEnv, make_envs
from mrn.envs.goals import ChosenGoal
from mrn.replay import Episodes
from mrn.training.progress import with_progress_bar
from mrn.training.reach import chosen_goal
from mrn.training.rollout import Policy, iter_rollouts
from mrn.utils.device import default_threads, memory_errors, torch_threads
from mrn.utils.intervals import Interval, wilson
from mrn.utils.seeding import derive_seed
from mrn.utils.validation import PositiveInt, Seed, check

PARALLEL = 20
"""Environments side by side."""
FEWER = "play fewer episodes"
"""What needs less memory."""


@dataclass(frozen=True)
class Evaluation:
    """Averages over episodes."""

    episodes: int
    success: float
    """Fraction of episodes that are at their goal at the last step."""
    success_any: float
    """Fraction of episodes that are at their goal at some step."""
    steps_to_success: float | None
    """Mean number of actions before the goal is first reached, over the episodes that reach it."""

    engine: str = ""
    """What simulated them."""

    @property
    def interval(self) -> Interval:
        """`success` with Wilson's 95 % interval for the number of episodes."""
        return wilson(round(self.success * self.episodes), self.episodes)


def evaluate_agent(
    agent: Agent,
    episodes: int,
    seed: int,
    engine: str = "auto",
    threads: int | None = None,
    progress: bool = False,
    goal: Sequence[float] | np.ndarray | None = None,
) -> Evaluation:
    """Evaluate a policy on an engine, whatever engine trained it.

    Raises:
        UserError: A number is out of range, there is no such engine, it does not have the
            policy's task as it was, the goal does not fit it, or there is not enough memory.
    """
    target = None if goal is None else chosen_goal(agent, goal)
    envs = evaluation_envs(agent, episodes, seed, engine, threads)
    if target is not None:
        envs = ChosenGoal(envs, target, agent.task.reward)
    with envs, torch_threads(1), memory_errors(FEWER):
        # Derived, because both engines seed environment i with seed + i: neighbours would overlap.
        found = evaluate(envs, agent.act, episodes, derive_seed(seed, "evaluation"), progress)
        return replace(found, engine=envs.engine)


def evaluation_envs(
    agent: Agent, episodes: int, seed: int, engine: str, threads: int | None = None
) -> GoalVectorEnv:
    """Environments to look at a trained policy in, after checking what was asked for.

    Raises:
        UserError: A number is out of range, there is no such engine, or it does not have the
            policy's task.
    """
    threads = default_threads() if threads is None else threads
    for name, value, accepted in (
        ("episodes", episodes, PositiveInt),
        ("seed", seed, Seed),
        ("threads", threads, PositiveInt),
    ):
        check(name, value, accepted)
    return make_envs(agent.spec, min(episodes, PARALLEL), engine, threads)


def evaluate(
    envs: GoalVectorEnv,
    policy: Policy,
    episodes: int,
    seed: int,
    progress: bool = False,
    ranks: Ranks = SINGLE_PROCESS,
) -> Evaluation:
    """Play episodes in environments that start from the seed, a share of them in each process."""
    # An episode has its place, which is 0 for all processes but one: the sum is of all.
    outcomes = torch.zeros(2, episodes, dtype=torch.int64)
    played_so_far = iter_rollouts(envs, policy, episodes, seed, ranks)
    place = envs.first
    for played in with_progress_bar(played_so_far, episodes) if progress else played_so_far:
        count = len(played.length)
        at_last_step = played.success[np.arange(count), played.length - 1]
        outcomes[0, place : place + count] = torch.from_numpy(at_last_step)
        outcomes[1, place : place + count] = torch.from_numpy(first_success(played))
        place += envs.num_envs * ranks.size
    at_end, steps = ranks.all_reduce_sum(outcomes).numpy()
    reached = steps > 0
    return Evaluation(
        episodes=episodes,
        success=float(at_end.mean()),
        success_any=float(reached.mean()),
        steps_to_success=float(steps[reached].mean()) if reached.any() else None,
    )


def first_success(played: Episodes) -> np.ndarray:
    """Actions until each episode was first at its goal, 0 for never; shape (N,)."""
    within = np.arange(played.success.shape[1]) < played.length[:, None]  # (N, T)
    success = played.success & within
    return np.where(success.any(axis=1), success.argmax(axis=1) + 1, 0)
