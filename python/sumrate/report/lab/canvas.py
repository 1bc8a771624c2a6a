"""The look of all figures, and SVG that is small and the same on every machine."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.report.lab.palette import AT_NIGHT, INK, PAPER, RULE, SOFT

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


def cut(text: str, width_in: float, *, bold: bool = False) -> str:
    """The text as far as the width has room for it; what is left out is in its middle.

    Names that begin alike mostly differ at their ends.
    """
    most = max(3, int(width_in / LETTER_IN / (1.1 if bold else 1.0)))
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def inches(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes placed in inches from the figure's left and top edges."""
    total_width, total_height = (float(length) for length in figure.get_size_inches())
    bottom = total_height - top - height
    return figure.add_axes(
        (left / total_width, bottom / total_height, width / total_width, height / total_height)
    )


NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
NEEDLESS = re.compile(
    r'<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>| transform="rotate\(-?0 [^"]*"'
    r'| xmlns:xlink="[^"]*"|(?<=<defs>)\s+|\s+(?=</defs>)',
    re.DOTALL,
)
STYLE = re.compile(r' style="([^"]*)"')
IDENTIFIER = re.compile(r' id="([^"]+)"')
REFERENCE = re.compile(r'(?<=href="#)[^"]+|(?<=url\(#)[^)]+')
GROUP = re.compile(r"<g\b([^>]*?)(/?)>|</g>")
EMPTY = re.compile(r"<defs>\s*</defs>|<defs/>")
INDENTED = re.compile(r"\n\s+")
POSITIONS = re.compile(r'(?<= [dxy]=")[^"]*|(?<=translate\()[^)]*')
DIGITS = re.compile(r"(\.\d)\d+")
ZERO = re.compile(r"\.0(?=\s|$)")
DEFINITION = re.compile(r'<defs>\s*<path id="(i\d+)"([^>]*)/>\s*</defs>\n?')
SHORT = re.compile(r"([:;]) ")
USUAL = re.compile(
    r"font-family: 'DejaVu Sans'; |; stroke-linejoin: miter|stroke-dashoffset: 0; "
    r"|stroke-dasharray: ; |; stroke-linecap: square"
)
"""Parts of styles that are said once for all, or change nothing that is seen."""
FORMATS = (".svg", ".png", ".pdf")
"""Endings of the files that a figure can be written to."""


def save(drawn: Figure, path: Path) -> None:
    """Writes a figure; an SVG follows the reader's light or dark system and has no date."""
    if path.suffix != ".svg":
        drawn.savefig(path, dpi=150)
        return
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "sumrate", "svg.fonttype": "none"}):
        drawn.savefig(buffer, format="svg", metadata=NO_METADATA)
    path.write_text(slim(buffer.getvalue()), encoding="utf-8")


def slim(svg: str) -> str:
    """The SVG of matplotlib with its styles as classes, short numbers and no unused names.

    It is a third as large and looks the same; classes have other colours on a dark system.
    """
    svg = NEEDLESS.sub("", svg[svg.index("<svg") :]).replace("xlink:href", "href")
    svg = POSITIONS.sub(_shortened, svg)
    names = {name: f"i{n}" for n, name in enumerate(dict.fromkeys(REFERENCE.findall(svg)), 1)}
    svg = REFERENCE.sub(lambda found: names[found[0]], svg)
    svg = IDENTIFIER.sub(lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    svg = INDENTED.sub("\n", EMPTY.sub("", _ungrouped(svg)))
    looks: dict[str, str] = {}
    svg = STYLE.sub(lambda found: f' class="{looks.setdefault(found[1], f"s{len(looks)}")}"', svg)
    svg = _shared(svg)
    rules = {name: SHORT.sub(r"\1", USUAL.sub("", style)) for style, name in looks.items()}
    day = "".join(f".{name}{{{style}}}" for name, style in rules.items())
    night = "".join(f".{name}{{{dark}}}" for name, style in rules.items() if (dark := _dark(style)))
    base = f"*{{stroke-linejoin:round}}text{{font-family:{FAMILY}}}"
    css = f"{base}{day}@media (prefers-color-scheme: dark){{{night}}}"
    return re.sub("(<svg [^>]*>)", rf"\1<style>{css}</style>", svg, count=1)


def _shared(svg: str) -> str:
    """Every marker and tick is defined once: matplotlib defines them anew for each line."""
    first: dict[str, str] = {}
    again: dict[str, str] = {}

    def definition(found: re.Match[str]) -> str:
        known = first.setdefault(found[2], found[1])
        again[found[1]] = known
        return found[0] if known == found[1] else ""

    svg = DEFINITION.sub(definition, svg)
    return REFERENCE.sub(lambda found: again.get(found[0], found[0]), svg)


def _dark(style: str) -> str:
    """The colours of a style on a dark system, where they are other ones."""
    parts = (part.partition(":") for part in style.split(";"))
    return ";".join(f"{key}:{AT_NIGHT[value]}" for key, _, value in parts if value in AT_NIGHT)


def _shortened(numbers: re.Match[str]) -> str:
    """Positions to a tenth of a point; after a line, the next needs no L."""
    text = ZERO.sub("", DIGITS.sub(r"\1", numbers[0]).replace("\n", "").strip())
    return text if "C" in text or "Q" in text else text.replace(" L ", " ")


def _ungrouped(svg: str) -> str:
    """Without the groups that change nothing about their content."""
    kept: list[bool] = []

    def tag(found: re.Match[str]) -> str:
        if found[0] == "</g>":
            return found[0] if kept.pop() else ""
        keep = bool(found[1].strip())
        if not found[2]:
            kept.append(keep)
        return found[0] if keep else ""

    return GROUP.sub(tag, svg)


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
