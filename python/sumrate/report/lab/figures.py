"""Figures of a result: medians with ranges, lines over a size, shares, samples."""

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from sumrate.report.lab.canvas import LETTER_IN, WIDTH_IN, Label, cut, inches, label_ends
from sumrate.report.lab.palette import INK, SHADE, STYLES, Style
from sumrate.report.lab.result import Result, Setting, Spread
from sumrate.report.lab.words import heading, intervals, scaled
from sumrate.verdict.metrics import Metric
from sumrate.verdict.model import JUDGED

NAMES_IN, GAP_IN, BOTTOM_IN = 1.75, 0.22, 0.78
DOT_IN = 0.075
"""Height of a scheme within the row of a condition."""
PANELS = 3
MOST_FIGURES = 2
"""Of one set of metrics; further settings are in the tables only."""
MOST_IN = 9.5
"""Of one figure, so that it fits a page."""
FAR = 12.0
"""Times the median of the values above 0: larger ones are cut, else the others were slivers."""
FEW = 0.25
"""Largest share of values above 0 that are cut."""
WIDE = 50.0
"""Times beyond which the axis of a time is logarithmic."""
SIZE = re.compile(r"(?P<stem>.+)-(?P<size>(?P<number>\d+)(?P<unit>[KMG]))")
BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9}
LEAST_SIZES = 3
"""Sizes that make a line."""
BIN_PERCENT = 12
"""Width of the bins of a link's share in downloads (figure 4.6b of the thesis)."""
MOST_POINTS = 120
"""Of a distribution's line."""


class Row(NamedTuple):
    """A row of a dot plot: its words, the metric and setting of each panel."""

    words: str
    cells: tuple[tuple[str, Setting], ...]


def axis_limit(highs: Sequence[float]) -> float:
    """Where the axis ends: at the largest value, or before a few that are far beyond the others."""
    above = [high for high in highs if high > 0] or [0.0]
    near = [high for high in highs if high <= FAR * median(above)]
    few = len(highs) - len(near) <= max(1.0, FEW * len(above))
    return max(near if few else highs)


def dot_rows(result: Result, metrics: Sequence[Metric], settings: Sequence[Setting]) -> list[Row]:
    """A row for each setting in which one of the metrics was measured."""
    names = {metric.name for metric in metrics}
    measured = {setting for name, setting, _ in result.spreads if name in names}
    return [
        Row(result.setting_title(s), tuple((metric.name, s) for metric in metrics))
        for s in settings
        if s in measured
    ]


def dot_figures(
    result: Result, metrics: Sequence[Metric], rows: Sequence[Row], looks: Mapping[str, Style]
) -> Iterator[Figure]:
    """Medians as dots, ranges as lines; a panel for each metric, a row for each setting."""
    places = [cell for row in rows for cell in row.cells]
    shown = [
        scheme.name
        for scheme in result.schemes
        if any((*place, scheme.name) in result.spreads for place in places)
    ]
    row_in = max(2.4, len(shown) + 1.2) * DOT_IN
    fitting = max(1, int(MOST_IN / row_in))
    for first in range(0, min(len(rows), MOST_FIGURES * fitting), fitting):
        yield _dots(result, metrics, rows[first : first + fitting], shown, looks)


