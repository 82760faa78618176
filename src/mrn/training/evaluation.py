"""Evaluation: success rate of a policy without exploration noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from mrn.agent import Agent
from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.envs import GoalVectorEnv, make_envs
from mrn.envs.goals import ChosenGoal
from mrn.envs.rendering import WindowEnv
from mrn.replay import Episodes
from mrn.training.progress import with_progress_bar
from mrn.training.reach import chosen_goal
from mrn.training.rollout import Policy, iter_rollouts
from mrn.utils.device import default_threads, memory_errors, torch_threads
from mrn.utils.errors import UserError
from mrn.utils.intervals import Interval, wilson
from mrn.utils.seeding import derive_seed
from mrn.utils.validation import PositiveInt, Seed, check

MAX_ENVS = 20
"""Parallel environments of an evaluation."""
LESS_MEMORY = "play fewer episodes"


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation: averages over episodes."""

    episodes: int
    success: float
    """Fraction of episodes that are at their goal at the last step."""
    success_any: float
    """Fraction of episodes that are at their goal at any step."""
    steps_to_success: float | None
    """Mean number of actions until the goal is first reached, over the episodes that reach it."""

    engine: str = ""
    """Simulation engine."""

    @property
    def interval(self) -> Interval:
        """`success` with its 95% Wilson score interval."""
        return wilson(round(self.success * self.episodes), self.episodes)


def evaluate_agent(
    agent: Agent,
    episodes: int,
    seed: int,
    engine: str = "auto",
    threads: int | None = None,
    progress: bool = False,
    goal: Sequence[float] | np.ndarray | None = None,
    render: bool = False,
) -> Evaluation:
    """Evaluate a trained policy; `Agent.evaluate` describes the arguments.

    Raises:
        UserError: A number is out of range, the engine does not have the task, the environment has
            changed, the goal does not fit, there is no display to render on, or memory is
            exhausted.
    """
    target = None if goal is None else chosen_goal(agent, goal)
    envs = evaluation_envs(agent, episodes, seed, engine, threads, render, target)
    if target is not None:
        envs = ChosenGoal(envs, target, agent.task)
    with envs, torch_threads(1), memory_errors(LESS_MEMORY):
        # Both engines seed environment i with seed + i, so nearby seeds would share episodes.
        act, seed = agent.on_cpu().act, derive_seed(seed, "evaluation")
        result = evaluate(envs, act, episodes, seed, progress)
        return replace(result, engine=envs.engine)


def evaluation_envs(
    agent: Agent,
    episodes: int,
    seed: int,
    engine: str,
    threads: int | None = None,
    render: bool = False,
    goal: np.ndarray | None = None,
) -> GoalVectorEnv:
    """Validate the arguments and create environments for a trained policy.

    With `render`, a single environment shows every step, and the chosen goal if any, in a window.

    Raises:
        UserError: A number is out of range, or the engine is unknown or does not have the task.
    """
    threads = default_threads() if threads is None else threads
    for name, value, accepted in (
        ("episodes", episodes, PositiveInt),
        ("seed", seed, Seed),
        ("threads", threads, PositiveInt),
    ):
        check(name, value, accepted)
    if render:
        if engine == "envpool":
            raise UserError("engine 'envpool' cannot render; use engine 'gymnasium' or 'auto'")
        return WindowEnv(agent.spec, goal)
    return make_envs(agent.spec, min(episodes, MAX_ENVS), engine, threads)


def evaluate(
    envs: GoalVectorEnv,
    policy: Policy,
    episodes: int,
    seed: int,
    progress: bool = False,
    ranks: Ranks = SINGLE_PROCESS,
) -> Evaluation:
    """Play episodes from a seed, divided among the ranks."""
    # Each episode has a fixed column, nonzero on one rank only, so the sum collects all results.
    outcomes = torch.zeros(2, episodes, dtype=torch.int64)
    rollouts = iter_rollouts(envs, policy, episodes, seed, ranks)
    column = envs.first
    for played in with_progress_bar(rollouts, episodes) if progress else rollouts:
        count = len(played.length)
        at_last_step = played.success[np.arange(count), played.length - 1]
        outcomes[0, column : column + count] = torch.from_numpy(at_last_step)
        outcomes[1, column : column + count] = torch.from_numpy(first_success(played))
        column += envs.num_envs * ranks.size
    at_end, steps = ranks.all_reduce_sum(outcomes).numpy()
    reached = steps > 0
    return Evaluation(
        episodes=episodes,
        success=float(at_end.mean()),
        success_any=float(reached.mean()),
        steps_to_success=float(steps[reached].mean()) if reached.any() else None,
    )


def first_success(played: Episodes) -> np.ndarray:
    """Return the number of actions until the goal is first reached, or 0; shape (N,)."""
    within = np.arange(played.success.shape[1]) < played.length[:, None]  # (N, T)
    success = played.success & within
    return np.where(success.any(axis=1), success.argmax(axis=1) + 1, 0)
