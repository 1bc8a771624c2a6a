"""How often each scheduler carries as much as the best, over all conditions and by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.report.lab.canvas import NOTE_PT, WIDTH_IN, drawing, finding
from sumrate.report.lab.palette import INK, OTHER, PAPER, STYLES
from sumrate.report.tournament.table import DEFAULT, GROUPS, TIE, Condition, standing

WORDS = {
    "rate-rtt": "rates,\nRTTs",
    "loss": "loss",
    "buffer": "small\nbuffers",
    "outage": "outages",
    "short": "short\ntransfers",
    "trace": "60 GHz\ntraces",
}
ROW_IN = 0.25
DEEP = 0.55
"""Words on a darker cell are light."""


@dataclass(frozen=True)
class Row:
    """A scheduler's shares of ties over all conditions and by group, and its worst goodput."""

    scheduler: str
    ties: float
    by_group: Mapping[str, float]
    worst: float
    """Of the best's."""


def rows(conditions: Sequence[Condition]) -> list[Row]:
    """The schedulers, those that tie most often first."""
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    found = []
    for name in conditions[0].goodput_mbps:
        whole = standing(conditions, name)
        parts = {g: standing([c for c in conditions if c.group == g], name).ties for g in groups}
        found.append(Row(name, whole.ties, parts, whole.worst))
    return sorted(found, key=lambda row: (-row.ties, -row.worst))


def sentence(found: Sequence[Row], count: int) -> str:
    """How often the default ties and how much it loses at worst, beside the best of the others."""
    own = next((row for row in found if row.scheduler == DEFAULT), found[0])
    others = [row for row in found if row is not own]
    many = f"{count} conditions" if count > 1 else "1 condition"
    said = (
        f"{own.scheduler} carries as much as the best in {own.ties:.0%} of {many}, "
        f"at worst {own.worst:.0%} of it"
    )
    if others:
        said += f"; {others[0].scheduler} in {others[0].ties:.0%}, at worst {others[0].worst:.0%}"
    return said


def figure(conditions: Sequence[Condition]) -> Figure:
    """A row for each scheduler: where it ties, and its worst condition."""
    return draw(rows(conditions), len(conditions))


def draw(found: Sequence[Row], count: int) -> Figure:
    """The picture of these rows, which are over `count` conditions."""
    with drawing():
        drawn = Figure(figsize=(WIDTH_IN, 0.75 + ROW_IN * len(found)), layout="constrained")
        finding(
            drawn,
            sentence(found, count),
            f"Left: share of conditions in which a scheduler is within {TIE:.0%} of the best "
            "goodput. Right: its worst condition.",
        )
        groups = list(found[0].by_group)
        cells, worst = drawn.subplots(1, 2, sharey=True, width_ratios=(1 + len(groups), 2.2))
        _cells(cells, found, groups)
        _worst(worst, found)
    return drawn


def _cells(axes: Axes, found: Sequence[Row], groups: Sequence[str]) -> None:
    shares = [[row.ties, *(row.by_group[group] for group in groups)] for row in found]
    axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1.25, edgecolors=PAPER, linewidth=1.5)
    for place, own in enumerate(shares):
        for column, share in enumerate(own):
            axes.annotate(
                f"{share:.0%}", (column + 0.5, place + 0.54), ha="center", va="center",
                size=NOTE_PT, weight="normal" if column else "bold",
                color="#fefefe" if share > DEEP else "#1d2328",
            )  # fmt: skip
    heads = ["all", *(WORDS[group] for group in groups)]
    axes.set_xticks([n + 0.5 for n in range(len(heads))], heads)
    axes.xaxis.set_ticks_position("top")
    axes.set_yticks([n + 0.5 for n in range(len(found))], [row.scheduler for row in found])
    for label, row in zip(axes.get_yticklabels(), found, strict=True):
        label.set_fontweight("bold" if row.scheduler == DEFAULT else "normal")
    axes.tick_params(length=0)
    axes.set_ylim(len(found), 0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _worst(axes: Axes, found: Sequence[Row]) -> None:
    for place, row in enumerate(found):
        own = row.scheduler == DEFAULT
        axes.barh(place + 0.5, row.worst, 0.55, color=STYLES[0].colour if own else OTHER)
        axes.annotate(
            f"{row.worst:.0%}", (row.worst, place + 0.5), xytext=(3, 0), va="center",
            textcoords="offset points", size=NOTE_PT, color=STYLES[0].text if own else INK,
        )  # fmt: skip
    axes.set(xlim=(0, 1.1))
    axes.set_xticks([0, 0.5, 1], ["0", "half", "the best"])
    axes.xaxis.set_ticks_position("top")
    axes.set_title("goodput in its worst condition", size=NOTE_PT, weight="normal")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
