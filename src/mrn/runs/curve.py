"""Learning curve of a single run as a Matplotlib figure."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from mrn.runs.layout import METRICS, run_file
from mrn.runs.metrics import read_metrics
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learning_curve(folder: Path | None, title: str) -> "Figure":
    """Draw the success rate over environment steps, from the metrics in a run folder.

    The figure does not belong to pyplot: it opens no window, needs no backend, and notebooks show
    it once.

    Raises:
        UserError: There is no folder, no epoch was evaluated yet, or Matplotlib is missing.
    """
    if folder is None:
        raise UserError(
            "this agent has no run folder, so its metrics are unknown: load a run folder with "
            "mrn.load"
        )
    file = run_file(folder, METRICS)
    rows = read_metrics(file) if file.exists() else []
    points = [(row["env_steps"], row["success"]) for row in rows if row["success"] is not None]
    if not points:
        raise UserError(f"{folder} has no evaluation to plot: no epoch is finished yet")
    figure: Figure = import_extra("matplotlib.figure", "report").Figure((5, 3), layout="tight")
    axes = figure.subplots()
    axes.plot(*zip(*points, strict=True), marker="o", markersize=3)
    axes.set(xlabel="environment steps", ylabel="success rate", ylim=(-0.05, 1.05), title=title)
    axes.grid(alpha=0.3)
    figure._repr_png_ = lambda: _as_png(figure)  # type: ignore[attr-defined]
    return figure


def _as_png(figure: "Figure") -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    return content.getvalue()
