"""The paper's toy example: learn shortest paths in a square from 20 pairs of points (Sec. 3.2).

All errors are mean squared errors: the training loss on the 20 pairs, and the test error on 10,000
other pairs.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from mrn.critics.base import count_parameters
from mrn.studies.toy.models import MODELS, make_model
from mrn.studies.toy.pool import run_all
from mrn.studies.toy.square import shortest_path_length, slope_length
from mrn.utils.seeding import make_generator, seeded_weights

TEST_CHUNK = 1000
"""Number of test pairs evaluated at a time, to limit the memory of intermediate results."""

SENSITIVITY_MODELS, SENSITIVITY_ETAS = ("mrn", "monolithic"), (0.1, 0.3)
"""Networks and strip widths of `sensitivity`."""


@dataclass(frozen=True)
class Settings:
    """Settings of the study; the paper specifies the strips and pairs, the rest are our choices."""

    etas: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Widths of the strip."""
    seeds: tuple[int, ...] = (100, 200, 300, 400, 500)
    """Seeds of the pairs (shared by all etas) and of the initial weights."""
    pairs: int = 20
    """Number of training pairs."""
    test_pairs: int = 10_000
    """Number of test pairs."""
    width: int = 64
    """Width of the monolithic network; all others match its parameter count."""
    learning_rate: float = 1e-3
    """Learning rate of full-batch Adam."""
    iterations: int = 1000
    """Number of Adam steps."""
    scale: float = 1.0
    """Factor applied to the output of every network."""
    target: Callable[[Tensor, Tensor, Tensor], Tensor] = shortest_path_length
    """Distance to learn, a function of start, goal and eta."""


@dataclass(frozen=True)
class Fit:
    """Training results of one type of network, for every eta and seed."""

    name: str
    settings: Settings
    parameters: int
    """Parameter count of one network."""
    iterations: tuple[int, ...]
    """Iterations at which the test error was measured."""
    errors: np.ndarray
    """Mean squared error on the test pairs, (iterations, etas, seeds)."""
    weights: dict[str, np.ndarray]
    """Weights of each network at its lowest test error, (etas x seeds, ...)."""

    @property
    def best(self) -> np.ndarray:
        """Lowest test error over the iterations, (etas, seeds)."""
        return self.errors.min(axis=0)

    @property
    def best_iteration(self) -> np.ndarray:
        """Iteration of the lowest test error, (etas, seeds)."""
        return np.array(self.iterations)[self.errors.argmin(axis=0)]

    def model(self, eta: float, seed: int) -> nn.Module:
        """Return the network of one eta and seed at its lowest test error."""
        row = self.settings.etas.index(eta) * len(self.settings.seeds)
        row += self.settings.seeds.index(seed)
        model = make_model(self.name, self.settings.width)
        model.load_state_dict({key: torch.tensor(w[row]) for key, w in self.weights.items()})
        return model


def measurement_iterations(iterations: int) -> tuple[int, ...]:
    """Return when to measure: at the start, then at growing intervals, and at the end."""
    steps = math.ceil(math.log(max(iterations, 1), 1.3))
    return tuple(sorted({0, iterations, *(int(1.3**step) for step in range(steps))}))


