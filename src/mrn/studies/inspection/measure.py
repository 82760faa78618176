"""Measurements on a trained critic: is -Q a quasimetric, and does it match steps to the goal?"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mrn.agent import Agent
from mrn.critics import Critic
from mrn.critics.heads.mrn import MRN
from mrn.critics.metric import MetricCritic
from mrn.critics.shared import SharedMetricCritic
from mrn.replay import Episodes
from mrn.training.evaluation import LESS_MEMORY, evaluation_envs, first_success
from mrn.training.progress import with_progress_bar
from mrn.training.rollout import iter_rollouts
from mrn.utils.device import memory_errors, torch_threads
from mrn.utils.errors import UserError
from mrn.utils.seeding import derive_seed

Array = NDArray[np.float64]

NUM_TRIPLES = 20_000
ROUNDING_TOLERANCE = 1e-5
"""Excess, relative to the largest distance, that counts as float32 rounding."""
MIN_SUCCESSES = 10
"""Minimum number of successful episodes for comparing -Q with the steps to success."""


class Samples(NamedTuple):
    """M steps of evaluation episodes."""

    state: Tensor  # (M, state), not normalized
    action: Tensor  # (M, action)
    achieved: Tensor  # (M, goal)
    goal: Tensor  # (M, goal)
    steps_left: Array  # (M,) actions until the first success; NaN after it or without one
    success: Array  # (episodes,) whether any step succeeds


@dataclass(frozen=True)
class Violations:
    """Violations of the triangle inequality, with excess = d(1, 3) - d(1, 2) - d(2, 3)."""

    share: float
    """Fraction of the triples."""
    mean: float
    """Mean excess of the violations."""
    largest: float


@dataclass(frozen=True)
class Inspection:
    """Results of an inspection; None if the critic or the episodes do not provide a value."""

    task: str
    critic: str
    episodes: int
    success: float
    """Fraction of episodes with a success at any step."""
    goal_triangle: Violations
    """Violations by -Q between visited states, with the achieved goal of the next as the goal."""
    embedding_triangle: Violations | None
    """Violations by the head between embeddings of visited states; a quasimetric has none."""
    state_triangle: Violations | None
    """Violations by the distance between visited states, if the critic embeds states."""
    achieved_goal_distance: float | None
    """Mean distance of states to their own achieved goals, relative to those of other states."""
    unit: str
    """What -Q estimates, as a function of the steps to success."""
    rank_correlation: float | None
    """Spearman correlation of -Q with the number of steps to success."""
    linear_correlation: float | None
    """Pearson correlation of -Q with these steps in its own unit."""
    bias: float | None
    """Mean of -Q minus these steps in its own unit."""
    symmetric_share: float | None
    """Mean share of MRN's symmetric part in the distance."""


def collect_samples(
    agent: Agent, episodes: int, seed: int, engine: str = "auto", progress: bool = False
) -> Samples:
    """Play evaluation episodes without exploration noise and return their steps.

    Args:
        agent: The agent.
        episodes: Number of episodes.
        seed: Seed of the environments.
        engine: `envpool`, `gymnasium` or `auto`.
        progress: Show a progress bar.

    Raises:
        UserError: An argument is invalid, or the agent has no critic.
    """
    get_critic(agent)
    envs = evaluation_envs(agent, episodes, seed, engine)
    with envs, torch_threads(1), memory_errors(LESS_MEMORY):
        rollouts = iter_rollouts(envs, agent.act, episodes, derive_seed(seed, "evaluation"))
        if progress:
            rollouts = with_progress_bar(rollouts, episodes)
        parts = [_flatten_episodes(rollout) for rollout in rollouts]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    state, action, achieved, goal = (torch.as_tensor(x, device=agent.device) for x in columns[:4])
    return Samples(state, action, achieved, goal, columns[4], columns[5])


def _flatten_episodes(episodes: Episodes) -> tuple[np.ndarray, ...]:
    """Return the fields of `Samples` for a batch of episodes."""
    steps = np.arange(episodes.success.shape[1])
    within = steps < episodes.length[:, None]  # (N, T)
    first = first_success(episodes)[:, None]  # (N, 1), 0 for no success
    left = np.where(steps < first, first - steps, np.nan)
    columns = (episodes.state, episodes.action, episodes.achieved, episodes.goal)
    rows = [column[:, : len(steps)][within] for column in columns]
    return (*rows, left[within], first[:, 0] > 0)


@torch.no_grad()
def distance(agent: Agent, state: Tensor, action: Tensor, goal: Tensor) -> Tensor:
    """Return -Q, shape (B,), of states and goals that are not normalized."""
    state, goal = agent.policy.inputs(state, goal)
    return -get_critic(agent)(state, action, goal)


def get_critic(agent: Agent) -> Critic:
    """Return the agent's critic.

    Raises:
        UserError: The agent has none.
    """
    if agent.algorithm.critic is None:
        raise UserError(f"{agent.config.algo} learns without a critic: there is nothing to inspect")
    return agent.algorithm.critic


def get_unit(agent: Agent) -> str:
    """Return the unit of -Q, as a function of the number of steps."""
    return "-log gamma per step" if agent.algorithm.is_log_occupancy else "discounted cost"


