"""Bars or dots of medians with whiskers from the least to the largest repetition."""

from collections.abc import Iterator, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.report.lab.canvas import LETTER_IN, WIDTH_IN, cut, drawing, inches, new_figure
from sumrate.report.lab.palette import INK, PAPER, Style
from sumrate.report.lab.read import Scheme, Setting
from sumrate.report.lab.summary import Spread, Summary
from sumrate.report.lab.words import Column

ROW_IN, HEAD_IN, BOTTOM_IN = 0.19, 0.27, 0.6
MOST_NAMES_IN, GAP_IN, RIGHT_IN = 3.0, 0.36, 0.1
NUMBER_IN = 0.5
"""Room right of the longest whisker for the number."""
MOST_ROWS = 45
"""Of one figure, so that it fits a page."""
LEFTWARDS = "\N{LEFTWARDS ARROW}"
FAR = 12.0
"""Times the median of those above 0: larger values are cut, else the others would be slivers."""
FEW = 0.25
"""Of those above 0: more than one and than this share of them are no exceptions, so none is cut."""


def bar_columns(
    summary: Summary, metrics: Sequence[str], settings: Sequence[Setting]
) -> list[Column]:
    """Those of the metrics that have a value in these settings, in the order given."""
    columns = [
        column
        for column in summary.columns
        if column.metric in metrics
        and any(summary.spread(column.metric, s, n.name) for s in settings for n in summary.schemes)
    ]
    # Zero everywhere is said by the tables.
    told = [
        column
        for column in columns
        if any(
            spread.high or spread.low
            for (metric, setting, _), spread in summary.spreads.items()
            if metric == column.metric and setting in settings
        )
    ]
    columns = told or columns
    if any(column.metric == "ideal_ratio" for column in columns):
        # Links that go dark back off when they are alone: their sum is no whole.
        columns = [column for column in columns if column.metric != "sum_ratio"]
    return sorted(columns, key=lambda column: list(metrics).index(column.metric))


