"""How methods look, one colour and one order for each, and how figures are written."""

import colorsys
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrn.utils.extras import import_extra
from mrn.utils.files import write_atomically
from mrn.utils.naming import Method

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
}
"""Of critics. Those of the paper have the colours of Okabe and Ito, which people who see colours
differently can tell apart."""
_OTHERS = ("#332288", "#117733", "#882255", "#661100", "#6699CC")


def method_colors(methods: list[str]) -> dict[str, str]:
    """A colour for each method: that of its critic, unless another method has it already."""
    chosen: dict[str, str] = {}
    spare = (colour for colour in _spare() if colour not in COLORS.values())
    for method in methods:
        colour = COLORS.get(Method.parse(method).critic)
        if colour is None or colour in chosen.values():
            colour = next(spare)
        chosen[method] = colour
    return chosen


def _spare() -> Iterator[str]:
    """Colours without end, no two alike: after a few chosen ones, steps around the circle of hues.

    A step is the golden section of the circle, which keeps the next away from all before it.
    """
    yield from _OTHERS
    for count in itertools.count():
        lightness = (0.35, 0.5, 0.65)[count % 3]
        rgb = colorsys.hls_to_rgb(count * 0.618034 % 1, lightness, 0.7)
        yield "#" + "".join(f"{round(255 * part):02X}" for part in rgb)


def sort_methods(methods: set[str]) -> list[str]:
    """Methods as the paper lists them, others after them."""
    rank = {critic: index for index, critic in enumerate(COLORS)}
    return sorted(methods, key=lambda m: (rank.get(Method.parse(m).critic, len(rank)), m))


def save_figure(figure: "Figure", path: Path) -> list[Path]:
    """Write a figure as PDF and PNG: the same figure, the same bytes."""
    written = []
    for suffix, options in ((".pdf", {"CreationDate": None}), (".png", {})):
        content = io.BytesIO()
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=options)
        write_atomically(path.with_suffix(suffix), content.getvalue())
        written.append(path.with_suffix(suffix))
    import_pyplot().close(figure)
    return written


def import_pyplot() -> Any:
    """matplotlib.pyplot, drawing to files only.

    Raises:
        UserError: It is not installed; says how to.
    """
    import_extra("matplotlib", "report").use("Agg")
    return import_extra("matplotlib.pyplot", "report")
