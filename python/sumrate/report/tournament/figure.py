"""Where the default wins, ties and loses: a map for each group, and how every scheduler stands."""

from collections.abc import Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sumrate.report.lab.canvas import WIDTH_IN, drawing
from sumrate.report.lab.palette import INK, PAPER, RULE
from sumrate.report.tournament.maps import LINES, Grid, grid
from sumrate.report.tournament.table import DEFAULT, GROUPS, TIE, Condition, Standing, standing

BOUNDS = (-1.0, -0.1, -0.05, -TIE, TIE, 0.1, 10.0)
"""Of the default's goodput over the best other's, less 1. Between the middle ones it is a tie."""
COLOURS = ("#8c3b00", "#e07b1f", "#fbcf99", "#e6e9ec", "#7db8de", "#00598c")
BOUND_WORDS = (
    "over 10 % less",
    "5 to 10 %",
    "2 to 5 %",
    "a tie",
    "2 to 10 % more",
    "over 10 % more",
)
DARK = (0, 5)
"""Colours on which letters are white."""
CODES = {
    "just-in-time": "JT",
    "two-ended": "TE",
    "minrtt": "MR",
    "blest": "BL",
    "ecf": "EC",
    "daps": "DA",
    "otias": "OT",
    "lrf": "LR",
    "musher": "MU",
    "round-robin": "RR",
    "redundant": "RE",
}
SMALL_PT = 7.5
CELL_IN = 0.178
"""Height of a row."""
LEFT_IN, RIGHT_IN, GAP_IN = 0.92, 0.08, 0.13
HEAD_IN, BETWEEN_IN = 0.72, 0.64
"""Above the first map, and for the words between two lines of maps."""
HEADS_IN = 0.3
"""Above the standings: their columns' names."""
GROUP_HEADS = {
    "rate-rtt": "rates,\nRTTs",
    "loss": "loss",
    "buffer": "buffer",
    "outage": "outages",
    "short": "short",
    "trace": "traces",
}


def code(scheduler: str) -> str:
    """Two letters for a cell."""
    return CODES.get(scheduler, scheduler[:2].upper())


def advantage(condition: Condition) -> float:
    """The default's goodput over the best other's, less 1; median of the draws'."""
    return median(condition.ratios(DEFAULT, condition.best_but(DEFAULT))) - 1


def figure(conditions: Sequence[Condition]) -> Figure:
    """Maps of where the default wins, group by group, and the standings of all below.

    Only the standings where the table lacks the default or all others.
    """
    schedulers = list(conditions[0].goodput_mbps)
    lines = _lines(conditions) if DEFAULT in schedulers and len(schedulers) > 1 else []
    heights = [CELL_IN * max(len(g.rows) for g in line) for line in lines]
    heights.append(CELL_IN * len(schedulers))
    total = HEAD_IN + sum(heights) + BETWEEN_IN * len(lines) + HEADS_IN + 0.1
    with drawing():
        drawn = Figure(figsize=(WIDTH_IN, total))
        if lines:
            _legend(drawn, total)
        top = total - HEAD_IN
        for line, height in zip(lines, heights, strict=False):
            _line(drawn, line, top)
            top -= height + BETWEEN_IN
        _standings(drawn, conditions, top - HEADS_IN)
    return drawn


def _lines(conditions: Sequence[Condition]) -> list[list[Grid]]:
    """The maps that have a cell, in lines that have a map."""
    filled = [[grid(drawn, conditions) for drawn in line] for line in LINES]
    return [kept for line in filled if (kept := [g for g in line if g.cells])]


