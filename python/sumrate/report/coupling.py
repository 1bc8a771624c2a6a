"""How much of a shared bottleneck coupled subflows take from plain TCPs: figure and table.

Run: python -m sumrate.report.coupling out/lab/rfc6356 --figure FILE.svg --summary FILE.md
"""

import argparse
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.intervals import half_width
from sumrate.report.lab.canvas import (
    FORMATS,
    WIDTH_IN,
    Label,
    drawing,
    finding,
    label_ends,
    save,
)
from sumrate.report.lab.palette import INK, RULE, SHADE, STYLES
from sumrate.report.lab.result import Result, RunError, read_result

SHARED = re.compile(r"shared-(\d+)-(\d+)")
"""Condition: subflows, TCPs beside."""
METRIC = "bottleneck_share"
CONTROL = "sumrate_reno"
LOOKS = {"sumrate_lia": STYLES[0], "sumrate_olia": STYLES[1], "sumrate_balia": STYLES[4],
         CONTROL: STYLES[2]}  # fmt: skip
TOP = 0.8
"""Of the axis, where no mean is above it."""


@dataclass(frozen=True)
class Band:
    """A mean and its 95 % confidence interval over `n` repetitions; no interval for one."""

    mean: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Band":
        """Student's interval: repetitions are independent, their spread is not known."""
        n, mean, half = len(values), statistics.fmean(values), half_width(values) or 0.0
        return cls(mean, mean - half, mean + half, n)

    def words(self) -> str:
        """For a table."""
        if self.n < 2:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


Shares = Mapping[int, Mapping[str, Mapping[int, Band]]]
"""By TCPs beside, algorithm and subflows."""


def shares(result: Result, scheme: str = "mptcp") -> Shares:
    """The scheme's share of the shared bottleneck.

    Args:
        result: what `sumrate-lab run rfc6356` left, or what is kept of it.
        scheme: whose subflows.

    Raises:
        RunError: there is no such share in it.

    """
    values: dict[tuple[int, str, int], list[float]] = defaultdict(list)
    columns = ("condition", "congestion_control", "value")
    rows = result.values.filter(metric=METRIC, scheme=scheme).select(columns).iter_rows()
    for condition, congestion_control, value in rows:
        if place := SHARED.fullmatch(condition):
            subflows, others = int(place[1]), int(place[2])
            values[others, congestion_control, subflows].append(value)
    if not values:
        raise RunError(result.path, f"has no {METRIC} of {scheme} in a condition shared-N-M")
    found: dict[int, dict[str, dict[int, Band]]] = defaultdict(lambda: defaultdict(dict))
    for (others, algorithm, subflows), measured in sorted(values.items()):
        found[others][algorithm][subflows] = Band.of(measured)
    return found


def short(algorithm: str) -> str:
    """The algorithm's name for people."""
    return "uncoupled" if algorithm == CONTROL else algorithm.removeprefix("sumrate_").upper()


def ordered(found: Shares) -> list[str]:
    """The algorithms, the control last."""
    names = dict.fromkeys(name for panel in found.values() for name in panel)
    return sorted(names, key=lambda name: (name == CONTROL, name))


