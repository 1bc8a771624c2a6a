"""From a matplotlib figure to inline SVG that is the same on every machine and in every run."""

import base64
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from sumrate.report.lab.palette import AT_NIGHT, INK, PAGE_COLOURS, PAPER, RULE, SOFT
from sumrate.report.lab.slim import Shared, alone

WIDTH_IN = 7.2
"""A plot fills an A4 page between its margins without being scaled."""
TEXT_PT = 9
TITLE_PT, NOTE_PT, LINE_PT = 10.5, 8, 10
"""The sentence above a picture, words beside lines, and the height of a line of those.

At 800 px of width, 8 pt are 12 px.
"""
TITLE_LETTERS, NOTE_LETTERS = 78, 115
"""Of a line of the page's width."""
LETTER_IN = 0.073
"""Room for one letter of the text's size."""
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
    "hatch.linewidth": 0.6,
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

    def figure(self, drawn: Figure, caption: str, shown: str = "") -> str:
        """An HTML figure with its number and caption, which begins with what it shows."""
        number = next(self._numbers)
        head = f"<b>Figure {number}. {escape(shown)}</b>"
        return (
            f"<figure>{inline(drawn, f'f{number}', caption, self._shared)}"
            f"<figcaption>{head} {escape(caption)}</figcaption></figure>"
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
        """The styles of all figures so far, for the page, and their colours by day and at night."""
        data = [(name, night) for name, night in AT_NIGHT.items() if name not in PAGE_COLOURS]
        day = "".join(f"{_variable(name)}: {name}; " for name, _ in data)
        dark = "".join(f"{_variable(name)}: {night}; " for name, night in data)
        return (
            f":root {{ {day}}}\n"
            f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
            f"{self._shared.css()}"
        )


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
    for colour in AT_NIGHT:
        svg = svg.replace(colour, PAGE_COLOURS.get(colour, f"var({_variable(colour)})"))
    svg = shared.shorten(svg, prefix)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


def _variable(colour: str) -> str:
    """The page's variable of a colour of data."""
    return f"--c{colour.removeprefix('#')}"


FORMATS = (".svg", ".png", ".pdf")
"""What a figure can be written as."""


def save(drawn: Figure, path: Path) -> None:
    """Writes a figure; an SVG follows the reader's light or dark system and has no date."""
    if path.suffix != ".svg":
        drawn.savefig(path, dpi=150)
        return
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "sumrate", "svg.fonttype": "none"}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    svg = alone(buffer.getvalue().decode("utf-8")).replace("'DejaVu Sans'", FAMILY)
    svg = re.sub(r"<metadata>.*?</metadata>\n?", "", svg, flags=re.DOTALL)
    path.write_text(re.sub("(<svg [^>]*>)", rf"\1<style>{_night(svg)}</style>", svg, count=1),
                    encoding="utf-8")  # fmt: skip


def _night(svg: str) -> str:
    """Rules that replace the picture's colours on a dark system; other programs skip them."""
    rules = []
    for light, dark in AT_NIGHT.items():
        for kind in ("fill", "stroke"):
            kept = [
                f"[{name}]"
                for name, text in (
                    (f'style*="{kind}: {light}"', f"{kind}: {light}"),
                    (f'{kind}="{light}"', f'{kind}="{light}"'),
                )
                if text in svg
            ]
            if kept:
                rules.append(f"{','.join(kept)}{{{kind}:{dark} !important}}")
    return f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}"


def finding(figure: Figure, sentence: str, below: str = "") -> None:
    """Writes what the picture shows above it, and what it is of in smaller letters.

    The figure grows by these lines; its layout must be `constrained`.
    """
    lines = wrap(sentence, TITLE_LETTERS)
    small = wrap(below, NOTE_LETTERS)
    width, height = figure.get_size_inches()
    room = 0.19 * len(lines) + 0.16 * len(small) + 0.1
    figure.set_size_inches(width, height + room)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, height / (height + room)))
    top = 1 - 0.04 / (height + room)
    figure.text(0.008, top, "\n".join(lines), va="top", weight="bold", size=TITLE_PT)
    if small:
        down = top - 0.19 * len(lines) / (height + room)
        figure.text(0.008, down, "\n".join(small), va="top", size=NOTE_PT, color=SOFT)


@dataclass(frozen=True)
class Label:
    """Words at the end of a line, in its colour."""

    x: float
    y: float
    text: str
    colour: str


def label_ends(axes: Axes, labels: Sequence[Label]) -> None:
    """Names lines at their right ends, moved apart where they would overlap.

    The axes must have their final limits and size: call this last.
    """
    per_point = 72 / axes.figure.dpi
    height = axes.get_window_extent().height * per_point
    ends = sorted(labels, key=lambda label: axes.transData.transform((label.x, label.y))[1])
    wanted = [
        float(axes.transData.transform((label.x, label.y))[1] - axes.get_window_extent().y0)
        * per_point
        for label in ends
    ]
    lines = [label.text.count("\n") + 1 for label in ends]
    for label, at, placed in zip(ends, wanted, spread_out(wanted, lines, height), strict=True):
        axes.annotate(
            label.text, (label.x, label.y), xytext=(5, placed - at), textcoords="offset points",
            va="center", ha="left", size=NOTE_PT, color=label.colour, weight="bold",
            linespacing=1.0, annotation_clip=False,
        )  # fmt: skip


def spread_out(wanted: Sequence[float], lines: Sequence[int], height: float) -> list[float]:
    """Ascending positions moved apart to the height of their lines, all within `height` points."""
    placed: list[float] = []
    for at, written in zip(wanted, lines, strict=True):
        half = LINE_PT * written / 2
        least = placed[-1] + half + LINE_PT * lines[len(placed) - 1] / 2 if placed else half
        placed.append(max(at, least))
    top = height + LINE_PT / 2
    for place in reversed(range(len(placed))):
        half = LINE_PT * lines[place] / 2
        placed[place] = min(placed[place], top - half)
        top = placed[place] - half
    return placed