def _dots(
    result: Result,
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    shown: Sequence[str],
    looks: Mapping[str, Style],
) -> Figure:
    row_in = max(2.4, len(shown) + 1.2) * DOT_IN
    titles = {scheme.name: scheme.title for scheme in result.schemes}
    letters = min(36, max(len(titles[name]) for name in shown))
    across = max(1, int(WIDTH_IN / (0.4 + letters * LETTER_IN)))
    top_in = 0.19 * -(-len(shown) // across) + 0.1
    figure = Figure(figsize=(WIDTH_IN, top_in + row_in * len(rows) + BOTTOM_IN))
    width = (WIDTH_IN - NAMES_IN - 0.12 - GAP_IN * (len(metrics) - 1)) / len(metrics)
    for place, metric in enumerate(metrics):
        left = NAMES_IN + place * (width + GAP_IN)
        axes = inches(figure, left, top_in, width, row_in * len(rows))
        cells = [row.cells[place] for row in rows]
        _panel(axes, result, metric, cells, [(name, looks[name]) for name in shown])
        labels = [_wrapped(row.words, NAMES_IN, row_in) for row in rows] if not place else []
        for at, words in enumerate(labels):
            axes.annotate(words, (0, at), (-5, 0), ("axes fraction", "data"), "offset points",
                          ha="right", va="center", annotation_clip=False)  # fmt: skip
    handles = [_handle(cut(titles[name], 2.7), looks[name], line=False) for name in shown]
    figure.legend(handles=handles, loc="upper left", ncols=across, frameon=False, borderaxespad=0.1,
                  handlelength=1.0, handletextpad=0.4, columnspacing=1.2)  # fmt: skip
    return figure


def _panel(
    axes: Axes,
    result: Result,
    metric: Metric,
    cells: Sequence[tuple[str, Setting]],
    shown: Sequence[tuple[str, Style]],
) -> None:
    factor, _ = scaled(metric.unit)
    found = [
        (row - 0.5 + (nth + 1.1) / (len(shown) + 1.2), look, spread)
        for row, (name, setting) in enumerate(cells)
        for nth, (scheme, look) in enumerate(shown)
        if (spread := result.spreads.get((name, setting, scheme)))
    ]
    left, right = _limits(axes, metric, [spread for *_, spread in found])
    for look in dict.fromkeys(look for _, look in shown):
        own = [(at, spread) for at, other, spread in found if other is look]
        at = [place for place, _ in own]
        ends = [end * factor for _, s in own for end in (s.low, s.high, math.nan)]
        axes.plot(ends, [y for y in at for _ in range(3)], color=look.line, lw=1.1)
        axes.plot([min(s.median * factor, right) for _, s in own], at, look.marker,
                  color=look.line, ms=3.8, mew=0, ls="none", clip_on=False)  # fmt: skip
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_xlim(left, right)
    borders = [at + 0.5 for at in range(len(cells) - 1)]
    axes.plot([left, right, math.nan] * len(borders), [at for at in borders for _ in range(3)],
              color=SHADE, lw=0.8, zorder=0.5)  # fmt: skip
    axes.set_yticks([])
    axes.patch.set_visible(False)
    axes.tick_params(axis="x", which="both", length=0)
    axes.grid(visible=True, axis="x")
    way = {"more": "\nmore is better", "less": "\nless is better"}.get(metric.better, "")
    axes.set_xlabel("\n".join(textwrap.wrap(heading(metric), 27)) + way)


def _limits(axes: Axes, metric: Metric, spreads: Sequence[Spread]) -> tuple[float, float]:
    """Ends of the axis, which is logarithmic for times that differ much."""
    factor, _ = scaled(metric.unit)
    lows, highs = [s.low * factor for s in spreads], [s.high * factor for s in spreads]
    medians = [s.median for s in spreads] or [1.0]
    wide = max(medians) > WIDE * min(medians)
    if metric.unit in ("ms", "s") and min(lows, default=0.0) > 0 and wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        return min(lows) / 1.3, max(highs) * 1.3
    axes.locator_params(axis="x", nbins=3)
    right = axis_limit(highs or [1.0])
    left = min(0.0, min(lows, default=0.0))
    if metric.name == "sum_ratio" or "_over_" in metric.name:
        right = max(right, 1.0)
        axes.axvline(1.0, color=INK, lw=0.8, ls=(0, (4, 2)))
    return left * 1.03, (right or 1.0) * 1.04 if right > left else left + 1.0


def _wrapped(words: str, width_in: float, height_in: float) -> str:
    """The words in as many lines as fit; a part in their middle is left out if they do not."""
    lines = max(1, int(height_in / 0.145))
    short = cut(words, width_in * (lines - 0.25 * (lines > 1)))
    return textwrap.fill(short, int(width_in / LETTER_IN), max_lines=lines, placeholder="…")


def _handle(title: str, look: Style, *, line: bool = True) -> Line2D:
    """A key of a legend."""
    marker, dash = ("", look.dash) if line else (look.marker, "none")
    return Line2D([], [], color=look.line, marker=marker, ms=3.8, mew=0, ls=dash, label=title)


def thumbnail(
    result: Result, metric: Metric, rows: Sequence[Row], looks: Mapping[str, Style]
) -> Figure:
    """The first panel without words."""
    figure = Figure(figsize=(1.9, 1.15))
    axes = figure.add_axes((0.03, 0.04, 0.94, 0.92))
    cells = [row.cells[0] for row in rows[:3]]
    shown = [
        (scheme.name, looks[scheme.name])
        for scheme in result.schemes
        if any((*cell, scheme.name) in result.spreads for cell in cells)
    ]
    _panel(axes, result, metric, cells, shown)
    axes.set(xlabel="", xticks=[], yticks=[])
    axes.spines["bottom"].set_visible(False)
    axes.minorticks_off()
    axes.grid(visible=False)
    for line in axes.lines:
        if line.get_marker() == "None":
            line.remove()  # ranges and borders are not seen at this size
    return figure


def duration_rows(result: Result, settings: Sequence[Setting]) -> dict[str, list[Row]]:
    """Rows of timed downloads and page loads by what was timed; a row for each size or page."""
    kinds = {
        "time of a download": r"time_([\d.]+)([KMG]B)_ms",
        "load event of a page, nothing cached": r"onload_(\w+)_(h\d)_cold_ms",
        "load event of a page that was loaded before": r"onload_(\w+)_(h\d)_warm_ms",
    }
    found = {}
    for kind, pattern in kinds.items():
        parts = [(m, metric.name) for metric in result.metrics
                 if (m := re.fullmatch(pattern, metric.name))]  # fmt: skip
        parts.sort(key=lambda part: float(part[0][1]) * BYTES[part[0][2]]
                   if part[0][2] in BYTES else part[0][2])  # fmt: skip
        found[kind] = [
            Row(f"{match[1]} {match[2]}, {result.setting_title(setting)}", ((name, setting),))
            for setting in settings
            for match, name in parts
            if any((name, setting, scheme.name) in result.spreads for scheme in result.schemes)
        ]
    return {kind: rows for kind, rows in found.items() if rows}


def families(result: Result) -> dict[str, dict[int, str]]:
    """Schemes named STEM-SIZE of at least three sizes: by title, with N for the size, then bytes.

    Values are the schemes' names.
    """
    found: dict[str, list[tuple[int, str, str]]] = {}
    for scheme in result.schemes:
        if match := SIZE.fullmatch(scheme.name):
            size = int(int(match["number"]) * BYTES[match["unit"]])
            title = scheme.title.replace(match["size"], "N")
            found.setdefault(match["stem"], []).append((size, scheme.name, title))
    return {
        members[0][2]: {size: name for size, name, _ in sorted(members)}
        for members in found.values()
        if len(members) >= LEAST_SIZES
    }


def sweep_figure(result: Result, metric: Metric, settings: Sequence[Setting]) -> Figure:
    """A panel for each setting: a line over the size for each family, and Sumrate's level."""
    across = min(2, len(settings))
    left_in, names_in, row_in = 0.6, 1.1, 2.9
    figure = Figure(figsize=(WIDTH_IN, -(-len(settings) // across) * row_in))
    width = (WIDTH_IN - (left_in + names_in) * across) / across
    for place, setting in enumerate(settings):
        row, nth = divmod(place, across)
        left = left_in + nth * (width + left_in + names_in)
        axes = inches(figure, left, row * row_in + 0.3, width, row_in - 0.9)
        axes.set_title(cut(result.setting_title(setting), width + 0.8, bold=True), loc="left")
        axes.set_xscale("log", base=2)
        labels = _sweep(axes, result, metric, setting)
        axes.minorticks_off()
        axes.set(xlabel="N, bytes", ylabel=heading(metric))
        axes.set_ylim(bottom=0)
        axes.grid(visible=True)
        label_ends(axes, labels)
    return figure


def _sweep(axes: Axes, result: Result, metric: Metric, setting: Setting) -> list[Label]:
    """Draws the lines and returns their names, each for its end."""
    factor, _ = scaled(metric.unit)
    labels = []
    known = families(result)
    last = max(size for sizes in known.values() for size in sizes)
    for look, (title, sizes) in zip(STYLES[1:], known.items(), strict=False):
        found = {size: result.spreads.get((metric.name, setting, name))
                 for size, name in sizes.items()}  # fmt: skip
        points = {size: spread for size, spread in found.items() if spread}
        if not points:
            continue
        lows, highs = ([s[end] * factor for s in points.values()] for end in (1, 2))
        axes.vlines(list(points), lows, highs, color=look.line, lw=0.9)
        medians = [spread.median * factor for spread in points.values()]
        axes.plot(list(points), medians, color=look.line, ls=look.dash, marker=look.marker, ms=4.5)
        labels.append(Label(last, medians[-1], textwrap.fill(title, 15), look.text))
        written = {size: name.rpartition("-")[2] for size, name in sizes.items()}
        axes.set_xticks(list(written)[::2], list(written.values())[::2])
    if spread := result.spreads.get((metric.name, setting, JUDGED)):
        axes.axhline(spread.median * factor, color=INK, lw=1.1, ls=(0, (4, 2)))
        labels.append(Label(last, spread.median * factor, "Sumrate", INK))
    return labels


def split_figure(
    result: Result, link: str, settings: Sequence[Setting], looks: Mapping[str, Style]
) -> Figure:
    """Histograms of a link's share of each download; a row for each setting."""
    links = {entry["name"] for entry in result.manifest.links}
    shares: dict[tuple[Setting, str], list[float]] = {}
    for value in result.values.filter(metric=f"{link}_share").iter_rows(named=True):
        setting = Setting(*(value[key] for key in Setting._fields))
        if setting in settings and value["scheme"] not in links:
            shares.setdefault((setting, value["scheme"]), []).append(value["value"])
    names = [scheme for scheme in result.schemes if any(n == scheme.name for _, n in shares)]
    drawn = [setting for setting in settings if any(s == setting for s, _ in shares)]
    edges = [*range(0, 97, BIN_PERCENT), 100]
    left_in, row_in = 1.5, 1.35
    width = (WIDTH_IN - left_in - 0.1) / len(names)
    figure = Figure(figsize=(WIDTH_IN, row_in * len(drawn) + 0.75))
    for row, setting in enumerate(drawn):
        for nth, scheme in enumerate(names):
            found = [share * 100 for share in shares.get((setting, scheme.name), ())]
            axes = inches(figure, left_in + nth * width, 0.3 + row * row_in, width - 0.15, 1.1)
            axes.hist(found, edges, weights=[100 / max(1, len(found))] * len(found),
                      color=looks[scheme.name].line)  # fmt: skip
            axes.set(xlim=(0, 100), ylim=(0, 100))
            axes.grid(visible=True, axis="y")
            axes.tick_params(length=0, labelbottom=row + 1 == len(drawn), labelleft=nth == 0)
            if row == 0:
                axes.set_title(cut(scheme.title, width - 0.1, bold=True))
            if nth == 0:
                words = _wrapped(result.setting_title(setting), 1.3, 0.5)
                axes.set_ylabel(f"{words}\n% of downloads")
    figure.supxlabel(f"% by {result.link_title(link)}", fontsize="medium")
    return figure


def distribution_figure(
    result: Result, settings: Sequence[Setting], looks: Mapping[str, Style]
) -> Figure:
    """Distributions of the 100 ms samples; a panel for each setting, all with one scale."""
    found = result.distributions
    shown = [n for n in result.schemes if any((s, n.name) in found for s in settings)]
    rows = -(-len(settings) // 2)
    figure = Figure(figsize=(WIDTH_IN, 2.5 * rows + 0.7), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False, sharex=True, sharey=True).ravel()
    highest = max(samples[len(samples) * 19 // 20] for (s, _), samples in found.items()
                  if s in settings)  # fmt: skip
    for axes, setting in zip(grid, settings, strict=False):
        axes.set_title(cut(result.setting_title(setting), 3.2, bold=True), loc="left")
        axes.grid(visible=True)
        for scheme in shown:
            samples, look = found.get((setting, scheme.name), []), looks[scheme.name]
            step = max(1, len(samples) // MOST_POINTS)
            shares = [(nth + 1) / len(samples) for nth in range(len(samples))]
            axes.plot(samples[::step], shares[::step], color=look.line, ls=look.dash)
    for axes in grid[len(settings) :]:
        axes.set_axis_off()
    grid[0].set(xlim=(0, highest * 1.03 or 1.0), ylim=(0, 1))
    figure.supxlabel("at most this goodput, Mbit/s", fontsize="medium")
    figure.supylabel("share of 100 ms samples", fontsize="medium")
    figure.legend(handles=[_handle(cut(n.title, 2.4), looks[n.name]) for n in shown],
                  loc="outside upper left", ncols=3, frameon=False, handlelength=3.0)  # fmt: skip
    return figure


def dark_spans(result: Result, setting: Setting) -> list[tuple[str, float, float]]:
    """Which link is dark, and from when to when."""
    return [
        (f"{result.link_title(name)} {words}", start, end)
        for name, link in result.links(setting.condition).items()
        for start, end, words in intervals(link.get("blackouts"))
    ]


def time_figure(result: Result, settings: Sequence[Setting], looks: Mapping[str, Style]) -> Figure:
    """Goodput against time: a strip for each scheme, a column for each setting, one scale."""
    drawn = result.median_runs
    schemes = [n for n in result.schemes if any((s, n.name) in drawn for s in settings)]
    figure = Figure(figsize=(WIDTH_IN, 0.85 * len(schemes) + 0.9), layout="constrained")
    grid = figure.subplots(len(schemes), len(settings), squeeze=False, sharex=True, sharey=True)
    for line, scheme in zip(grid, schemes, strict=True):
        for axes, setting in zip(line, settings, strict=True):
            _strip(axes, result, setting, scheme.name, looks[scheme.name])
        title = cut(scheme.title, WIDTH_IN / len(settings) - 0.5, bold=True)
        line[0].annotate(title, (0, 1), xycoords="axes fraction", xytext=(0, 2),
                         textcoords="offset points", fontweight="bold")  # fmt: skip
    for axes, setting in zip(grid[0], settings, strict=True):
        dark = dict.fromkeys(words for words, *_ in dark_spans(result, setting))
        words = _wrapped(result.setting_title(setting), WIDTH_IN / len(settings), 0.3)
        note = [f"hatched: {', '.join(dark)}"] if dark else []
        axes.set_title("\n".join([words, *note]) + "\n", loc="left")
    grid[0][0].set(xlim=(0, None), ylim=(0, None))
    figure.supxlabel("seconds since the first byte", fontsize="medium")
    figure.supylabel("goodput, Mbit/s", fontsize="medium")
    return figure


def _strip(axes: Axes, result: Result, setting: Setting, scheme: str, look: Style) -> None:
    curves = result.curves(setting, scheme)
    axes.grid(visible=True)
    for _, start, end in dark_spans(result, setting):
        axes.axvspan(start, end, facecolor=SHADE, edgecolor=INK, hatch="///", lw=0.4, zorder=0.5)
    if not curves:
        axes.text(0.5, 0.5, "no samples", transform=axes.transAxes, ha="center", va="center")
        return
    for dash, (link, points) in zip(((), (4, 1.2), (1, 1), (6, 1, 1, 1), (8, 2)), curves.items(),
                                    strict=False):  # fmt: skip
        if link and len(curves) < LEAST_SIZES:  # one subflow is the whole
            continue
        times, rates = [at for at, _ in points], [rate for _, rate in points]
        if not link:
            axes.fill_between(times, rates, color=look.colour, alpha=0.3, lw=0)
        axes.plot(times, rates, color=INK, lw=0.6 if link else 0.9, ls=(0, dash))
        if link:
            axes.annotate(result.link_title(link), points[-1], xytext=(-2, 2), ha="right",
                          textcoords="offset points", size=7.5)  # fmt: skip