def inspect(agent: Agent, samples: Samples, seed: int = 0) -> Inspection:
    """Inspect the critic of an agent on steps of its own episodes."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "triples"))
    triples = torch.randint(len(samples.state), (3, NUM_TRIPLES), generator=generator)
    i, j, k = triples.to(agent.device)
    state, action, achieved = samples.state, samples.action, samples.achieved
    rank, linear, bias = _compare_with_steps(agent, samples)
    return Inspection(
        task=agent.spec.name,
        critic=agent.config.critic,
        episodes=len(samples.success),
        success=float(samples.success.mean()),
        goal_triangle=violations(
            distance(agent, state[i], action[i], achieved[j]),
            distance(agent, state[j], action[j], achieved[k]),
            distance(agent, state[i], action[i], achieved[k]),
        ),
        embedding_triangle=_embedding_triangle(agent, samples, (i, j, k)),
        state_triangle=_state_triangle(agent, samples, (i, j, k)),
        achieved_goal_distance=_own_goal_distance(agent, samples, j),
        unit=get_unit(agent),
        rank_correlation=rank,
        linear_correlation=linear,
        bias=bias,
        symmetric_share=symmetric_share(agent, state, action, samples.goal),
    )


def violations(d12: Tensor, d23: Tensor, d13: Tensor) -> Violations:
    """Return how often and by how much d13 exceeds d12 + d23, beyond rounding."""
    excess = d13 - d12 - d23
    violated = excess[excess > ROUNDING_TOLERANCE * d13.abs().max()]
    if not len(violated):
        return Violations(0.0, 0.0, 0.0)
    share = len(violated) / len(excess)
    return Violations(share, violated.mean().item(), violated.max().item())


@torch.no_grad()
def _embedding_triangle(
    agent: Agent, samples: Samples, triples: tuple[Tensor, Tensor, Tensor]
) -> Violations | None:
    critic = get_critic(agent)
    if not isinstance(critic, MetricCritic):
        return None
    x = critic.embed(agent.normalizer.state(samples.state), samples.action)  # (M, width)
    i, j, k = triples
    return violations(*(critic.head(x[a], x[b]) for a, b in ((i, j), (j, k), (i, k))))


@torch.no_grad()
def _state_triangle(
    agent: Agent, samples: Samples, triples: tuple[Tensor, Tensor, Tensor]
) -> Violations | None:
    critic = get_critic(agent)
    if not isinstance(critic, SharedMetricCritic):
        return None
    x = critic.embed_state(*agent.policy.inputs(samples.state, samples.achieved))  # (M, width)
    i, j, k = triples
    return violations(*(critic.head(x[a], x[b]) for a, b in ((i, j), (j, k), (i, k))))


@torch.no_grad()
def _own_goal_distance(agent: Agent, samples: Samples, others: Tensor) -> float | None:
    critic = get_critic(agent)
    if not isinstance(critic, SharedMetricCritic):
        return None
    state, achieved = agent.policy.inputs(samples.state, samples.achieved)
    x, goal = critic.embed_state(state, achieved), critic.embed_goal(achieved)
    starts = torch.arange(len(others), device=others.device) % len(x)
    scale = critic.head(x[starts], goal[others]).mean()
    return (critic.head(x, goal).mean() / scale).item() if scale > 0 else None


def _compare_with_steps(
    agent: Agent, samples: Samples
) -> tuple[float | None, float | None, float | None]:
    """Return the rank and linear correlation of -Q with the steps to success, and its bias.

    All are None for few successes: within one episode, -Q nearly always falls with the steps left.
    """
    if samples.success.sum() < MIN_SUCCESSES:
        return None, None, None
    before = torch.as_tensor(~np.isnan(samples.steps_left), device=agent.device)
    steps = samples.steps_left[before.cpu().numpy()]
    if len(np.unique(steps)) < 2:
        return None, None, None
    columns = (samples.state, samples.action, samples.goal)
    learned = distance(agent, *(column[before] for column in columns)).double().cpu().numpy()
    expected = expected_distance(agent, steps)
    rank = correlation(ranks(learned), ranks(steps))
    return rank, correlation(learned, expected), float((learned - expected).mean())


def correlation(x: Array, y: Array) -> float | None:
    """Return the Pearson correlation, or None if either is constant."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def discounted_cost(steps: Array, gamma: float) -> Array:
    """Return the discounted cost of reaching the goal in a number of steps.

    The reward depends on the next state, so the last step costs nothing.
    """
    return steps - 1 if gamma == 1 else (1 - gamma ** (steps - 1)) / (1 - gamma)


def expected_distance(agent: Agent, steps: Array) -> Array:
    """Return -Q of an exact critic for goals that are a number of steps away, in its unit."""
    gamma = agent.algorithm.discount
    return (
        -steps * np.log(gamma)
        if agent.algorithm.is_log_occupancy
        else discounted_cost(steps, gamma)
    )


def ranks(values: Array) -> Array:
    """Return the rank of each value, starting at 0; ties share their mean rank."""
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count + 1) / 2)[index]


@torch.no_grad()
def symmetric_share(agent: Agent, state: Tensor, action: Tensor, goal: Tensor) -> float | None:
    """Return the mean share of MRN's symmetric part.

    None for critics without two parts, and if all distances are zero.
    """
    critic = get_critic(agent)
    if not isinstance(critic, MetricCritic) or not isinstance(critic.head, MRN):
        return None
    if len(critic.head.parts) < 2:
        return None
    state, goal = agent.policy.inputs(state, goal)
    sides = critic.sides(state, action, critic.goal_side(state, goal))
    symmetric, asymmetric = critic.head.terms(*sides)
    total = symmetric + asymmetric
    shares = (symmetric / total)[total > 0]
    return shares.mean().item() if len(shares) else None
