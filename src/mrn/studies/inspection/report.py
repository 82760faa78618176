"""An inspection as a table, as JSON and as a picture."""

import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from mrn.agent import Agent
from mrn.studies.inspection.measure import (
    LEAST_SUCCESSES,
    Inspection,
    Moments,
    Violations,
    discounted_cost,
    distance,
)
from mrn.utils.files import make_writable_folder, write_atomically
from mrn.utils.plotting import import_pyplot

GRID = 60
"""Goals along each side of the picture's plane."""


def table(found: Inspection) -> Table:
    """The figures for the terminal."""
    shown = Table("what", "value", title=f"{found.task}, critic {found.critic}")
    shown.add_row(f"goal reached at some step, {found.episodes} episodes", f"{found.success:.1%}")
    _add_triangle(shown, "-Q between real states", found.goal_triangle)
    if found.embedding_triangle is None:
        shown.add_row("triangles between embeddings", "the critic has none")
    else:
        _add_triangle(shown, "the head between embeddings", found.embedding_triangle)
    figures = {
        "rank correlation of -Q with the steps to success": found.rank_correlation,
        "linear correlation of -Q with their discounted cost": found.linear_correlation,
        "mean of -Q minus that cost": found.bias,
        "mean share of the symmetric part": found.symmetric_share,
    }
    few = found.success * found.episodes < LEAST_SUCCESSES
    missing = f"- (fewer than {LEAST_SUCCESSES} successes)" if few else "-"
    for name, value in figures.items():
        shown.add_row(name, missing if value is None else f"{value:.3f}")
    return shown


def _add_triangle(shown: Table, what: str, found: Violations) -> None:
    size = f"; by {found.mean:.3g} in the mean, {found.largest:.3g} at most" if found.share else ""
    shown.add_row(f"broken triangles of {what}", f"{found.share:.2%}{size}")


def write(found: Inspection, agent: Agent, moments: Moments, folder: Path) -> list[Path]:
    """Write inspect.json and inspect.png."""
    make_writable_folder(folder)
    paths = [folder / "inspect.json", folder / "inspect.png"]
    write_atomically(paths[0], json.dumps(asdict(found), indent=2).encode())
    write_atomically(paths[1], draw(agent, moments))
    return paths


def draw(agent: Agent, moments: Moments) -> bytes:
    """-Q over goals around a state, and -Q against the true number of steps, as PNG."""
    figure = import_pyplot().figure(figsize=(9.5, 4), layout="constrained")
    plane, steps = figure.subplots(1, 2)
    across, up, values = goal_plane(agent, moments)
    image = plane.pcolormesh(across, up, values, shading="auto", cmap="viridis")
    plane.contour(across, up, values, colors="white", linewidths=0.6, alpha=0.7)
    figure.colorbar(image, ax=plane, label="-Q(s, policy(s, g), g)")
    first, second = plane_axes(moments)
    here = moments.achieved[0].cpu().numpy()
    plane.plot(here[first], here[second], "r+", markersize=12, label="achieved in s")
    plane.set(xlabel=f"goal[{first}]", ylabel=f"goal[{second}]", title="goals around a state")
    plane.legend(loc="upper right", fontsize=8)
    before = ~np.isnan(moments.steps_left)
    chosen = torch.as_tensor(before, device=agent.device)
    learned = distance(agent, moments.state[chosen], moments.action[chosen], moments.goal[chosen])
    steps.scatter(moments.steps_left[before], learned.cpu(), s=4, alpha=0.25, linewidths=0)
    gamma, longest = agent.algorithm.discount, agent.spec.horizon
    line = np.arange(1, longest + 1)
    cost = discounted_cost(line.astype(float), gamma)
    steps.plot(line, cost, color="gray", linewidth=1, label="exact")
    steps.set(xlabel="steps to success", ylabel="-Q", title="evaluation episodes")
    steps.legend(fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    import_pyplot().close(figure)
    return content.getvalue()


def plane_axes(moments: Moments) -> tuple[int, int]:
    """The two coordinates of the goal that vary most; on the table, for Fetch, x and y."""
    spread = moments.goal.std(dim=0)
    if len(spread) == 3:
        return 0, 1
    most = sorted(spread.topk(min(2, len(spread))).indices.tolist())
    return most[0], most[-1]  # twice the same where a goal is one number


def goal_plane(agent: Agent, moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two axes of goals, and -Q at the first state for each, shape (GRID, GRID).

    The other coordinates of the goal are what that state has achieved: a goal on the table.
    """
    axes = plane_axes(moments)
    low = torch.minimum(moments.goal.amin(dim=0), moments.achieved[0])
    high = torch.maximum(moments.goal.amax(dim=0), moments.achieved[0])
    sides = [torch.linspace(low[a].item(), high[a].item(), GRID) for a in axes]
    up, across = torch.meshgrid(sides[1], sides[0], indexing="ij")
    goals = moments.achieved[0].repeat(GRID * GRID, 1)
    goals[:, axes[0]] = across.reshape(-1).to(goals)
    goals[:, axes[1]] = up.reshape(-1).to(goals)
    states = moments.state[:1].expand(len(goals), -1)
    with torch.no_grad():
        values = distance(agent, states, agent.policy.unit(states, goals), goals)
    return sides[0].numpy(), sides[1].numpy(), values.reshape(GRID, GRID).cpu().numpy()
