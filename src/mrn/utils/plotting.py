"""Colors and order of methods, and reproducible figure files."""

import colorsys
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrn.utils.extras import import_extra
from mrn.utils.files import write_atomically
from mrn.utils.naming import Method
from mrn.utils.terminal import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {
    "mrn": "#0072B2",
    "monolithic": "#555555",
    "bvn": "#E69F00",
    "dn": "#009E73",
    "wn": "#CC79A7",
    "pqe": "#D55E00",
    "iqe": "#56B4E9",
    "uvfa": "#8C6D31",
    "mrn-sym": "#44AA99",
    "mrn-asym": "#AA4499",
    "mrn-sag": "#999933",
    "mrn-squared": "#F0E442",
    "dn-released": "#004D38",
    "wn-released": "#7A2F59",
    "pqe-released": "#F4A582",
    "mrn-shared": "#00304D",
    "dn-shared": "#7FD1B9",
    "wn-shared": "#E8BFD7",
    "pqe-shared": "#8A3C00",
    "iqe-shared": "#A6D8F5",
}
"""Colors of critics. Those of the paper use the color-blind safe palette of Okabe and Ito."""
_FIRST_SPARES = ("#332288", "#117733", "#882255", "#661100", "#6699CC")


def method_colors(methods: list[str]) -> dict[str, str]:
    """Return a color for each method: its critic's, unless another method already uses it."""
    chosen: dict[str, str] = {}
    spare = (color for color in _spare_colors() if color not in COLORS.values())
    for method in methods:
        color = COLORS.get(Method.parse(method).critic)
        if color is None or color in chosen.values():
            color = next(spare)
        chosen[method] = color
    return chosen


def _spare_colors() -> Iterator[str]:
    """Yield distinct colors without end: a few fixed ones, then steps around the hue circle.

    Steps by the golden ratio keep each hue away from all previous ones.
    """
    yield from _FIRST_SPARES
    for count in itertools.count():
        lightness = (0.35, 0.5, 0.65)[count % 3]
        rgb = colorsys.hls_to_rgb(count * 0.618034 % 1, lightness, 0.7)
        yield "#" + "".join(f"{round(255 * part):02X}" for part in rgb)


def sort_methods(methods: set[str]) -> list[str]:
    """Return methods in the paper's order of critics, others last."""
    rank = {critic: index for index, critic in enumerate(COLORS)}
    return sorted(methods, key=lambda m: (rank.get(Method.parse(m).critic, len(rank)), m))


def plain_text(name: str) -> str:
    """Return a name to draw as it is: Matplotlib would parse text between dollar signs as TeX."""
    return printable(name).replace("$", r"\$")


def save_figure(figure: "Figure", path: Path) -> list[Path]:
    """Write a figure as PDF and PNG, byte-identical for equal figures."""
    written = []
    for suffix, options in ((".pdf", {"CreationDate": None}), (".png", {})):
        content = io.BytesIO()
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=options)
        write_atomically(path.with_suffix(suffix), content.getvalue())
        written.append(path.with_suffix(suffix))
    import_pyplot().close(figure)
    return written


def import_pyplot() -> Any:
    """Import matplotlib.pyplot with a backend that draws to files only.

    Raises:
        UserError: Matplotlib is not installed.
    """
    import_extra("matplotlib", "report").use("Agg")
    return import_extra("matplotlib.pyplot", "report")
