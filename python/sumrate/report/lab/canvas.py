"""From a matplotlib figure to inline SVG that is the same on every machine and in every run."""

import base64
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from sumrate.report.lab.palette import INK, PAGE_COLOURS, PAPER, RULE
from sumrate.report.lab.slim import Shared, alone

WIDTH_IN = 7.2
"""A plot fills an A4 page between its margins without being scaled."""
TEXT_PT = 9
LETTER_IN = 0.073
"""Room for one letter of this size."""
FAMILY = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sumrate",
    "svg.id": None,
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": TEXT_PT,
    "axes.titlesize": TEXT_PT,
    "axes.titleweight": "bold",
    "axes.labelsize": TEXT_PT,
    "xtick.labelsize": TEXT_PT,
    "ytick.labelsize": TEXT_PT,
    "legend.fontsize": TEXT_PT,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.8,
    "lines.linewidth": 1.3,
    "path.simplify": True,
}


@contextmanager
def drawing() -> Iterator[None]:
    """The look of all plots, for the time that one is drawn; nothing of the user's settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


class Numbered:
    """Turns figures into SVG; identifiers differ between the figures of a page."""

    def __init__(self) -> None:
        """Starts at figure 1."""
        self._numbers = count(1)
        self._shared = Shared()

    def figure(self, drawn: Figure, caption: str) -> str:
        """An HTML figure with its number and caption."""
        number = next(self._numbers)
        return (
            f"<figure>{inline(drawn, f'f{number}', caption, self._shared)}"
            f"<figcaption><b>Figure {number}.</b> {escape(caption)}</figcaption></figure>"
        )

    def picture(self, svg: bytes, caption: str) -> str:
        """A picture that a run drew, apart from the page: with colours of its own, no scripts."""
        number = next(self._numbers)
        data = base64.b64encode(alone(svg.decode("utf-8", "replace")).encode("utf-8")).decode(
            "ascii"
        )
        return (
            f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(caption)}">'
            f"<figcaption><b>Figure {number}.</b> {escape(caption)}</figcaption></figure>"
        )

    def css(self) -> str:
        """The styles of all figures so far, for the page."""
        return self._shared.css()


def cut(text: str, width_in: float, *, bold: bool = False) -> str:
    """The text as far as the width has room for it; what is left out is in its middle.

    Names that begin alike mostly differ at their ends.
    """
    most = max(3, int(width_in / LETTER_IN / (1.1 if bold else 1.0)))
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def new_figure(height_in: float) -> Figure:
    """An empty figure of the page's width."""
    figure = Figure(figsize=(WIDTH_IN, height_in))
    FigureCanvasSVG(figure)
    return figure


def inches(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes placed in inches from the figure's left and top edges."""
    total_width, total_height = (float(length) for length in figure.get_size_inches())
    bottom = total_height - top - height
    return figure.add_axes(
        (left / total_width, bottom / total_height, width / total_width, height / total_height)
    )


def inline(figure: Figure, prefix: str, label: str, shared: Shared) -> str:
    """The figure as an SVG element: no header, no date, identifiers with a prefix.

    Its styles are classes of `shared`, and its hatches those of the page's first figure with them.
    """
    buffer = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue().decode("utf-8")
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = svg.replace("'DejaVu Sans'", FAMILY)
    for colour, variable in PAGE_COLOURS.items():
        svg = svg.replace(colour, variable)
    svg = shared.shorten(svg, prefix)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


FORMATS = (".svg", ".png", ".pdf")
"""What a figure can be written as."""


def save(drawn: Figure, path: Path, *, tight: bool = False) -> None:
    """Writes the figure; an SVG has neither a date nor names that differ from run to run.

    `tight` fits the picture to what is drawn, also what stands on its edge.
    """
    metadata = {"Date": None} if path.suffix == ".svg" else None
    box = "tight" if tight else None
    with mpl.rc_context({"svg.hashsalt": "sumrate"}):
        drawn.savefig(path, dpi=200, metadata=metadata, bbox_inches=box)
