"""Batches of small goal-conditioned MDPs, and their exact optimal values in float64.

Definitions from the paper (Sec. 2.1): X is the set of pairs x = (s, a), and M maps pairs to goals.
The reward is 0 at a pair with M(x) = g and -1 at all others. Episodes do not end at the goal. So

    Q*(x, g) = r(x, g) + gamma E_{s' ~ T(x)} max_{a'} Q*((s', a'), g),

a number in [-1 / (1 - gamma), 0]. Pair i is (state i // actions, action i % actions).
"""

from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-10
"""Maximum error of a computed value."""

Array = np.ndarray


@dataclass(frozen=True)
class MDPs:
    """A batch of MDPs with the same numbers of states and actions."""

    transitions: Array
    """Probabilities of the next state, (mdps, pairs, states)."""

    @property
    def states(self) -> int:
        """Number of states of each MDP."""
        return int(self.transitions.shape[-1])

    @property
    def pairs(self) -> int:
        """Number of state-action pairs of each MDP."""
        return int(self.transitions.shape[-2])

    @property
    def is_self_loop(self) -> Array:
        """Whether a pair leads back to its own state with certainty, (mdps, pairs)."""
        own_state = np.arange(self.pairs) // (self.pairs // self.states)
        return self.transitions[:, np.arange(self.pairs), own_state] == 1


def random_mdps(
    count: int, states: int, actions: int, stochastic: bool, generator: np.random.Generator
) -> MDPs:
    """Generate MDPs with random dynamics.

    In a deterministic MDP each pair leads to one random state; in a stochastic one to several, with
    random probabilities. Next states are few, so that some goals are far away or unreachable.
    """
    shape = (count, states * actions, states)
    if not stochastic:
        next_state = generator.integers(states, size=shape[:2])
        return MDPs(np.eye(states)[next_state])
    sparse = generator.exponential(size=shape) * (generator.random(shape) < 2 / states)
    anywhere = np.eye(states)[generator.integers(states, size=shape[:2])]
    weights = sparse + 0.1 * anywhere  # at least one next state
    return MDPs(weights / weights.sum(axis=-1, keepdims=True))


def random_goal_maps(count: int, pairs: int, goals: int, generator: np.random.Generator) -> Array:
    """Generate a random map M from pairs onto goals for each MDP, (count, pairs)."""
    maps = generator.integers(goals, size=(count, pairs))
    maps[:, :goals] = np.arange(goals)  # every goal has a pair
    return generator.permuted(maps, axis=1)


def pair_rewards(pairs: int) -> Array:
    """Return the rewards if every pair is its own goal (M is the identity), (pairs, pairs)."""
    return np.eye(pairs) - 1


def goal_rewards(goal_of: Array, goals: int) -> Array:
    """Return the rewards for a map M from pairs to goals, (..., pairs, goals)."""
    return np.eye(goals)[goal_of] - 1


def optimal_values(mdps: MDPs, rewards: Array, gamma: float) -> Array:
    """Compute Q*, (mdps, pairs, goals), by value iteration, exact up to `TOLERANCE`."""
    actions = mdps.pairs // mdps.states
    q = np.broadcast_to(rewards, (len(mdps.transitions), mdps.pairs, rewards.shape[-1]))
    change = np.inf
    while change > TOLERANCE * (1 - gamma) / gamma:  # bounds the error by TOLERANCE
        best = q.reshape(len(q), mdps.states, actions, -1).max(axis=2)  # (mdps, states, goals)
        updated = rewards + gamma * (mdps.transitions @ best)
        change, q = np.abs(updated - q).max(), updated
    return q


def next_state_values(q: Array, rewards: Array, gamma: float) -> Array:
    """Return Q* for a reward that depends on the next pair, as in the robot tasks.

    The return then lacks its first reward and one factor of the discount: (Q* - r) / gamma. The
    optimal policies are the same.
    """
    return (q - rewards) / gamma