def train(name: str, settings: Settings) -> Fit:
    """Train one type of network for all etas and seeds, as a single batched network.

    The gradient of the summed loss is the gradient of each network's own loss, and Adam updates
    every weight independently. Each network therefore learns as if trained alone.
    """
    eta = torch.tensor(settings.etas).repeat_interleave(len(settings.seeds))  # (nets,)
    train_set = _make_dataset(settings, eta, "toy learn", settings.pairs)
    test_set = _make_dataset(settings, eta, "toy test", settings.test_pairs)

    models = []
    for seed in settings.seeds * len(settings.etas):
        with seeded_weights(seed):
            models.append(make_model(name, settings.width))
    weights, _ = stack_module_state(models)  # each (nets, ...)
    skeleton = models[0].to("meta")

    @vmap
    def predict(weights: dict[str, Tensor], start: Tensor, goal: Tensor) -> Tensor:
        return settings.scale * functional_call(skeleton, weights, (start, goal))

    def squared_error(start: Tensor, goal: Tensor, distance: Tensor) -> Tensor:
        return (predict(weights, start, goal) - distance).square()  # (nets, pairs)

    @torch.no_grad()
    def test_error() -> Tensor:
        parts = zip(*(x.split(TEST_CHUNK, dim=1) for x in test_set), strict=True)
        return torch.cat([squared_error(*part) for part in parts], dim=1).mean(1)

    adam = torch.optim.Adam(weights.values(), lr=settings.learning_rate)
    best_weights = {key: value.detach().clone() for key, value in weights.items()}
    lowest_error = torch.full((len(models),), torch.inf)
    errors, measured = [], measurement_iterations(settings.iterations)
    for iteration in range(settings.iterations + 1):
        if iteration in measured:
            errors.append(test_error())
            better = errors[-1] < lowest_error
            lowest_error = torch.minimum(lowest_error, errors[-1])
            for key, value in weights.items():
                best_weights[key][better] = value.detach()[better]
        adam.zero_grad()
        squared_error(*train_set).mean(1).sum().backward()
        adam.step()
    return Fit(
        name,
        settings,
        count_parameters(skeleton),
        measured,
        torch.stack(errors).unflatten(1, (len(settings.etas), -1)).numpy(),
        {key: value.numpy() for key, value in best_weights.items()},
    )


def _make_dataset(settings: Settings, eta: Tensor, purpose: str, count: int) -> tuple[Tensor, ...]:
    """Return starts and goals, (nets, pairs, 2), and their distances, (nets, pairs)."""
    points = [sample_pairs(seed, purpose, count) for seed in settings.seeds]
    start, goal = torch.stack(points * len(settings.etas)).unbind(1)
    return start, goal, settings.target(start, goal, eta[:, None])


def sample_pairs(seed: int, purpose: str, count: int) -> Tensor:
    """Sample uniform pairs of points, (2, count, 2); a larger count extends the same sequence."""
    generator = make_generator(seed, purpose, torch.device("cpu"))
    return torch.rand(count, 2, 2, generator=generator).transpose(0, 1)


def constant_error(settings: Settings, eta: float, seed: int) -> float:
    """Return the error of the best constant, which is the variance of the target distances."""
    start, goal = sample_pairs(seed, "toy test", settings.test_pairs)
    return float(settings.target(start, goal, torch.tensor(eta)).var(correction=0))


def train_all(jobs: Mapping[str, tuple[str, Settings]], workers: int) -> dict[str, Fit]:
    """Train several types of network in parallel, each in one process with one thread.

    Results do not depend on the number of workers. `run_all` starts with the last ones, which take
    longest (IQE sorts).
    """
    return run_all({title: partial(train, *job) for title, job in jobs.items()}, workers)


def study(workers: int) -> list[Fit]:
    """Run the toy example with every type of network."""
    jobs = {model.title: (name, Settings()) for name, model in MODELS.items()}
    return list(train_all(jobs, workers).values())


def sensitivity(workers: int) -> dict[str, list[Fit]]:
    """Vary one setting at a time to see when MRN beats the monolithic network on narrow strips.

    The variations cover the training settings, the number of pairs and the distance itself.
    """
    base = Settings(etas=SENSITIVITY_ETAS)
    changes: dict[str, dict[str, object]] = {
        "as in the study": {},
        "learning rate 3e-4": {"learning_rate": 3e-4},
        "learning rate 3e-3": {"learning_rate": 3e-3},
        "learning rate 1e-2": {"learning_rate": 1e-2},
        "3,000 iterations": {"iterations": 3000},
        "width 32": {"width": 32},
        "width 128": {"width": 128},
        "outputs x 0.1": {"scale": 0.1},
        "outputs x 10": {"scale": 10.0},
        "50 pairs": {"pairs": 50},
        "200 pairs": {"pairs": 200},
        "no jump (slope)": {"target": slope_length},
    }
    jobs = {
        f"{MODELS[name].title}, {label}": (name, dataclasses.replace(base, **change))  # type: ignore[arg-type]
        for label, change in changes.items()
        for name in SENSITIVITY_MODELS
    }
    fits = list(train_all(jobs, workers).values())
    return {label: fits[2 * i : 2 * i + 2] for i, label in enumerate(changes)}
