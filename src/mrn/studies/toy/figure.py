"""The toy example's two pictures, each as PDF and PNG."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mrn.critics.heads.mrn import MRN
from mrn.studies.toy.models import MODELS, QuasimetricModel
from mrn.studies.toy.square import shortest_path, shortest_path_length
from mrn.studies.toy.study import Fit, draw_pairs
from mrn.utils.plotting import COLORS, import_pyplot, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDIGO = "#4b3f8f"
CURVES = ("mrn", "mrn-sym", "mrn-asym")
"""Drawn over iterations; all other networks are lines at their best."""
RIVALS = {
    "monolithic": "-",
    "bvn": "--",
    "dn": ":",
    "wn": "-.",
    "pqe": (0, (1, 1)),
    "iqe": (0, (5, 1)),
}
SHOWN_ETA, SHOWN_START = 0.3, (0.7, 0.6)
"""The strip, and the point from which distances are shown, as the first seed learned them."""


def draw_study(fits: list[Fit], path: Path) -> None:
    """The paper's figure: the square, then the errors over iterations for each eta.

    Curves are means over seeds, drawn up to the iteration at which the mean is lowest, with a
    band of one standard error. Lines are means over seeds of the best errors.
    """
    figure = import_pyplot().figure(figsize=(11, 6.2), layout="constrained")
    square, *axes = figure.subplots(2, 3).flat
    _draw_square(square, SHOWN_ETA)
    by_name = {fit.name: fit for fit in fits}
    for i, (eta, ax) in enumerate(zip(fits[0].settings.etas, axes, strict=False)):
        for name in CURVES:
            fit, colour = by_name[name], COLORS[name]
            mean = fit.errors[:, i].mean(axis=1)
            band = fit.errors[:, i].std(axis=1, ddof=1) / len(fit.settings.seeds) ** 0.5
            shown = slice(1, mean.argmin() + 1)  # iteration 0 has no place on the axis
            at = np.array(fit.iterations)[shown]
            ax.plot(at, mean[shown], color=colour, label=MODELS[name].title)
            low, high = (mean - band)[shown], (mean + band)[shown]
            ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(at[-1:], mean[shown][-1:], "o", color=colour, markersize=4)
        for name, dashes in RIVALS.items():
            style = {"color": COLORS[name], "linestyle": dashes, "linewidth": 1}
            ax.axhline(by_name[name].best[i].mean(), label=MODELS[name].title, **style)
        ax.set(title=f"η = {eta}", xscale="log", xlabel="iteration")
        ax.set(yscale="log", ylim=(3e-4, 1), ylabel="mean squared error")
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    save_figure(figure, path)


def draw_parts(fit: Fit, path: Path) -> None:
    """The learned distance from a point beside the true one, and what its parts add to it."""
    model = fit.model(SHOWN_ETA, fit.settings.seeds[0])
    assert isinstance(model, QuasimetricModel)
    side = torch.linspace(0, 1, 101)
    goals = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1).flatten(0, 1)
    start = torch.tensor(SHOWN_START).expand_as(goals)
    true = shortest_path_length(start, goals, SHOWN_ETA)
    symmetric, asymmetric = parts(model, start, goals)
    learned = symmetric + asymmetric
    figure = import_pyplot().figure(figsize=(11, 6.8), layout="constrained")
    axes = list(figure.subplots(2, 3).flat)
    pictures = {
        f"true distance d* (η = {SHOWN_ETA})": true,
        "learned by MRN from 20 pairs": learned,
        "learned - true": learned - true,
        "its symmetric part": symmetric,
        "its asymmetric part": asymmetric,
    }
    highest = float(torch.maximum(true, learned).max())
    for ax, (title, values) in zip(axes, pictures.items(), strict=False):
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
        ax.plot(*SHOWN_START, "o", color="white", markeredgecolor="black")
        ax.axvline(SHOWN_ETA, color="white", linewidth=0.8, linestyle="--")
        ax.set(title=title, xlabel="x", ylabel="height")
    _draw_shares(axes[-1], fit)
    save_figure(figure, path)


@torch.no_grad()
def parts(model: QuasimetricModel, start: Tensor, goal: Tensor) -> list[Tensor]:
    """The terms whose sum is an MRN's distance, each of shape (B,)."""
    head = model.head
    assert isinstance(head, MRN)
    x, y = (head.project(model.encoder(points)) for points in (start, goal))
    return head.terms(x, y)


def asymmetric_share(fit: Fit, eta: float, seed: int) -> float:
    """The asymmetric part's share of the learned distance, over the test pairs."""
    model = fit.model(eta, seed)
    assert isinstance(model, QuasimetricModel)
    start, goal = draw_pairs(seed, "toy test", fit.settings.test_pairs)
    symmetric, asymmetric = parts(model, start, goal)
    return float(asymmetric.sum() / (symmetric + asymmetric).sum())


def _draw_shares(ax: "Axes", fit: Fit) -> None:
    settings = fit.settings
    shares = [
        np.mean([asymmetric_share(fit, eta, seed) for seed in settings.seeds])
        for eta in settings.etas
    ]
    at = [str(eta) for eta in settings.etas]
    ax.bar(at, shares, color=COLORS["mrn-asym"], label="asymmetric")
    rest = [1 - share for share in shares]
    ax.bar(at, rest, bottom=shares, color=COLORS["mrn-sym"], label="symmetric")
    ax.set(title="mean share of the parts", xlabel="η", ylim=(0, 1))
    ax.legend(loc="upper right", framealpha=1)


def _draw_square(ax: "Axes", eta: float) -> None:
    ax.axvspan(eta, 1, color=INDIGO, alpha=0.75, linewidth=0)
    start, goal = (0.75, 0.8), (0.9, 0.25)
    ax.plot(*zip(*shortest_path(start, goal, eta), strict=True), color="#f5b041", linewidth=2.5)
    for point, name in ((start, "$x_0$"), (goal, "$x_g$")):
        ax.plot(*point, "o", color="#f5b041", markeredgecolor="black")
        ax.annotate(name, point, (0, 8), textcoords="offset points", color="white")
    ax.annotate("free", (eta / 2, 0.5), ha="center", rotation=90)
    ax.annotate("never lower", ((1 + eta) / 2, 0.5), ha="center", color="white")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="x", ylabel="height")
    ax.set(title=f"a shortest path (η = {eta})")
