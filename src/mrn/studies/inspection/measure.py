"""What a trained critic has learned: is -Q a distance, does it count steps, what is it made of?"""

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
from mrn.replay import Episodes
from mrn.training.evaluation import FEWER, evaluation_envs, first_success
from mrn.training.progress import with_progress_bar
from mrn.training.rollout import iter_rollouts
from mrn.utils.device import memory_errors, torch_threads
from mrn.utils.errors import UserError
from mrn.utils.seeding import derive_seed

Array = NDArray[np.float64]

TRIPLES = 20_000
ROUNDING = 1e-5
"""A triangle counts as broken beyond this share of the largest distance: float32 is not exact."""


LEAST_SUCCESSES = 10
"""Episodes that must have reached their goal before -Q is compared with the steps it took."""


class Moments(NamedTuple):
    """Steps of evaluation episodes, M in all."""

    state: Tensor  # (M, state), as the environment gives it
    action: Tensor  # (M, action)
    achieved: Tensor  # (M, goal)
    goal: Tensor  # (M, goal)
    steps_left: Array  # (M,) actions until the goal is first reached; NaN if it never is, or was
    success: Array  # (episodes,) whether it is reached at some step


@dataclass(frozen=True)
class Violations:
    """How often and by how much a triangle is broken: excess = d(1, 3) - d(1, 2) - d(2, 3)."""

    share: float
    """Of the triples."""
    mean: float
    """Excess over those that are broken."""
    largest: float


@dataclass(frozen=True)
class Inspection:
    """The figures of an inspection; None for what the critic or the episodes do not have."""

    task: str
    critic: str
    episodes: int
    success: float
    """Fraction of episodes that reach their goal at some step."""
    goal_triangle: Violations
    """Of -Q between real states, the goal being what the next one has achieved."""
    embedding_triangle: Violations | None
    """Of the head between embeddings of real states and actions; a quasimetric has none."""
    rank_correlation: float | None
    """Spearman's, of -Q and the true number of steps to success."""
    linear_correlation: float | None
    """Pearson's, of -Q and the discounted cost of that many steps."""
    bias: float | None
    """Mean of -Q minus that cost."""
    symmetric_share: float | None
    """Mean share of MRN's symmetric part in the distance."""


