"""Lines over a size that a family of schemes differs in, such as windows of 16K to 16M."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.report.lab.canvas import (
    LETTER_IN,
    WIDTH_IN,
    Label,
    drawing,
    inches,
    label_ends,
    new_figure,
)
from sumrate.report.lab.palette import INK, STYLES, Style
from sumrate.report.lab.read import Scheme, Setting
from sumrate.report.lab.summary import JUDGED, Spread, Summary
from sumrate.report.lab.words import Column

NAME = re.compile(r"(?P<stem>.+)-(?P<size>(?P<number>\d+)(?P<unit>[KMG]))")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LEAST = 3
"""Sizes that make a line."""
METRICS = ("sum_ratio", "goodput_mbps")
"""The first of them that was measured is drawn."""
COLUMNS, PANEL_IN, TITLE_IN, LEFT_IN, NAMES_IN, BOTTOM_IN = 2, 2.2, 0.3, 0.6, 1.1, 0.5


@dataclass(frozen=True)
class Family:
    """Schemes that differ in a size alone."""

    title: str
    """Of all, with N in place of the size."""
    sizes: Mapping[int, Scheme]
    """By bytes, ascending."""
    names: Mapping[int, str]
    """The sizes as they are written."""


def families(schemes: Sequence[Scheme]) -> list[Family]:
    """Families of at least three sizes, from schemes named STEM-SIZE."""
    found: dict[str, list[tuple[int, str, Scheme]]] = {}
    for scheme in schemes:
        if match := NAME.fullmatch(scheme.name):
            size = int(match["number"]) * UNITS[match["unit"]]
            found.setdefault(match["stem"], []).append((size, match["size"], scheme))
    return [
        Family(
            title=members[0][2].title.replace(members[0][1], "N"),
            sizes={size: scheme for size, _, scheme in sorted(members, key=lambda m: m[0])},
            names={size: name for size, name, _ in members},
        )
        for members in found.values()
        if len(members) >= LEAST
    ]


def sweep_figures(summary: Summary, settings: Sequence[Setting]) -> Iterator[tuple[Figure, str]]:
    """One figure with a panel for each condition, and the heading of what it shows."""
    found = families(summary.schemes)
    columns = [c for name in METRICS for c in summary.columns if c.metric == name][:1]
    for column in columns if found else []:
        with drawing():
            yield _figure(summary, settings, found, column), column.heading


def _figure(
    summary: Summary,
    settings: Sequence[Setting],
    found: Sequence[Family],
    column: Column,
) -> Figure:
    across = min(COLUMNS, len(settings))
    rows = -(-len(settings) // across)
    figure = new_figure(rows * (TITLE_IN + PANEL_IN + BOTTOM_IN))
    width = (WIDTH_IN - (LEFT_IN + NAMES_IN) * across) / across
    for place, setting in enumerate(settings):
        row, nth = divmod(place, across)
        top = row * (TITLE_IN + PANEL_IN + BOTTOM_IN) + TITLE_IN
        left = LEFT_IN + nth * (width + LEFT_IN + NAMES_IN)
        axes = inches(figure, left, top, width, PANEL_IN)
        axes.set_title(summary.condition_title(setting), loc="left")
        names = _panel(axes, summary, setting, found, column)
        _sizes(axes, found, width)
        label_ends(axes, names)
    return figure


def _panel(
    axes: Axes,
    summary: Summary,
    setting: Setting,
    found: Sequence[Family],
    column: Column,
) -> list[Label]:
    """Draws the lines and returns their names, each for its end."""
    last = max(size for family in found for size in family.sizes)
    names = []
    for place, family in enumerate(found, start=1):
        look = STYLES[place % len(STYLES)]
        points = {
            size: spread
            for size, scheme in family.sizes.items()
            if (spread := summary.spread(column.metric, setting, scheme.name))
        }
        if not points:
            continue
        _line(axes, points, column, look)
        end = points[max(points)].median * column.factor
        names.append(Label(last, end, _wrapped(family.title), look.text))
    judged = next((s for s in summary.schemes if s.name == JUDGED), None)
    spread = summary.spread(column.metric, setting, JUDGED)
    if judged and spread:
        level = spread.median * column.factor
        axes.axhline(level, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
        names.append(Label(last, level, _wrapped(judged.title), INK))
    axes.set_ylim(bottom=0)
    axes.grid(visible=True)
    axes.set_ylabel(column.heading)
    return names


def _wrapped(title: str) -> str:
    return textwrap.fill(title, int(NAMES_IN / LETTER_IN))


def _sizes(axes: Axes, found: Sequence[Family], width_in: float) -> None:
    """The scale of sizes, with as many of them written as fit."""
    names = {size: name for family in found for size, name in family.names.items()}
    axes.set_xscale("log", base=2)
    shown = sorted(names)
    step = -(-len(shown) // max(2, int(width_in / (LETTER_IN * 6))))
    axes.set_xticks(shown[::step], [names[size] for size in shown[::step]])
    axes.minorticks_off()
    axes.set_xlabel("N, bytes")


def _line(axes: Axes, points: Mapping[int, Spread], column: Column, look: Style) -> None:
    medians = [spread.median * column.factor for spread in points.values()]
    ranges = [
        [(s.median - s.low) * column.factor for s in points.values()],
        [(s.high - s.median) * column.factor for s in points.values()],
    ]
    axes.errorbar(
        list(points), medians, yerr=ranges, color=look.line, linestyle=look.dash,
        marker=look.marker, markersize=5, markeredgecolor=INK, markeredgewidth=0.5, capsize=2.5,
        elinewidth=0.9,
    )  # fmt: skip
