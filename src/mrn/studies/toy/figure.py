"""The two figures of the toy example, each as PDF and PNG."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mrn.critics.heads.mrn import MRN
from mrn.studies.toy.models import MODELS, QuasimetricModel
from mrn.studies.toy.square import shortest_path, shortest_path_length
from mrn.studies.toy.study import Fit, sample_pairs
from mrn.utils.plotting import COLORS, import_pyplot, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDIGO = "#4b3f8f"
CURVES = ("mrn", "mrn-sym", "mrn-asym")
"""Networks drawn as learning curves; all others are horizontal lines at their best error."""
BASELINES = {
    "monolithic": "-",
    "bvn": "--",
    "dn": ":",
    "wn": "-.",
    "pqe": (0, (1, 1)),
    "iqe": (0, (5, 1)),
}
EXAMPLE_ETA, EXAMPLE_START = 0.3, (0.7, 0.6)
"""Strip width and start point of the distance maps, which show the network of the first seed."""


def draw_study(fits: list[Fit], path: Path) -> None:
    """Draw the paper's figure: the square, then the errors over iterations for each eta.

    Curves are means over seeds with a band of one standard error, up to the iteration with the
    lowest mean. Horizontal lines are means over seeds of the best errors.
    """
    figure = import_pyplot().figure(figsize=(11, 6.2), layout="constrained")
    square, *axes = figure.subplots(2, 3).flat
    _draw_square(square, EXAMPLE_ETA)
    by_name = {fit.name: fit for fit in fits}
    for i, (eta, ax) in enumerate(zip(fits[0].settings.etas, axes, strict=False)):
        for name in CURVES:
            fit, color = by_name[name], COLORS[name]
            mean = fit.errors[:, i].mean(axis=1)
            band = fit.errors[:, i].std(axis=1, ddof=1) / len(fit.settings.seeds) ** 0.5
            shown = slice(1, mean.argmin() + 1)  # a log axis has no iteration 0
            iterations = np.array(fit.iterations)[shown]
            ax.plot(iterations, mean[shown], color=color, label=MODELS[name].title)
            low, high = (mean - band)[shown], (mean + band)[shown]
            ax.fill_between(iterations, low, high, color=color, alpha=0.2, linewidth=0)
            ax.plot(iterations[-1:], mean[shown][-1:], "o", color=color, markersize=4)
        for name, linestyle in BASELINES.items():
            style = {"color": COLORS[name], "linestyle": linestyle, "linewidth": 1}
            ax.axhline(by_name[name].best[i].mean(), label=MODELS[name].title, **style)
        ax.set(title=f"η = {eta}", xscale="log", xlabel="iteration")
        ax.set(yscale="log", ylim=(3e-4, 1), ylabel="mean squared error")
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    save_figure(figure, path)


def draw_parts(fit: Fit, path: Path) -> None:
    """Draw the true and the learned distance from a point, and the parts of the latter."""
    model = fit.model(EXAMPLE_ETA, fit.settings.seeds[0])
    assert isinstance(model, QuasimetricModel)
    side = torch.linspace(0, 1, 101)
    goals = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1).flatten(0, 1)
    start = torch.tensor(EXAMPLE_START).expand_as(goals)
    true = shortest_path_length(start, goals, EXAMPLE_ETA)
    symmetric, asymmetric = parts(model, start, goals)
    learned = symmetric + asymmetric
    figure = import_pyplot().figure(figsize=(11, 6.8), layout="constrained")
    axes = list(figure.subplots(2, 3).flat)
    maps = {
        f"true distance d* (η = {EXAMPLE_ETA})": true,
        "learned by MRN from 20 pairs": learned,
        "learned - true": learned - true,
        "symmetric part": symmetric,
        "asymmetric part": asymmetric,
    }
    highest = float(torch.maximum(true, learned).max())
    for ax, (title, values) in zip(axes, maps.items(), strict=False):
        signed = bool((values < 0).any())
        image = ax.imshow(
            values.view(len(side), len(side)).numpy(),
            origin="lower",
            extent=(0, 1, 0, 1),
            cmap="RdBu_r" if signed else "viridis",
            vmin=-highest if signed else 0,
            vmax=highest,
        )
        figure.colorbar(image, ax=ax, shrink=0.8)
        ax.plot(*EXAMPLE_START, "o", color="white", markeredgecolor="black")
        ax.axvline(EXAMPLE_ETA, color="white", linewidth=0.8, linestyle="--")
        ax.set(title=title, xlabel="x", ylabel="height")
    _draw_shares(axes[-1], fit)
    save_figure(figure, path)


@torch.no_grad()
def parts(model: QuasimetricModel, start: Tensor, goal: Tensor) -> list[Tensor]:
    """Return the terms that add up to the distance of an MRN, each of shape (B,)."""
    head = model.head
    assert isinstance(head, MRN)
    x, y = (head.project(model.encoder(points)) for points in (start, goal))
    return head.terms(x, y)


def asymmetric_share(fit: Fit, eta: float, seed: int) -> float:
    """Return the share of the asymmetric part in the learned distance over the test pairs."""
    model = fit.model(eta, seed)
    assert isinstance(model, QuasimetricModel)
    start, goal = sample_pairs(seed, "toy test", fit.settings.test_pairs)
    symmetric, asymmetric = parts(model, start, goal)
    return float(asymmetric.sum() / (symmetric + asymmetric).sum())


def _draw_shares(ax: "Axes", fit: Fit) -> None:
    settings = fit.settings
    shares = [
        np.mean([asymmetric_share(fit, eta, seed) for seed in settings.seeds])
        for eta in settings.etas
    ]
    labels = [str(eta) for eta in settings.etas]
    ax.bar(labels, shares, color=COLORS["mrn-asym"], label="asymmetric")
    rest = [1 - share for share in shares]
    ax.bar(labels, rest, bottom=shares, color=COLORS["mrn-sym"], label="symmetric")
    ax.set(title="mean share of each part", xlabel="η", ylim=(0, 1))
    ax.legend(loc="upper right", framealpha=1)


def _draw_square(ax: "Axes", eta: float) -> None:
    ax.axvspan(eta, 1, color=INDIGO, alpha=0.75, linewidth=0)
    start, goal = (0.75, 0.8), (0.9, 0.25)
    ax.plot(*zip(*shortest_path(start, goal, eta), strict=True), color="#f5b041", linewidth=2.5)
    for point, name in ((start, "$x_0$"), (goal, "$x_g$")):
        ax.plot(*point, "o", color="#f5b041", markeredgecolor="black")
        ax.annotate(name, point, (0, 8), textcoords="offset points", color="white")
    ax.annotate("free movement", (eta / 2, 0.5), ha="center", rotation=90)
    ax.annotate("no descent", ((1 + eta) / 2, 0.5), ha="center", color="white")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="x", ylabel="height")
    ax.set(title=f"shortest path (η = {eta})")