def watch(
    agent: Agent, episodes: int, seed: int, engine: str = "auto", progress: bool = False
) -> Moments:
    """Play episodes without noise, and with a progress bar if asked.

    Raises:
        UserError: A number is out of range, there is no such engine, or the agent has no critic.
    """
    critic_of(agent)
    envs = evaluation_envs(agent, episodes, seed, engine)
    with envs, torch_threads(1), memory_errors(FEWER):
        played = iter_rollouts(envs, agent.act, episodes, derive_seed(seed, "evaluation"))
        parts = [
            _moments(some) for some in (with_progress_bar(played, episodes) if progress else played)
        ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    state, action, achieved, goal = (torch.as_tensor(x, device=agent.device) for x in columns[:4])
    return Moments(state, action, achieved, goal, columns[4], columns[5])


def _moments(played: Episodes) -> tuple[np.ndarray, ...]:
    """The fields of Moments, of some episodes side by side."""
    steps = np.arange(played.success.shape[1])
    within = steps < played.length[:, None]  # (N, T)
    first = first_success(played)[:, None]  # (N, 1), 0 for never
    left = np.where(steps < first, first - steps, np.nan)
    columns = (played.state, played.action, played.achieved, played.goal)
    rows = [column[:, : len(steps)][within] for column in columns]
    return (*rows, left[within], first[:, 0] > 0)


@torch.no_grad()
def distance(agent: Agent, state: Tensor, action: Tensor, goal: Tensor) -> Tensor:
    """-Q, shape (B,), of states and goals as the environment gives them."""
    state, goal = agent.policy.inputs(state, goal)
    return -critic_of(agent)(state, action, goal)


def critic_of(agent: Agent) -> Critic:
    """The critic to look into.

    Raises:
        UserError: The agent has none.
    """
    if agent.algorithm.critic is None:
        raise UserError(f"{agent.config.algo} learns without a critic: there is none to inspect")
    return agent.algorithm.critic


def inspect(agent: Agent, moments: Moments, seed: int = 0) -> Inspection:
    """The figures of an agent over moments of its own episodes."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "triples"))
    triples = torch.randint(len(moments.state), (3, TRIPLES), generator=generator)
    i, j, k = triples.to(agent.device)
    state, action, achieved = moments.state, moments.action, moments.achieved
    rank, linear, bias = _counts_steps(agent, moments)
    return Inspection(
        task=agent.spec.name,
        critic=agent.config.critic,
        episodes=len(moments.success),
        success=float(moments.success.mean()),
        goal_triangle=violations(
            distance(agent, state[i], action[i], achieved[j]),
            distance(agent, state[j], action[j], achieved[k]),
            distance(agent, state[i], action[i], achieved[k]),
        ),
        embedding_triangle=_embedding_triangle(agent, moments, (i, j, k)),
        rank_correlation=rank,
        linear_correlation=linear,
        bias=bias,
        symmetric_share=symmetric_share(agent, state, action, moments.goal),
    )


def violations(d12: Tensor, d23: Tensor, d13: Tensor) -> Violations:
    """How often d13 is more than d12 + d23, beyond rounding."""
    excess = d13 - d12 - d23
    broken = excess[excess > ROUNDING * d13.abs().max()]
    if not len(broken):
        return Violations(0.0, 0.0, 0.0)
    return Violations(len(broken) / len(excess), broken.mean().item(), broken.max().item())


@torch.no_grad()
def _embedding_triangle(
    agent: Agent, moments: Moments, triples: tuple[Tensor, Tensor, Tensor]
) -> Violations | None:
    critic = critic_of(agent)
    if not isinstance(critic, MetricCritic):
        return None
    x = critic.embed(agent.normalizer.state(moments.state), moments.action)  # (M, width)
    i, j, k = triples
    return violations(*(critic.head(x[a], x[b]) for a, b in ((i, j), (j, k), (i, k))))


def _counts_steps(
    agent: Agent, moments: Moments
) -> tuple[float | None, float | None, float | None]:
    """Rank and linear correlation of -Q with the steps to success, and its bias.

    None from few successes: within one episode -Q falls with the steps left as good as always.
    """
    if moments.success.sum() < LEAST_SUCCESSES:
        return None, None, None
    before = torch.as_tensor(~np.isnan(moments.steps_left), device=agent.device)
    steps = moments.steps_left[before.cpu().numpy()]
    if len(np.unique(steps)) < 2:
        return None, None, None
    columns = (moments.state, moments.action, moments.goal)
    learned = distance(agent, *(column[before] for column in columns)).double().cpu().numpy()
    gamma = agent.algorithm.discount
    # The reward is taken at the next state: the step that reaches the goal costs nothing.
    cost = discounted_cost(steps, gamma)
    rank = float(np.corrcoef(ranks(learned), ranks(steps))[0, 1])
    return rank, float(np.corrcoef(learned, cost)[0, 1]), float((learned - cost).mean())


def discounted_cost(steps: Array, gamma: float) -> Array:
    """Of so many steps, of which the last, which reaches the goal, costs nothing."""
    return steps - 1 if gamma == 1 else (1 - gamma ** (steps - 1)) / (1 - gamma)


def ranks(values: Array) -> Array:
    """The rank of each value from 0; equal ones share their mean."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count + 1) / 2)[place]


@torch.no_grad()
def symmetric_share(agent: Agent, state: Tensor, action: Tensor, goal: Tensor) -> float | None:
    """Mean share of the symmetric part in MRN's distance; None for critics without two parts."""
    critic = critic_of(agent)
    if not isinstance(critic, MetricCritic) or not isinstance(critic.head, MRN):
        return None
    if len(critic.head.parts) < 2:
        return None
    state, goal = agent.policy.inputs(state, goal)
    sides = critic.sides(state, action, critic.goal_side(state, goal))
    symmetric, asymmetric = critic.head.terms(*sides)
    whole = symmetric + asymmetric
    return (symmetric / whole)[whole > 0].mean().item()
