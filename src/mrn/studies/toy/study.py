"""The paper's toy example: learn shortest paths in a square from 20 pairs of points (Sec. 3.2).

The error is the mean squared one, everywhere: it is what training minimises on the 20 pairs, and
what is reported on 10,000 others.
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

CHUNK = 1000
"""Pairs of the test set evaluated at a time, so that what is in between stays small."""

CHANGED, CHANGED_ETAS = ("mrn", "monolithic"), (0.1, 0.3)
"""The networks and strips of `sensitivity`."""


@dataclass(frozen=True)
class Settings:
    """What the paper fixes (strips, pairs) and what it leaves open (the rest)."""

    etas: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Widths of the strip."""
    seeds: tuple[int, ...] = (100, 200, 300, 400, 500)
    """Each draws its own pairs (the same for every eta) and its own initial weights."""
    pairs: int = 20
    """Pairs to learn from."""
    test_pairs: int = 10_000
    """Pairs to measure the error on."""
    width: int = 64
    """Width of the monolithic network; all others have as many parameters."""
    learning_rate: float = 1e-3
    """Of Adam, on all pairs at once."""
    iterations: int = 1000
    """Steps of Adam."""
    scale: float = 1.0
    """What every network's output is multiplied by."""
    target: Callable[[Tensor, Tensor, Tensor], Tensor] = shortest_path_length
    """(start, goal, eta) -> the distance to learn."""


@dataclass(frozen=True)
class Fit:
    """One kind of network, trained once per eta and seed."""

    name: str
    settings: Settings
    parameters: int
    """Trainable values of one network."""
    iterations: tuple[int, ...]
    """When the error was measured."""
    errors: np.ndarray
    """(times, etas, seeds): mean squared error on the test pairs."""
    weights: dict[str, np.ndarray]
    """(etas x seeds, ...): each network's weights at its best."""

    @property
    def best(self) -> np.ndarray:
        """The lowest error over the iterations, (etas, seeds)."""
        return self.errors.min(axis=0)

    @property
    def best_iteration(self) -> np.ndarray:
        """When it was reached, (etas, seeds)."""
        return np.array(self.iterations)[self.errors.argmin(axis=0)]

    def model(self, eta: float, seed: int) -> nn.Module:
        """The trained network of one eta and seed, at its best."""
        row = self.settings.etas.index(eta) * len(self.settings.seeds)
        row += self.settings.seeds.index(seed)
        model = make_model(self.name, self.settings.width)
        model.load_state_dict({key: torch.tensor(w[row]) for key, w in self.weights.items()})
        return model


def times(iterations: int) -> tuple[int, ...]:
    """When to measure: at the start, then at gaps that grow with the iteration, and at the end."""
    steps = math.ceil(math.log(max(iterations, 1), 1.3))
    return tuple(sorted({0, iterations, *(int(1.3**step) for step in range(steps))}))


def train(name: str, settings: Settings) -> Fit:
    """Train all networks of one kind, over etas and seeds, as one batched network.

    A loss that is the sum of the networks' losses gives each its own gradient, and Adam treats
    every weight by itself, so each network learns as if it were alone.
    """
    eta = torch.tensor(settings.etas).repeat_interleave(len(settings.seeds))  # (nets,)
    learn = _problem(settings, eta, "toy learn", settings.pairs)
    test = _problem(settings, eta, "toy test", settings.test_pairs)

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
        parts = zip(*(x.split(CHUNK, dim=1) for x in test), strict=True)
        return torch.cat([squared_error(*part) for part in parts], dim=1).mean(1)

    adam = torch.optim.Adam(weights.values(), lr=settings.learning_rate)
    at_best = {key: value.detach().clone() for key, value in weights.items()}
    lowest = torch.full((len(models),), torch.inf)
    errors, measured = [], times(settings.iterations)
    for iteration in range(settings.iterations + 1):
        if iteration in measured:
            errors.append(test_error())
            better = errors[-1] < lowest
            lowest = torch.minimum(lowest, errors[-1])
            for key, value in weights.items():
                at_best[key][better] = value.detach()[better]
        adam.zero_grad()
        squared_error(*learn).mean(1).sum().backward()
        adam.step()
    return Fit(
        name,
        settings,
        count_parameters(skeleton),
        measured,
        torch.stack(errors).unflatten(1, (len(settings.etas), -1)).numpy(),
        {key: value.numpy() for key, value in at_best.items()},
    )


def _problem(settings: Settings, eta: Tensor, purpose: str, count: int) -> tuple[Tensor, ...]:
    """Starts and goals, (nets, pairs, 2), and their distances, (nets, pairs)."""
    points = [draw_pairs(seed, purpose, count) for seed in settings.seeds]
    start, goal = torch.stack(points * len(settings.etas)).unbind(1)
    return start, goal, settings.target(start, goal, eta[:, None])


def draw_pairs(seed: int, purpose: str, count: int) -> Tensor:
    """Uniform pairs of points, (2, count, 2); a larger count only adds to them."""
    generator = make_generator(seed, purpose, torch.device("cpu"))
    return torch.rand(count, 2, 2, generator=generator).transpose(0, 1)


def constant_error(settings: Settings, eta: float, seed: int) -> float:
    """The error of the best constant, which is the variance of the distances to be learned."""
    start, goal = draw_pairs(seed, "toy test", settings.test_pairs)
    return float(settings.target(start, goal, torch.tensor(eta)).var(correction=0))


def train_all(jobs: Mapping[str, tuple[str, Settings]], workers: int) -> dict[str, Fit]:
    """Train several kinds, one per process and thread: the same numbers for any number of cores.

    The last ones of a study take longest (IQE sorts), and `run_all` starts with those.
    """
    return run_all({title: partial(train, *job) for title, job in jobs.items()}, workers)


def study(workers: int) -> list[Fit]:
    """The toy example with every kind of network."""
    jobs = {model.title: (name, Settings()) for name, model in MODELS.items()}
    return list(train_all(jobs, workers).values())


def sensitivity(workers: int) -> dict[str, list[Fit]]:
    """What decides between MRN and the monolithic network where the strip is narrow.

    One setting at a time is moved: those of the training first, then the number of pairs, and
    last the distance itself.
    """
    base = Settings(etas=CHANGED_ETAS)
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
        f"{MODELS[name].title}, {what}": (name, dataclasses.replace(base, **change))  # type: ignore[arg-type]
        for what, change in changes.items()
        for name in CHANGED
    }
    fits = list(train_all(jobs, workers).values())
    return {what: fits[2 * i : 2 * i + 2] for i, what in enumerate(changes)}
