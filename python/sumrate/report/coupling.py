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
from sumrate.report.lab.canvas import FORMATS, WIDTH_IN, drawing, save
from sumrate.report.lab.palette import INK, RULE, styles
from sumrate.report.lab.read import Run, RunError, read_run

SHARED = re.compile(r"shared-(\d+)-(\d+)")
"""Condition: subflows, TCPs beside."""
METRIC = "bottleneck_share"
CONTROL = "sumrate_reno"


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


def shares(run: Run, scheme: str = "mptcp") -> Shares:
    """The scheme's share of the shared bottleneck.

    Args:
        run: what `sumrate-lab run rfc6356` left.
        scheme: whose subflows.

    Raises:
        RunError: there is no such share in it.

    """
    values: dict[tuple[int, str, int], list[float]] = defaultdict(list)
    for value in run.metrics:
        setting = value.key.setting
        place = SHARED.fullmatch(setting.condition)
        if place and value.metric == METRIC and value.key.scheme == scheme:
            subflows, others = int(place[1]), int(place[2])
            values[others, setting.congestion_control, subflows].append(value.value)
    if not values:
        raise RunError(run.folder, f"has no {METRIC} of {scheme} in a condition shared-N-M")
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
    """One panel for each number of TCPs beside: share against subflows, bands 95 %."""
    looks = styles(ordered(found))
    with drawing():
        drawn = Figure(figsize=(WIDTH_IN, 2.9), layout="constrained")
        panels = drawn.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axis, (others, panel) in zip(panels, sorted(found.items()), strict=True):
            _panel(axis, others, panel, looks)
        panels[0].set_ylabel("share of the bottleneck")
        handles, names = panels[0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return drawn


def _panel(
    axis: Axes, others: int, panel: Mapping[str, Mapping[int, Band]], looks: Mapping[str, object]
) -> None:
    fair = 1 / (1 + others)
    # Named in the legend: a label on the line would hide a band.
    axis.axhline(fair, color=INK, linewidth=0.8, label="one TCP")
    places = {name: place for place, name in enumerate(looks)}
    for name, bands in panel.items():
        look = styles(looks)[name]
        # Beside each other, so that none hides another.
        beside = [n + 0.1 * (places[name] - (len(looks) - 1) / 2) for n in bands]
        means = [band.mean for band in bands.values()]
        reach = [
            [band.mean - band.low for band in bands.values()],
            [band.high - band.mean for band in bands.values()],
        ]
        axis.errorbar(
            beside, means, reach, label=short(name), color=look.line, marker=look.marker,
            linestyle=look.dash, markersize=4, capsize=2.5,
        )  # fmt: skip
    axis.set_title(f"{others} TCP{'s' if others > 1 else ''} beside")
    axis.set_xlabel("subflows")
    axis.set_xticks(sorted({n for bands in panel.values() for n in bands}))
    axis.set_ylim(0, 1)
    axis.grid(axis="y", color=RULE)


def summary(found: Shares) -> str:
    """The same as a table in Markdown."""
    names = ordered(found)
    lines = [
        "| TCPs beside | subflows | one TCP's share | " + " | ".join(map(short, names)) + " |",
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
    parser.add_argument("results", type=Path, help="folder that `sumrate-lab run rfc6356` left")
    parser.add_argument("--scheme", default="mptcp", help="whose subflows [default: mptcp]")
    parser.add_argument("--figure", type=Path, help="write the figure here (svg, png or pdf)")
    parser.add_argument("--summary", type=Path, help="write the table here (Markdown)")
    given = parser.parse_args(arguments)
    if given.figure and given.figure.suffix not in FORMATS:
        parser.error(f"--figure {given.figure}: a name that ends in {', '.join(FORMATS)}")
    try:
        found = shares(read_run(given.results), given.scheme)
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