def bar_figures(
    summary: Summary,
    metrics: Sequence[str],
    settings: Sequence[Setting],
    looks: dict[str, Style],
) -> Iterator[Figure]:
    """One figure, or several where the conditions do not fit one page; side by side the metrics."""
    columns = bar_columns(summary, metrics, settings)
    settings = [
        s
        for s in settings
        if any(summary.spread(c.metric, s, n.name) for c in columns for n in summary.schemes)
    ]
    if not columns:
        return
    shown = _schemes(summary, [column.metric for column in columns], settings)
    fitting = max(1, MOST_ROWS // (len(shown) + 1))
    fitting = -(-len(settings) // -(-len(settings) // fitting))
    for first in range(0, len(settings), fitting):
        with drawing():
            yield _figure(summary, columns, settings[first : first + fitting], shown, looks)


def _schemes(
    summary: Summary,
    metrics: Sequence[str],
    settings: Sequence[Setting],
    among: Sequence[Scheme] = (),
) -> list[Scheme]:
    """Schemes that have a value, and those that are missing, which is shown."""
    return [
        scheme
        for scheme in among or summary.schemes
        if scheme.missing
        or any(summary.spread(metric, s, scheme.name) for metric in metrics for s in settings)
    ]


def _figure(
    summary: Summary,
    columns: Sequence[Column],
    settings: Sequence[Setting],
    schemes: Sequence[Scheme],
    looks: dict[str, Style],
) -> Figure:
    metrics = [column.metric for column in columns]
    rows = {setting: _schemes(summary, metrics, [setting], schemes) for setting in settings}
    body = len(settings) * HEAD_IN + sum(map(len, rows.values())) * ROW_IN + 0.06
    top_in = 0.26 if any(column.metric == "sum_ratio" for column in columns) else 0.04
    figure = new_figure(top_in + body + BOTTOM_IN)
    letters = max(len(scheme.title) for scheme in schemes)
    names_in = min(MOST_NAMES_IN, max(1.0, 0.12 + letters * LETTER_IN))
    room = WIDTH_IN - names_in - RIGHT_IN - GAP_IN * (len(columns) - 1)
    width = room / len(columns)
    for place, column in enumerate(columns):
        axes = inches(figure, names_in + place * (width + GAP_IN), top_in, width, body)
        cap = _scale(axes, summary, column, settings, width)
        axes.set_ylim(body, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        top = 0.0
        for setting in settings:
            if place == 0:
                title = cut(summary.condition_title(setting), names_in + width, bold=True)
                _head(axes, top + HEAD_IN * 0.6, title, names_in)
            top += HEAD_IN
            # The axis stands beside bars only, not in the headings.
            axes.plot([0, 0], [top, top + ROW_IN * len(rows[setting])], color=INK, lw=0.8)
            for scheme in rows[setting]:
                middle = top + ROW_IN / 2
                if place == 0:
                    _name(axes, middle, scheme.title)
                spread = summary.spread(column.metric, setting, scheme.name)
                if spread:
                    _bar(axes, column, spread, looks[scheme.name], (middle, cap))
                else:
                    _say(axes, 0, middle, "missing" if scheme.missing else "-")
                top += ROW_IN
    return figure


def whiskered(
    summary: Summary, metrics: Sequence[str], settings: Sequence[Setting]
) -> tuple[bool, bool]:
    """Whether any bar of these has a whisker, and whether any has none."""
    spans = [
        spread.high > spread.low
        for (metric, setting, _), spread in summary.spreads.items()
        if metric in metrics and setting in settings
    ]
    return any(spans), not all(spans)


def axis_limit(highs: Sequence[float]) -> float:
    """Where the axis ends: at the largest value, or before a few that are far beyond the others."""
    above = [high for high in highs if high > 0] or [0.0]
    near = [high for high in highs if high <= FAR * median(above)]
    few = len(highs) - len(near) <= max(1.0, FEW * len(above))
    return max(near if few else highs)


def _scale(
    axes: Axes, summary: Summary, column: Column, settings: Sequence[Setting], width_in: float
) -> float:
    """Sets the axis; says where bars are cut."""
    shown = [
        spread
        for (metric, setting, _), spread in summary.spreads.items()
        if metric == column.metric and setting in settings
    ]
    highest = axis_limit([spread.high * column.factor for spread in shown] or [1.0])
    lowest = min((spread.low * column.factor for spread in shown), default=0.0)
    if lowest < 0:
        highest = max(highest, 0.0)
        axes.axvline(0.0, color=INK, linewidth=0.8, zorder=0.9)
    if column.metric == "sum_ratio":
        highest = max(highest, 1.0)
    if column.metric == "sum_ratio" or column.ratio_to_another:
        axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), zorder=0.9)
    left = min(0.0, lowest) * 1.03
    right = left + ((highest or 1.0) - left) * width_in / (width_in - NUMBER_IN)
    axes.set_xlim(left, right)
    way = f"\n{LEFTWARDS} less is better" if column.better < 0 else ""
    axes.set_xlabel(column.heading + way)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(visible=True, axis="x")
    if column.metric == "sum_ratio":
        axes.annotate(
            "1: the whole sum",
            (1.0, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
        )
    return highest


def _head(axes: Axes, at: float, text: str, names_in: float) -> None:
    axes.annotate(
        text,
        (0, at),
        xycoords=("axes fraction", "data"),
        xytext=(2 - names_in * 72, 0),
        textcoords="offset points",
        va="center",
        fontweight="bold",
        annotation_clip=False,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
    )


def _name(axes: Axes, at: float, text: str) -> None:
    axes.annotate(
        cut(text, MOST_NAMES_IN - 0.12),
        (0, at),
        xycoords=("axes fraction", "data"),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        annotation_clip=False,
    )


def _bar(
    axes: Axes, column: Column, spread: Spread, look: Style, place: tuple[float, float]
) -> None:
    """`place`: where it stands, and where bars are cut."""
    at, cap = place
    median_, low, high = (x * column.factor for x in (spread.median, spread.low, spread.high))
    if column.ratio_to_another:
        axes.plot([low, min(high, cap)], [at, at], color=look.line, lw=1.6, solid_capstyle="butt")
        axes.plot([min(median_, cap)], [at], look.marker, color=look.line, ms=5.5)
    else:
        _filled(axes, at, (min(low, cap), min(median_, cap), min(high, cap)), look, cut=high > cap)
    text = column.number(spread.median)
    if high > cap:
        # Beyond the axis: the bar, or only its whisker, which is written.
        span = "" if low == high else f" ({column.number(spread.low)}-{column.number(spread.high)})"
        text = f"» {text}{span if median_ > cap else ''}"
    _say(axes, max(min(high, cap), 0.0), at, text, inside=median_ > cap)


def _filled(
    axes: Axes, at: float, values: tuple[float, float, float], look: Style, *, cut: bool
) -> None:
    """A bar to the median with a whisker; the end of one that is cut has no tick."""
    low, middle, high = values
    axes.barh(
        at,
        middle,
        height=ROW_IN * 0.74,
        facecolor=look.colour,
        edgecolor=INK,
        linewidth=0.6,
        hatch=look.hatch or None,
        hatchcolor=PAPER,
    )
    if high > low:
        axes.plot([low, high], [at, at], color=PAPER, linewidth=2.6, solid_capstyle="butt")
        axes.plot([low, high], [at, at], color=INK, linewidth=1.1, solid_capstyle="butt")
        for edge in (low,) if cut else (low, high):
            tick = ROW_IN * 0.24
            axes.plot([edge, edge], [at - tick, at + tick], color=INK, linewidth=1.1)


def _say(axes: Axes, x: float, at: float, text: str, *, inside: bool = False) -> None:
    axes.annotate(
        text,
        (x, at),
        xytext=(-4 if inside else 4, -0.5),
        textcoords="offset points",
        ha="right" if inside else "left",
        va="center",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.3},
    )
