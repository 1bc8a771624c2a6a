"""Distributions of 100 ms samples, and goodput against time of the median repetition."""

import math
import textwrap
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sumrate.report.lab.canvas import LETTER_IN, WIDTH_IN, cut, drawing, inches, new_figure
from sumrate.report.lab.palette import INK, RULE, SHADE, Style
from sumrate.report.lab.read import RunKey, Scheme, Setting
from sumrate.report.lab.summary import Summary
from sumrate.report.lab.words import intervals

LEFT_IN, RIGHT_IN, GAP_IN, BOTTOM_IN = 0.68, 0.12, 0.28, 0.48
CDF_COLUMNS, CDF_ROWS, CDF_IN, CDF_TITLE_IN = 2, 3, 2.05, 0.8
MOST_POINTS = 250
TIME_COLUMNS, TIME_IN, NAME_IN, LINE_IN = 3, 0.62, 0.24, 0.16
MOST_STRIPS = 10


def cdf_figures(
    summary: Summary, settings: Sequence[Setting], looks: dict[str, Style]
) -> Iterator[Figure]:
    """One panel for each condition, six in one figure, all with the same scale."""
    drawn = [s for s in settings if any(summary.samples(s, n.name) for n in summary.schemes)]
    for first in range(0, len(drawn), CDF_COLUMNS * CDF_ROWS):
        with drawing():
            yield _cdfs(summary, drawn[first : first + CDF_COLUMNS * CDF_ROWS], looks)


