"""A small grid world with walls, whose distances and occupancies are known exactly."""

import numpy as np
import torch
from scipy.stats import spearmanr

from mrn.algorithms import Algorithm
from mrn.batch import Batch, Trajectory
from mrn.critics import Critic, Dims, make_critic

MAP = ("....#", ".##..", ".#..#", "..#..", "#....")
CELLS = [(row, column) for row in range(5) for column in range(5) if MAP[row][column] == "."]
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
N, A = len(CELLS), len(MOVES)
DISCOUNT = 0.9
DIMS = Dims(state=N, action=2, goal=N)


def _step(cell: int, move: int) -> int:
    row, column = (a + b for a, b in zip(CELLS[cell], MOVES[move], strict=True))
    return CELLS.index((row, column)) if (row, column) in CELLS else cell


NEXT = np.array([[_step(cell, move) for move in range(A)] for cell in range(N)])  # (N, A)


def steps_between() -> np.ndarray:
    """Return the smallest number of steps from each cell to each cell, (N, N)."""
    steps = np.where(np.eye(N, dtype=bool), 0, np.inf)
    for _ in range(N):
        steps = np.minimum(steps, 1 + steps[NEXT].min(axis=1) * (steps > 0))
    return steps


def occupancy() -> np.ndarray:
    """Return the discounted occupancy of each cell after each (cell, move), (N, A, N).

    The moves after the first are uniformly random.
    """
    walk = np.eye(N)[NEXT].mean(axis=1)  # (N, N)
    return ((1 - DISCOUNT) * np.linalg.inv(np.eye(N) - DISCOUNT * walk))[NEXT]


def make(kind: type[Algorithm], critic: str, seed: int = 0, **settings) -> Algorithm:
    torch.manual_seed(seed)

    def factory() -> Critic:
        return make_critic(critic, DIMS.state, DIMS.action, DIMS.goal, hidden_dim=128)

    return kind(DIMS, factory, kind.Settings(hidden_dim=64, **settings))


class Walks:
    """Transitions, future goals and waypoints of uniformly random walks."""

    def __init__(self, seed: int = 0, walks: int = 512, length: int = 160) -> None:
        self.random = np.random.default_rng(seed)
        self.moves = self.random.integers(A, size=(walks, length))
        self.cells = np.empty((walks, length + 1), dtype=int)
        self.cells[:, 0] = self.random.integers(N, size=walks)
        for t in range(length):
            self.cells[:, t + 1] = NEXT[self.cells[:, t], self.moves[:, t]]

    def batch(self, size: int) -> Batch:
        draw = self.random
        walk, time = draw.integers(len(self.cells), size=size), draw.integers(100, size=size)
        future = np.minimum(draw.geometric(1 - DISCOUNT, size), 60)
        waypoint = np.where(
            draw.random(size) < 0.2, 1, np.minimum(draw.geometric(0.05, size), future)
        )
        state, goal = self.cells[walk, time], self.cells[walk, time + future]
        return Batch(
            state=one_hot(state),
            action=actions(self.moves[walk, time]),
            goal=one_hot(draw.integers(N, size=size)),
            next_state=one_hot(self.cells[walk, time + 1]),
            reward=torch.zeros(size),
            terminated=torch.zeros(size, dtype=torch.bool),
            steps_to_goal=torch.full((size,), torch.inf),
            trajectory=Trajectory(
                achieved=one_hot(self.cells[walk, time + 1]),
                future_goal=one_hot(goal),
                future_steps=torch.as_tensor(future).float(),
                waypoint=one_hot(self.cells[walk, time + waypoint]),
                waypoint_steps=torch.as_tensor(waypoint).float(),
            ),
        )


def one_hot(cells: np.ndarray) -> torch.Tensor:
    return torch.eye(N)[torch.as_tensor(cells)]


def actions(moves: np.ndarray) -> torch.Tensor:
    return torch.tensor(MOVES, dtype=torch.float32)[torch.as_tensor(moves)]


@torch.no_grad()
def scores(critic: Critic) -> np.ndarray:
    """Return Q of each cell, move and goal, (N, A, N)."""
    cell, move, goal = (x.flatten() for x in np.indices((N, A, N)))
    return critic(one_hot(cell), actions(move), one_hot(goal)).numpy().reshape(N, A, N)


def train(kind: type[Algorithm], updates: int, critic: str = "mrn", size: int = 64, **settings):
    """Train an algorithm on random walks."""
    agent = make(kind, critic, **({"learning_rate": 3e-3} | settings))
    walks, generator = Walks(), torch.Generator().manual_seed(0)
    for step in range(1, updates + 1):
        metrics = agent.update(walks.batch(size), step, generator)
        assert torch.isfinite(metrics).all()
    return agent


def occupancy_correlation(critic: Critic) -> float:
    """Return the correlation of Q with the log occupancy ratio log p(g | s, a) / p(g)."""
    ratio = np.log(occupancy() / occupancy().mean(axis=(0, 1)))
    return np.corrcoef(scores(critic).ravel(), ratio.ravel())[0, 1]


def step_correlation(critic: Critic) -> float:
    """Return the rank correlation of -Q with the steps that remain after the action."""
    return spearmanr(-scores(critic).ravel(), steps_between()[NEXT].ravel()).statistic
