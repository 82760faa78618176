"""Small goal-conditioned MDPs, many at once, and their exact optimal values in float64.

As the paper defines them (Sec. 2.1): X is the set of pairs x = (s, a), M maps pairs to goals, the
reward is 0 at a pair with M(x) = g and -1 at all others, and nothing ends at the goal. So

    Q*(x, g) = r(x, g) + gamma E_{s' ~ T(x)} max_{a'} Q*((s', a'), g),

a number in [-1 / (1 - gamma), 0]. Pair number i is (state i // actions, action i % actions).
"""

from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-10
"""How far a computed value may be from the exact one."""

Array = np.ndarray


@dataclass(frozen=True)
class MDPs:
    """Several MDPs with the same numbers of states and actions."""

    transitions: Array
    """(mdps, pairs, states): probability of the next state."""

    @property
    def states(self) -> int:
        """Number of states of each."""
        return int(self.transitions.shape[-1])

    @property
    def pairs(self) -> int:
        """Number of state-action pairs of each."""
        return int(self.transitions.shape[-2])

    @property
    def can_stay(self) -> Array:
        """(mdps, pairs): whether taking the pair again and again stays in its state."""
        own_state = np.arange(self.pairs) // (self.pairs // self.states)
        return self.transitions[:, np.arange(self.pairs), own_state] == 1


def random_mdps(
    count: int, states: int, actions: int, stochastic: bool, generator: np.random.Generator
) -> MDPs:
    """MDPs whose pairs lead to random states: one each, or several with random probabilities.

    Next states are few, so that some goals are far, and some out of reach.
    """
    shape = (count, states * actions, states)
    if not stochastic:
        next_state = generator.integers(states, size=shape[:2])
        return MDPs(np.eye(states)[next_state])
    likely = generator.exponential(size=shape) * (generator.random(shape) < 2 / states)
    anywhere = np.eye(states)[generator.integers(states, size=shape[:2])]
    weights = likely + 0.1 * anywhere  # at least one next state
    return MDPs(weights / weights.sum(axis=-1, keepdims=True))


def random_maps(count: int, pairs: int, goals: int, generator: np.random.Generator) -> Array:
    """A map M from pairs onto goals for each MDP, (count, pairs)."""
    drawn = generator.integers(goals, size=(count, pairs))
    drawn[:, :goals] = np.arange(goals)  # every goal has a pair
    return generator.permuted(drawn, axis=1)


def pair_rewards(pairs: int) -> Array:
    """(pairs, pairs): the rewards where every pair is a goal of its own (M is the identity)."""
    return np.eye(pairs) - 1


def goal_rewards(goal_of: Array, goals: int) -> Array:
    """(..., pairs, goals): the rewards for a map M from pairs to goals."""
    return np.eye(goals)[goal_of] - 1


def optimal_values(mdps: MDPs, rewards: Array, gamma: float) -> Array:
    """Q*, (mdps, pairs, goals), by value iteration, exact up to `TOLERANCE`."""
    actions = mdps.pairs // mdps.states
    q = np.broadcast_to(rewards, (len(mdps.transitions), mdps.pairs, rewards.shape[-1]))
    change = np.inf
    while change > TOLERANCE * (1 - gamma) / gamma:  # then Q* is at most TOLERANCE away
        best = q.reshape(len(q), mdps.states, actions, -1).max(axis=2)  # (mdps, states, goals)
        after = rewards + gamma * (mdps.transitions @ best)
        change, q = np.abs(after - q).max(), after
    return q


def next_state_values(q: Array, rewards: Array, gamma: float) -> Array:
    """Q* where the reward is taken at the next pair, as the robot tasks do.

    The return then lacks its first reward and is discounted once less: (Q* - r) / gamma. The
    optimal policies are the same.
    """
    return (q - rewards) / gamma