def _cdfs(summary: Summary, settings: Sequence[Setting], looks: dict[str, Style]) -> Figure:
    schemes = [n for n in summary.schemes if any(summary.samples(s, n.name) for s in settings)]
    rows = -(-len(settings) // CDF_COLUMNS)
    letters = min(40, max(len(scheme.title) for scheme in schemes))
    per_line = int(WIDTH_IN / (0.75 + letters * LETTER_IN))
    legend_in = 0.2 * -(-len(schemes) // per_line) + 0.12
    figure = new_figure(legend_in + rows * (CDF_IN + CDF_TITLE_IN) + 0.14)
    highest = max(_nearly_all(summary.samples(s, n.name)) for s in settings for n in schemes
                  if summary.samples(s, n.name))  # fmt: skip
    width = (WIDTH_IN - LEFT_IN - RIGHT_IN - GAP_IN) / CDF_COLUMNS
    for place, setting in enumerate(settings):
        row, column = divmod(place, CDF_COLUMNS)
        top = legend_in + row * (CDF_IN + CDF_TITLE_IN) + 0.4
        axes = inches(figure, LEFT_IN + column * (width + GAP_IN), top, width, CDF_IN)
        axes.set_title(_wrapped(summary.condition_title(setting), width), loc="left")
        for index, scheme in enumerate(schemes):
            _cdf(axes, summary.samples(setting, scheme.name), looks[scheme.name], index)
        axes.set(xlim=(0, (highest or 1.0) * 1.03), ylim=(0, 1))
        axes.grid(visible=True)
        axes.locator_params(axis="x", nbins=6)
        if column == 0:
            axes.set_ylabel("share of 100 ms samples")
        else:
            axes.set_yticklabels([])
        if place + CDF_COLUMNS >= len(settings):
            axes.set_xlabel("at most this goodput, Mbit/s")
    figure.legend(
        handles=[_handle(scheme, looks[scheme.name]) for scheme in schemes],
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=per_line,
        frameon=False,
        handlelength=3.4,
        borderaxespad=0.2,
    )
    return figure


def _nearly_all(samples: Sequence[float]) -> float:
    """What 19 of 20 ranked samples do not exceed.

    What a transport holds back and then delivers at once would take most of the scale.
    """
    return samples[min(len(samples) - 1, len(samples) * 19 // 20)]


def _cdf(axes: Axes, samples: Sequence[float], look: Style, index: int) -> None:
    if not samples:
        return
    places = sorted({round(i * (len(samples) - 1) / MOST_POINTS) for i in range(MOST_POINTS + 1)})
    axes.plot(
        [samples[0], *(samples[place] for place in places)],
        [0.0, *((place + 1) / len(samples) for place in places)],
        color=look.line,
        markerfacecolor=look.colour,
        linestyle=look.dash,
        marker=look.marker,
        markersize=4.2,
        markeredgecolor=INK,
        markeredgewidth=0.5,
        markevery=(len(places) * (2 * index + 1) // 40, max(1, len(places) // 4)),
    )


def _handle(scheme: Scheme, look: Style) -> Line2D:
    return Line2D([], [], color=look.line, linestyle=look.dash, marker=look.marker,
                  markerfacecolor=look.colour,
                  markersize=4.2, markeredgecolor=INK, markeredgewidth=0.5,
                  label=cut(scheme.title, 3.0))  # fmt: skip


def time_figures(
    summary: Summary, settings: Sequence[Setting], looks: dict[str, Style]
) -> Iterator[Figure]:
    """A strip for each scheme, a column for each condition, all with the same scale."""
    drawn = [s for s in settings if any(summary.median_run(s, n.name) for n in summary.schemes)]
    schemes = [n for n in summary.schemes if any(summary.median_run(s, n.name) for s in drawn)]
    for first in range(0, len(drawn), TIME_COLUMNS):
        for lowest in range(0, len(schemes), MOST_STRIPS):
            with drawing():
                yield _strips(
                    summary,
                    drawn[first : first + TIME_COLUMNS],
                    schemes[lowest : lowest + MOST_STRIPS],
                    looks,
                )


def _strips(
    summary: Summary,
    settings: Sequence[Setting],
    schemes: Sequence[Scheme],
    looks: dict[str, Style],
) -> Figure:
    gap = 0.28
    width = (WIDTH_IN - LEFT_IN - RIGHT_IN - gap * (len(settings) - 1)) / len(settings)
    names = [_wrapped(summary.condition_title(setting), width) for setting in settings]
    span, highest = _limits(summary, settings, schemes)
    dark = [dark_spans(summary, setting, span) for setting in settings]
    title_lines = max(name.count("\n") + 1 for name in names)
    titles_in = 0.04 + LINE_IN * (title_lines + any(dark))
    height = titles_in + len(schemes) * (TIME_IN + NAME_IN) + BOTTOM_IN
    figure = new_figure(height)
    for column, setting in enumerate(settings):
        for row, scheme in enumerate(schemes):
            top = titles_in + row * (TIME_IN + NAME_IN) + NAME_IN
            axes = inches(figure, LEFT_IN + column * (width + gap), top, width, TIME_IN)
            axes.set(xlim=(0, span), ylim=(0, highest))
            axes.locator_params(axis="y", nbins=3)
            axes.locator_params(axis="x", nbins=max(3, round(width * 2)))
            axes.grid(visible=True)
            _shade(axes, dark[column])
            _strip(axes, summary, setting, scheme, looks[scheme.name])
            if column == 0:
                axes.annotate(scheme.title, (0, 1), xycoords="axes fraction", xytext=(0, 3),
                              textcoords="offset points", fontweight="bold")  # fmt: skip
            else:
                axes.set_yticklabels([])
            if row < len(schemes) - 1:
                axes.set_xticklabels([])
            else:
                axes.set_xlabel("seconds since the first byte")
        left = (LEFT_IN + column * (width + gap)) / WIDTH_IN
        figure.text(left, 1.0, names[column], va="top", fontweight="bold", linespacing=1.05)
        if dark[column]:
            below = 1 - (LINE_IN * (names[column].count("\n") + 1) + 0.02) / height
            words = dict.fromkeys(what for what, _, _ in dark[column])
            figure.text(left, below, f"hatched: {', '.join(words)}", va="top")
    figure.text(0.008, 0.5, "goodput, Mbit/s", rotation=90, va="center")
    return figure


def _wrapped(title: str, width_in: float) -> str:
    return textwrap.fill(title, int(width_in / LETTER_IN / 1.1), max_lines=2, placeholder=" …")


def _limits(
    summary: Summary, settings: Sequence[Setting], schemes: Sequence[Scheme]
) -> tuple[float, float]:
    keys = [summary.median_run(setting, n.name) for setting in settings for n in schemes]
    points = [point for key in keys if key for point in summary.run.series[key]]
    return (
        max((at for at, _ in points), default=1.0) + 0.05,
        max((value for _, value in points), default=1.0) * 1.08 or 1.0,
    )


def _strip(axes: Axes, summary: Summary, setting: Setting, scheme: Scheme, look: Style) -> None:
    key = summary.median_run(setting, scheme.name)
    if key is None:
        reason = "missing" if scheme.missing else "no samples"
        axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center")
        return
    points = summary.run.series[key]
    times, rates = [at for at, _ in points], [rate for _, rate in points]
    around = [times[0], *times, times[-1]], [0.0, *rates, 0.0]
    axes.fill(*around, color=look.colour, alpha=0.3, linewidth=0)
    axes.plot(times, rates, color=INK, linewidth=0.9)
    _subflows(axes, summary, key)


def _subflows(axes: Axes, summary: Summary, key: RunKey) -> None:
    """A line for each link that a capture knows, named at its end."""
    dashes = ((0, (4, 1.2)), (0, (1, 1)), (0, (6, 1, 1, 1)))
    for index, (link, points) in enumerate(summary.run.subflows.get(key, {}).items()):
        if len(summary.run.subflows[key]) < 2 or not points:
            return
        times, rates = [at for at, _ in points], [rate for _, rate in points]
        axes.plot(times, rates, color=INK, linewidth=0.6, linestyle=dashes[index % len(dashes)])
        axes.annotate(summary.link_title(link), (times[-1], rates[-1]), xytext=(-2, 2),
                      textcoords="offset points", ha="right", fontsize=7.5)  # fmt: skip


def dark_spans(
    summary: Summary, setting: Setting, span: float = math.inf
) -> list[tuple[str, float, float]]:
    """Which link is dark, and from when to when."""
    return [
        (f"{summary.link_title(link)} {words}", start, min(end, span))
        for condition in summary.run.conditions
        if condition.name == setting.condition
        for link, entry in condition.links.items()
        for start, end, words in intervals(entry.get("blackouts"))
        if start < span
    ]


def _shade(axes: Axes, dark: Sequence[tuple[str, float, float]]) -> None:
    for _, start, end in dark:
        axes.axvspan(start, end, facecolor=SHADE, edgecolor=INK, hatch="///", hatchcolor=RULE,
                     linewidth=0.5, linestyle=(0, (2, 2)), zorder=0.5)  # fmt: skip