def _axes(drawn: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches; `top` is above the figure's lower edge."""
    across, total = drawn.get_size_inches()
    place = (left / across, (top - height) / total, width / across, height / total)
    axis = drawn.add_axes(place)
    axis.tick_params(length=0, pad=2, labelsize=SMALL_PT)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return axis


def _line(drawn: Figure, line: Sequence[Grid], top: float) -> None:
    """The maps of one line side by side; rows are named where they are not those of the left."""
    named = [n == 0 or line[n].rows != line[n - 1].rows for n in range(len(line))]
    room = [LEFT_IN if n == 0 else GAP_IN + 0.66 * name for n, name in enumerate(named)]
    columns = sum(len(g.columns) for g in line)
    width = (WIDTH_IN - RIGHT_IN - sum(room)) / columns
    left = 0.0
    for filled, before, name in zip(line, room, named, strict=True):
        left += before
        size = width * len(filled.columns), CELL_IN * len(filled.rows)
        axis = _axes(drawn, left, top, *size)
        _map(axis, filled)
        if name:
            axis.set_yticks([n + 0.5 for n in range(len(filled.rows))], filled.rows)
            axis.set_ylabel(filled.drawn.down.label, fontsize=SMALL_PT)
        else:
            axis.set_yticks([])
        left += size[0]


def _map(axis: Axes, filled: Grid) -> None:
    """Cells by how far the default is ahead, with who is best where it is not."""
    rows, columns = len(filled.rows), len(filled.columns)
    ahead = {place: advantage(condition) for place, condition in filled.cells.items()}
    norm = BoundaryNorm(BOUNDS, len(COLOURS))
    values = [[ahead.get((r, c), float("nan")) for c in range(columns)] for r in range(rows)]
    axis.pcolormesh(
        values, cmap=ListedColormap(COLOURS), norm=norm, edgecolors=PAPER, linewidth=1.2
    )
    axis.set_ylim(rows, 0)
    for (row, column), value in ahead.items():
        if value < -TIE:
            axis.annotate(
                _winner(filled.cells[row, column]),
                (column + 0.5, row + 0.54),
                ha="center",
                va="center",
                size=SMALL_PT,
                color=PAPER if int(norm(value)) in DARK else INK,
            )
    axis.set_xticks([n + 0.5 for n in range(columns)], filled.columns)
    axis.set_xlabel(filled.drawn.across.label, fontsize=SMALL_PT, labelpad=2)
    axis.set_title(filled.drawn.title, loc="left", pad=4, fontsize=8.5)


def _winner(condition: Condition) -> str:
    """Who is best; in parentheses where the default is ahead of it in some draws."""
    best = condition.best_but(DEFAULT)
    return f"({code(best)})" if condition.undecided(DEFAULT, best) else code(best)


def _legend(drawn: Figure, total: float) -> None:
    """What colours and letters mean, above the maps."""
    axis = _axes(drawn, LEFT_IN, total - 0.24, WIDTH_IN - LEFT_IN - RIGHT_IN, 0.14)
    axis.set_axis_off()
    axis.set(xlim=(0, WIDTH_IN - LEFT_IN - RIGHT_IN), ylim=(0, 1))
    axis.annotate(
        f"Goodput of {DEFAULT} against the best other scheduler's; letters: who carries more",
        (0, 1.35),
        weight="bold",
        size=8.5,
        annotation_clip=False,
    )
    places = (0.0, 1.25, 2.15, 3.0, 3.65, 4.95)
    for place, colour, word in zip(places, COLOURS, BOUND_WORDS, strict=True):
        axis.add_patch(Rectangle((place, 0), 0.22, 1, color=colour))
        axis.annotate(word, (place + 0.28, 0.45), va="center", size=SMALL_PT)


def _standings(drawn: Figure, conditions: Sequence[Condition], top: float) -> None:
    """A row for each scheduler: its ties, over all and by group, its worst, and its waits."""
    schedulers = list(conditions[0].goodput_mbps)
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    parts = [conditions, *([c for c in conditions if c.group == g] for g in groups)]
    found = [[standing(part, name) for part in parts] for name in schedulers]
    shares = [_shares(own) for own in found]
    left = LEFT_IN + 0.3
    axis = _axes(drawn, left, top, WIDTH_IN - RIGHT_IN - left, CELL_IN * len(schedulers))
    axis.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1.6, edgecolors=PAPER, linewidth=1.2)
    axis.set_ylim(len(schedulers), 0)
    for row, own in enumerate(shares):
        for column, share in enumerate(own):
            axis.annotate(
                f"{share:.0%}",
                (column + 0.5, row + 0.54),
                ha="center",
                va="center",
                size=SMALL_PT,
            )
    axis.set_yticks(
        [n + 0.5 for n in range(len(schedulers))],
        [f"{name}  {code(name)}" for name in schedulers],
    )
    heads = [
        "all",
        *(GROUP_HEADS[g] for g in groups),
        "worst,\nof best",
        "stall",
        "in-order\ndelay",
    ]
    axis.set_xticks([n + 0.5 for n in range(len(heads))], heads)
    axis.xaxis.set_ticks_position("top")
    axis.tick_params(length=0)
    for bound in (len(parts), len(parts) + 1):
        axis.axvline(bound, color=RULE, linewidth=1)
    _spans(axis, len(parts))


def _shares(own: Sequence[Standing]) -> list[float]:
    """The columns of a scheduler: over all first, then by group."""
    whole = own[0]
    return [*(part.ties for part in own), whole.worst, whole.stall, whole.in_order]


def _spans(axis: Axes, ties: int) -> None:
    """What the columns together are of."""
    across = ties + 3
    for at, words in (
        (0.0, "Ties for the best goodput (within 2 %)"),
        ((ties + 1) / across, "Best or second in"),
    ):
        axis.annotate(
            words,
            (at, 1.0),
            xytext=(0, 26),
            textcoords="offset points",
            xycoords="axes fraction",
            weight="bold",
            size=8.5,
        )