def figure(found: Shares) -> Figure:
    """A panel for each number of TCPs beside: share against subflows, above the fair share shaded.

    Whiskers are the 95 % confidence intervals.
    """
    columns = min(2, len(found))
    rows = -(-len(found) // columns)
    with drawing():
        drawn = Figure(figsize=(WIDTH_IN, 0.4 + 2.0 * rows), layout="constrained")
        finding(
            drawn,
            sentence(found),
            "Shaded: more than the share of one plain TCP. Whiskers: 95 % confidence interval.",
        )
        panels = drawn.subplots(rows, columns, sharey=True, squeeze=False)
        for axis in panels.ravel()[len(found) :]:
            axis.set_axis_off()
        used = list(zip(panels.ravel(), sorted(found.items()), strict=False))
        highest = max(
            band.mean for one in found.values() for b in one.values() for band in b.values()
        )
        top = max(TOP, highest + 0.05)
        for axis, (others, panel) in used:
            _panel(axis, others, panel, top)
        for axis in panels[:, 0]:
            axis.set_ylabel("share of the bottleneck")
        for axis in panels[-1]:
            axis.set_xlabel("subflows")
        drawn.draw_without_rendering()
        for axis, (_, panel) in used:
            label_ends(axis, _ends(panel))
    return drawn


def sentence(found: Shares) -> str:
    """Shares of the most subflows against the fewest TCPs, coupled and uncoupled."""
    others = min(found)
    panel = found[others]
    most = max(n for bands in panel.values() for n in bands)
    coupled = [b[most].mean for name, b in panel.items() if name != CONTROL and most in b]
    free = panel.get(CONTROL, {}).get(most)
    against = f"Against {others} plain TCPs" if others > 1 else "Against one plain TCP"
    parts = []
    if coupled:
        low, high = f"{min(coupled):.2f}", f"{max(coupled):.2f}"
        span = low if low == high else f"{low} to {high}"
        parts.append(f"{most} coupled subflows take {span} of the link")
    if free:
        parts.append(f"{'' if coupled else f'{most} '}uncoupled ones {free.mean:.2f}")
    return f"{against}, {', '.join(parts)}; fair is {1 / (1 + others):.2f}"


def _panel(axis: Axes, others: int, panel: Mapping[str, Mapping[int, Band]], top: float) -> None:
    fair = 1 / (1 + others)
    axis.axhspan(fair, top, color=SHADE, lw=0)
    axis.axhline(fair, color=INK, linewidth=0.8)
    places = ordered({others: panel})
    for name in places:
        bands, look = panel[name], LOOKS.get(name, STYLES[3])
        # Beside each other, so that no whisker hides another.
        beside = [n + 0.04 * (places.index(name) - (len(places) - 1) / 2) for n in bands]
        for at, band in zip(beside, bands.values(), strict=True):
            axis.plot([at, at], [max(band.low, 0), min(band.high, top)], color=look.line, lw=0.8)
        axis.plot(
            beside, [band.mean for band in bands.values()], color=look.line,
            marker=look.marker, linestyle=look.dash, markersize=4.5,
        )  # fmt: skip
    axis.set_title(f"against {others} plain TCP{'s' if others > 1 else ''}", loc="left")
    axis.set_xticks(sorted({n for bands in panel.values() for n in bands}))
    axis.set_ylim(0, top)
    axis.grid(axis="y", color=RULE)


def _ends(panel: Mapping[str, Mapping[int, Band]]) -> list[Label]:
    """The names of the lines at their last points."""
    return [
        Label(max(bands) + 0.1, bands[max(bands)].mean, short(name),
              LOOKS.get(name, STYLES[3]).text)
        for name, bands in panel.items()
    ]  # fmt: skip


def summary(found: Shares) -> str:
    """The shares as a table in Markdown."""
    names = ordered(found)
    lines = [
        "| competing TCPs | subflows | one TCP's share | " + " | ".join(map(short, names)) + " |",
        "|---|---|---|" + "---|" * len(names),
    ]
    for others, panel in sorted(found.items()):
        for subflows in sorted({n for bands in panel.values() for n in bands}):
            cells = [
                panel[name][subflows].words() if subflows in panel.get(name, {}) else "-"
                for name in names
            ]
            lines.append(
                f"| {others} | {subflows} | {1 / (1 + others):.2f} | " + " | ".join(cells) + " |"
            )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.coupling",
        description="How much of a shared bottleneck coupled subflows take from plain TCPs.",
        epilog="Example: python -m sumrate.report.coupling out/lab/rfc6356 --figure shares.svg",
    )
    parser.add_argument(
        "results", type=Path, help="out/lab/rfc6356 of a run, or the kept results/rfc6356.parquet"
    )
    parser.add_argument("--scheme", default="mptcp", help="whose subflows [default: mptcp]")
    parser.add_argument("--figure", type=Path, help="write the figure here (svg, png or pdf)")
    parser.add_argument("--summary", type=Path, help="write the table here (Markdown)")
    given = parser.parse_args(arguments)
    if given.figure and given.figure.suffix not in FORMATS:
        parser.error(f"--figure {given.figure}: a name that ends in {', '.join(FORMATS)}")
    try:
        found = shares(read_result(given.results), given.scheme)
    except RunError as error:
        print(f"coupling: {error}", file=sys.stderr)
        return 2
    if given.figure:
        save(figure(found), given.figure)
    if given.summary:
        given.summary.write_text(summary(found), encoding="utf-8")
    else:
        print(summary(found), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
