"""Figures of users' workloads: durations by file size or page, and which link brought the bytes."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sumrate.report.lab.canvas import (
    WIDTH_IN,
    Label,
    cut,
    drawing,
    inches,
    label_ends,
    new_figure,
)
from sumrate.report.lab.palette import INK, Style
from sumrate.report.lab.read import Scheme, Setting
from sumrate.report.lab.summary import Spread, Summary

LEFT_IN, RIGHT_IN, TITLE_IN, PANEL_IN, BOTTOM_IN = 0.8, 0.12, 0.34, 1.9, 0.42
NAMES_IN = 1.5
"""Right of the marks, for the schemes' names."""
SPREAD = 0.62
"""Share of a category's width over which the schemes are laid side by side."""
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
WORDS = {"h1": "HTTP/1.1", "h2": "HTTP/2"}
LOADED = "time from the start of a navigation to the load event"
BIN_PERCENT = 12
SHARE = re.compile(r"(\w+)_share_mode_percent")


@dataclass(frozen=True)
class Category:
    """A place on the horizontal axis: a metric, and how it is called there."""

    metric: str
    label: str


def file_sizes(summary: Summary) -> list[Category]:
    """The sizes of files whose downloads were timed, ascending."""
    found = []
    for column in summary.columns:
        if match := re.fullmatch(r"time_([\d.]+)([KMG]B)_ms", column.metric):
            size = float(match[1]) * UNITS[match[2]]
            found.append((size, Category(column.metric, f"{match[1]} {match[2]}")))
    return [category for _, category in sorted(found, key=lambda item: item[0])]


def page_loads(summary: Summary, state: str) -> list[Category]:
    """Pages whose load events were timed, cold or warm."""
    found = []
    for column in summary.columns:
        if match := re.fullmatch(rf"onload_(\w+)_(h\d)_{state}_ms", column.metric):
            category = Category(column.metric, f"{match[1]}\n{WORDS[match[2]]}")
            found.append((match[2], match[1], category))
    return [category for *_, category in sorted(found, key=lambda item: item[:2])]


def duration_figures(
    summary: Summary, settings: Sequence[Setting], looks: dict[str, Style]
) -> Iterator[tuple[Figure, str]]:
    """A panel for each condition: medians with the least and the largest, and what is shown."""
    for categories, said in (
        (file_sizes(summary), "time from the start of a download to its last byte"),
        (page_loads(summary, "cold"), f"{LOADED}, nothing cached and no connection open"),
        (page_loads(summary, "warm"), f"{LOADED}, of a page that was loaded before"),
    ):
        if categories:
            with drawing():
                yield _durations(summary, settings, looks, categories), said


def _shown(
    summary: Summary, settings: Sequence[Setting], categories: Sequence[Category]
) -> list[Scheme]:
    return [
        scheme
        for scheme in summary.schemes
        if any(summary.spread(c.metric, s, scheme.name) for c in categories for s in settings)
    ]


def _durations(
    summary: Summary,
    settings: Sequence[Setting],
    looks: dict[str, Style],
    categories: Sequence[Category],
) -> Figure:
    """A panel for each condition; schemes are named beside their last marks."""
    schemes = _shown(summary, settings, categories)
    lines = 1 + max(category.label.count("\n") for category in categories)
    height = PANEL_IN + TITLE_IN + 0.15 * lines + 0.1
    figure = new_figure(len(settings) * height + 0.1)
    for place, setting in enumerate(settings):
        width = WIDTH_IN - LEFT_IN - NAMES_IN
        axes = inches(figure, LEFT_IN, place * height + TITLE_IN, width, PANEL_IN)
        axes.set_title(summary.condition_title(setting), loc="left")
        names = []
        for index, scheme in enumerate(schemes):
            dodge = ((index + 0.5) / len(schemes) - 0.5) * SPREAD
            spreads = [summary.spread(c.metric, setting, scheme.name) for c in categories]
            _points(axes, spreads, looks[scheme.name], dodge)
            if last := next(filter(None, reversed(spreads)), None):
                title = cut(scheme.title, NAMES_IN - 0.1)
                names.append(Label(len(categories) - 0.5, last.median, title,
                                   looks[scheme.name].text))  # fmt: skip
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylabel("time, ms")
        axes.grid(visible=True, axis="y")
        axes.set_xlim(-0.5, len(categories) - 0.5)
        axes.set_xticks(range(len(categories)), [c.label for c in categories])
        for border in range(len(categories) - 1):
            axes.axvline(border + 0.5, color=INK, linewidth=0.3)
        label_ends(axes, names)
    return figure


