"""Output of an inspection: a table, a JSON file and a figure."""

import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from mrn.agent import Agent
from mrn.studies.inspection.measure import (
    MIN_SUCCESSES,
    Inspection,
    Samples,
    Violations,
    distance,
    expected_distance,
    get_unit,
)
from mrn.utils.files import prepare_output_file, write_atomically
from mrn.utils.plotting import import_pyplot

GRID_SIZE = 60
"""Number of goals along each axis of the heat map."""


def table(inspection: Inspection) -> Table:
    """Return the results as a table for the terminal."""
    rows = Table("measure", "value", title=f"{inspection.task}, critic {inspection.critic}")
    rows.add_row(
        f"success at any step, {inspection.episodes} episodes", f"{inspection.success:.1%}"
    )
    between_states = _format_violations(inspection.goal_triangle)
    rows.add_row("triangle violations of -Q between visited states", between_states)
    for name, found, otherwise in (
        ("of the head between embeddings", inspection.embedding_triangle, "no metric head"),
        ("of the distance between states", inspection.state_triangle, "states are not embedded"),
    ):
        value = otherwise if found is None else _format_violations(found)
        rows.add_row(f"triangle violations {name}", value)
    if inspection.achieved_goal_distance is not None:
        name = "distance to own achieved goal, relative to others"
        rows.add_row(name, f"{inspection.achieved_goal_distance:.3f}")
    measures = {
        "rank correlation of -Q with the steps to success": inspection.rank_correlation,
        f"linear correlation of -Q with their {inspection.unit}": inspection.linear_correlation,
        f"mean of -Q minus their {inspection.unit}": inspection.bias,
        "mean share of the symmetric part": inspection.symmetric_share,
    }
    few = inspection.success * inspection.episodes < MIN_SUCCESSES
    missing = f"- (fewer than {MIN_SUCCESSES} successes)" if few else "-"
    for name, number in measures.items():
        rows.add_row(name, missing if number is None else f"{number:.3f}")
    return rows


def _format_violations(found: Violations) -> str:
    excess = f"; excess {found.mean:.3g} mean, {found.largest:.3g} max" if found.share else ""
    return f"{found.share:.2%}{excess}"


def prepare(folder: Path, force: bool) -> list[Path]:
    """Return the paths of inspect.json and inspect.png, and check that they can be written.

    Raises:
        UserError: A file exists and `force` is False, or the folder is not writable.
    """
    paths = [folder / "inspect.json", folder / "inspect.png"]
    for path in paths:
        prepare_output_file(path, (path.suffix,), force)
    return paths


def write(inspection: Inspection, agent: Agent, samples: Samples, folder: Path) -> list[Path]:
    """Write inspect.json and inspect.png, and return their paths."""
    paths = prepare(folder, force=True)
    text = json.dumps(asdict(inspection), indent=2, allow_nan=False)
    write_atomically(paths[0], text.encode())
    write_atomically(paths[1], draw(agent, samples))
    return paths


def draw(agent: Agent, samples: Samples) -> bytes:
    """Draw -Q over goals from one state and -Q against the steps to success, as PNG."""
    figure = import_pyplot().figure(figsize=(9.5, 4), layout="constrained")
    plane, steps = figure.subplots(1, 2)
    across, up, values = goal_plane(agent, samples)
    image = plane.pcolormesh(across, up, values, shading="auto", cmap="viridis")
    plane.contour(across, up, values, colors="white", linewidths=0.6, alpha=0.7)
    figure.colorbar(image, ax=plane, label="-Q(s, policy(s, g), g)")
    first, second = plane_axes(samples)
    achieved = samples.achieved[0].cpu().numpy()
    plane.plot(achieved[first], achieved[second], "r+", markersize=12, label="achieved goal of s")
    plane.set(xlabel=f"goal[{first}]", ylabel=f"goal[{second}]", title="-Q over goals, fixed state")
    plane.legend(loc="upper right", fontsize=8)
    before = ~np.isnan(samples.steps_left)
    chosen = torch.as_tensor(before, device=agent.device)
    learned = distance(agent, samples.state[chosen], samples.action[chosen], samples.goal[chosen])
    steps.scatter(samples.steps_left[before], learned.cpu(), s=4, alpha=0.25, linewidths=0)
    line = np.arange(1, agent.spec.horizon + 1).astype(float)
    exact = expected_distance(agent, line)
    steps.plot(line, exact, color="gray", linewidth=1, label=get_unit(agent))
    steps.set(xlabel="steps to success", ylabel="-Q", title="evaluation episodes")
    steps.legend(fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    import_pyplot().close(figure)
    return content.getvalue()


def plane_axes(samples: Samples) -> tuple[int, int]:
    """Return the two goal coordinates that vary most; for three-dimensional goals, x and y."""
    spread = samples.goal.std(dim=0)
    if len(spread) == 3:
        return 0, 1
    most = sorted(spread.topk(min(2, len(spread))).indices.tolist())
    return most[0], most[-1]  # equal for one-dimensional goals


def goal_plane(agent: Agent, samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the two axes of a grid of goals and -Q from the first state, (GRID_SIZE, GRID_SIZE).

    The other goal coordinates are those that the state has achieved, for Fetch the table height.
    """
    axes = plane_axes(samples)
    low = torch.minimum(samples.goal.amin(dim=0), samples.achieved[0])
    high = torch.maximum(samples.goal.amax(dim=0), samples.achieved[0])
    sides = [torch.linspace(low[a].item(), high[a].item(), GRID_SIZE) for a in axes]
    up, across = torch.meshgrid(sides[1], sides[0], indexing="ij")
    goals = samples.achieved[0].repeat(GRID_SIZE * GRID_SIZE, 1)
    goals[:, axes[0]] = across.reshape(-1).to(goals)
    goals[:, axes[1]] = up.reshape(-1).to(goals)
    states = samples.state[:1].expand(len(goals), -1)
    with torch.no_grad():
        values = distance(agent, states, agent.policy.unit(states, goals), goals)
    return sides[0].numpy(), sides[1].numpy(), values.reshape(GRID_SIZE, GRID_SIZE).cpu().numpy()