def _points(axes: Axes, spreads: Sequence[Spread | None], look: Style, dodge: float) -> None:
    for place, spread in enumerate(spreads):
        if spread is None:
            continue
        at = place + dodge
        axes.plot([at, at], [spread.low, spread.high], color=look.line, linewidth=1.1,
                  marker="_", markersize=3.5)  # fmt: skip
        axes.plot(
            [at],
            [spread.median],
            marker=look.marker,
            markersize=5,
            markerfacecolor=look.colour,
            markeredgecolor=INK,
            markeredgewidth=0.5,
            linestyle="none",
        )


def split_figures(
    summary: Summary, settings: Sequence[Setting], looks: dict[str, Style]
) -> Iterator[tuple[Figure, str]]:
    """Histograms of one link's share of each download, and the link's title."""
    for column in summary.columns:
        if match := SHARE.fullmatch(column.metric):
            with drawing():
                figure = _split(summary, settings, looks, match[1])
            yield figure, summary.link_title(match[1])


def _split(
    summary: Summary, settings: Sequence[Setting], looks: dict[str, Style], link: str
) -> Figure:
    metric = f"{link}_share"
    values = {
        (setting, scheme.name): [
            measured.value
            for measured in summary.run.metrics
            if measured.metric == metric
            and measured.key.setting == setting
            and measured.key.scheme == scheme.name
        ]
        for setting in settings
        for scheme in summary.schemes
    }
    links = {name for condition in summary.run.conditions for name in condition.links}
    schemes = [
        scheme
        for scheme in summary.schemes
        if scheme.name not in links and any(values[s, scheme.name] for s in settings)
    ]
    drawn = [s for s in settings if any(values[s, n.name] for n in schemes)]
    height = PANEL_IN * 0.7 + TITLE_IN
    figure = new_figure(len(drawn) * height + BOTTOM_IN + 0.1)
    width = (WIDTH_IN - LEFT_IN - RIGHT_IN - 0.2 * (len(schemes) - 1)) / max(1, len(schemes))
    for row, setting in enumerate(drawn):
        for place, scheme in enumerate(schemes):
            left = LEFT_IN + place * (width + 0.2)
            axes = inches(figure, left, row * height + TITLE_IN, width, PANEL_IN * 0.7)
            _histogram(axes, values[setting, scheme.name], looks[scheme.name])
            axes.annotate(
                cut(scheme.title, width - 0.2),
                (0.97, 0.95),
                xycoords="axes fraction",
                ha="right",
                va="top",
            )
            if place:
                axes.set_yticklabels([])
            else:
                axes.set_ylabel("% of downloads")
                axes.set_title(summary.condition_title(setting), loc="left")
            if row + 1 < len(drawn):
                axes.set_xticklabels([])
            else:
                axes.set_xlabel(f"% by {cut(summary.link_title(link), width - 0.4)}")
    return figure


def _histogram(axes: Axes, shares: Sequence[float], look: Style) -> None:
    counts = Counter(min(int(share * 100 / BIN_PERCENT), 8) for share in shares)
    for place, count in counts.items():
        low = place * BIN_PERCENT
        axes.bar(
            low,
            count / len(shares) * 100,
            width=min(BIN_PERCENT, 100 - low),
            align="edge",
            facecolor=look.colour,
            edgecolor=INK,
            linewidth=0.6,
        )
    axes.set(xlim=(0, 100), ylim=(0, 100))
    axes.set_xticks([24, 48, 72])
    axes.grid(visible=True, axis="y")
