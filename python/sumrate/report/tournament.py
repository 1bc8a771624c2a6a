"""Which scheduler wins where: the table of `fbdt-tournament` as a figure and a summary.

Run: python -m sumrate.report.tournament TABLE.json ... --figure FILE.svg --summary FILE.md
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from sumrate.report.lab.canvas import WIDTH_IN, drawing
from sumrate.report.lab.palette import INK, PAPER
from sumrate.report.tournament_sockets import SampleError, cells
from sumrate.report.tournament_sockets import summary as sample_summary

SCHEMA = "tournament.v1"
DEFAULT = "just-in-time"
"""The product's scheduler where nothing else is asked for."""
TIE = 0.02
"""Goodput within this share of the best is a tie."""
ENOUGH = 0.9
"""Of the best goodput: who delivers less waits for little, and is in no comparison of waits."""
LINKS_MBPS = 60.0
"""Both links together, where no trace gives their rates. Goodput above it counts as this much: it
is a backlog of the warm-up, or a dropped burst whose second transmission took no time."""
TIE_MS = 1.0
"""Stalls and delays this close are a tie, or within a tenth: the simulation steps by 1 ms."""
GROUPS = ("rate-rtt", "loss", "buffer", "outage", "trace")
GROUP_WORDS = {
    "rate-rtt": "rates, RTTs",
    "loss": "loss",
    "buffer": "buffer",
    "outage": "outages",
    "trace": "\ntraces",
}

Key = tuple[str, int]
"""Group and number of a condition within it."""


class TableError(Exception):
    """A file is no table of the tournament."""


@dataclass(frozen=True)
class Condition:
    """One condition and what every scheduler made of it, medians over the seeds."""

    group: str
    words: str
    """Its parameters, for people."""
    order: tuple[float, ...]
    """Where it stands within its group."""
    sum_ratio: dict[str, float]
    goodput_mbps: dict[str, float]
    """At most the links' rates."""
    stall_ms: dict[str, float]
    in_order_ms: dict[str, float]
    """99th percentile."""

    @property
    def best_mbps(self) -> float:
        """The highest goodput of all schedulers."""
        return max(self.goodput_mbps.values())

    def relative(self, scheduler: str) -> float:
        """Goodput over the best."""
        return self.goodput_mbps[scheduler] / max(self.best_mbps, 1e-9)


def read(paths: Iterable[Path]) -> list[Condition]:
    """The conditions of several tables, in the order of the groups.

    Raises TableError naming the file that is none, or that lacks a scheduler of another.
    """
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in paths:
        for row in _rows(path):
            grouped.setdefault((row["group"], _words(row)), []).append(row)
    conditions = [_condition(rows) for rows in grouped.values()]
    names = {tuple(sorted(condition.goodput_mbps)) for condition in conditions}
    if len(names) != 1:
        raise TableError("the tables do not have the same schedulers in every condition")
    return sorted(conditions, key=lambda c: (GROUPS.index(c.group), c.order))


def origin(paths: Iterable[Path], commit: str) -> str:
    """What the tables are of, so that a summary that is kept can be told from a later one's.

    Raises TableError as `read` does.
    """
    tables = [_table(path) for path in paths]
    rows = [row for table in tables for row in table["rows"]]
    conditions = len({(row["group"], _words(row)) for row in rows})
    seeds = len({row["seed"] for row in rows})
    numbers = ", ".join(dict.fromkeys(table.get("matrix", "unknown") for table in tables))
    return (
        f"# The tournament: standings\n\nMade at commit {commit}: {conditions} conditions, "
        f"{len(rows)} cells, {seeds} seed{'s' if seeds > 1 else ''}; the number of the matrix is "
        f"{numbers}.\n\nRates 1:10: the slow path has a tenth of the fast one's. Who delivers less "
        "than nine tenths of the best goodput is not counted as best or second in stall or "
        "delay.\n\n"
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _table(path)["rows"]
    return rows


def _table(path: Path) -> dict[str, Any]:
    """A table with rows, none of which is broken."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error
    if not isinstance(table, dict) or table.get("schema") != SCHEMA:
        raise TableError(f"{path} has no schema {SCHEMA}; fbdt-tournament --output writes it")
    broken = [row for row in table["rows"] if row["violation"]]
    if broken:
        row = broken[0]
        raise TableError(f"{path}: {row['scheduler']} broke an invariant: {row['violation']}")
    if not table["rows"]:
        raise TableError(f"{path} has no rows")
    found: dict[str, Any] = table
    return found


def _words(row: dict[str, Any]) -> str:
    """What makes a condition what it is."""
    if row["trace"]:
        return f"traces {row['trace']}"
    parts = [f"rates 1:{row['rate_ratio']:g}"]
    if row["late"] != "none":
        parts.append(f"{row['late']} path's RTT {row['rtt_ratio']:g} times")
    if row["lossy"] != "none":
        parts.append(f"{row['loss'] * 100:g} % loss on {row['lossy']}")
    if row["buffer_bytes"]:
        parts.append(f"buffer {row['buffer_bytes'] >> 10} KiB ({row['buffer_factor']:.2g} product)")
    if row["dark"] != "none":
        often = "of every 2 s" if row["flapping"] else "once"
        parts.append(f"{row['dark']} path dark {row['outage_s']:g} s {often}")
    return ", ".join(parts)


def _order(row: dict[str, Any]) -> tuple[float, ...]:
    late, lossy = row["late"] == "slow", ["fast", "slow", "both", "none"].index(row["lossy"])
    return {
        "rate-rtt": (late, row["rate_ratio"], row["rtt_ratio"]),
        "loss": (lossy, row["loss"], row["rtt_ratio"], row["rate_ratio"]),
        "buffer": (row["rtt_ratio"], row["rate_ratio"], row["buffer_bytes"]),
        "outage": (row["flapping"], row["dark"] == "slow", row["outage_s"], row["rtt_ratio"]),
    }.get(row["group"], (0.0,))


def _condition(rows: list[dict[str, Any]]) -> Condition:
    names = list(dict.fromkeys(row["scheduler"] for row in rows))

    def medians(field: str) -> dict[str, float]:
        return {n: median(row[field] for row in rows if row["scheduler"] == n) for n in names}

    links = float("inf") if rows[0]["trace"] else LINKS_MBPS
    return Condition(
        group=rows[0]["group"],
        words=_words(rows[0]),
        order=_order(rows[0]),
        sum_ratio=medians("sum_ratio"),
        goodput_mbps={n: min(rate, links) for n, rate in medians("goodput_mbps").items()},
        stall_ms=medians("stall_ms"),
        in_order_ms=medians("in_order_p99_ms"),
    )


def rank(values: dict[str, float], scheduler: str) -> int:
    """1 for the least value; others count as better only beyond a tie."""
    own = values[scheduler]
    margin = max(TIE_MS, own * 0.1)
    return 1 + sum(value < own - margin for value in values.values())


def serious(condition: Condition, scheduler: str) -> dict[str, bool]:
    """Which schedulers count in comparisons of stall and delay, with the one asked for.

    Those that deliver at least nine tenths of the best goodput: who sends little waits for little.
    """
    return {n: n == scheduler or condition.relative(n) >= ENOUGH for n in condition.goodput_mbps}


def _ranked(condition: Condition, values: dict[str, float], scheduler: str) -> int:
    counted = serious(condition, scheduler)
    return rank({name: value for name, value in values.items() if counted[name]}, scheduler)


def _among_best(condition: Condition, values: dict[str, float], scheduler: str) -> bool:
    """Best or second of those that count, being one of them."""
    counts = condition.relative(scheduler) >= ENOUGH
    return counts and _ranked(condition, values, scheduler) <= 2


@dataclass(frozen=True)
class Standing:
    """A scheduler's standing over some conditions, as shares of them."""

    scheduler: str
    ties: float
    """Within 2 % of the best goodput."""
    median: float
    worst: float
    """Of goodput over the best."""
    stall: float
    """Best or second in stall."""
    in_order: float
    """Best or second in in-order delay."""


def standing(conditions: Sequence[Condition], scheduler: str) -> Standing:
    """How `scheduler` stands over `conditions`, at least one."""
    relative = [condition.relative(scheduler) for condition in conditions]

    def share(hits: Iterable[bool]) -> float:
        return sum(hits) / len(conditions)

    return Standing(
        scheduler=scheduler,
        ties=share(value >= 1 - TIE for value in relative),
        median=median(relative),
        worst=min(relative),
        stall=share(_among_best(c, c.stall_ms, scheduler) for c in conditions),
        in_order=share(_among_best(c, c.in_order_ms, scheduler) for c in conditions),
    )


def summary(conditions: Sequence[Condition]) -> str:
    """Markdown: the standings over all and by group, and where the default is not the best."""
    schedulers = list(conditions[0].goodput_mbps)
    lines = [
        "| scheduler | ties for best goodput | median of best | worst | best or second in stall "
        "| best or second in in-order delay |",
        "|---|---|---|---|---|---|",
    ]
    found = [standing(conditions, name) for name in schedulers]
    lines += [
        f"| {s.scheduler} | {s.ties:.0%} | {s.median:.3f} | {s.worst:.3f} | {s.stall:.0%} "
        f"| {s.in_order:.0%} |"
        for s in sorted(found, key=lambda s: (-s.ties, -s.median))
    ]
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    lines += ["", "Ties for best goodput by group:", ""]
    lines += ["| scheduler | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for name in schedulers:
        parts = [standing([c for c in conditions if c.group == g], name).ties for g in groups]
        lines.append(f"| {name} | " + " | ".join(f"{part:.0%}" for part in parts) + " |")
    return "\n".join([*lines, "", *_losses(conditions), *_waits(conditions)]) + "\n"


def _losses(conditions: Sequence[Condition]) -> list[str]:
    """Where the default does not tie for the best goodput."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lost = [c for c in conditions if c.relative(DEFAULT) < 1 - TIE]
    lines = [
        f"{DEFAULT} is more than {TIE:.0%} below the best in {len(lost)} of {len(conditions)} "
        "conditions:",
        "",
        f"| condition | {DEFAULT}, of the sum | best | of the sum |",
        "|---|---|---|---|",
    ]
    for condition in sorted(lost, key=lambda c: c.relative(DEFAULT)):
        best = max(condition.goodput_mbps, key=lambda name: condition.goodput_mbps[name])
        lines.append(
            f"| {condition.group}: {condition.words} | {condition.sum_ratio[DEFAULT]:.3f} "
            f"| {best} | {condition.sum_ratio[best]:.3f} |"
        )
    return lines


def _waits(conditions: Sequence[Condition]) -> list[str]:
    """Where two serious schedulers or more stall for less time than the default, or delay less."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lines = [
        "",
        f"{DEFAULT} is not among the two best in stall or in-order delay in these conditions:",
        "",
        f"| condition | what | {DEFAULT}, ms | best | ms |",
        "|---|---|---|---|---|",
    ]
    for condition in conditions:
        counted = serious(condition, DEFAULT)
        for what, values in (("stall", condition.stall_ms), ("delay", condition.in_order_ms)):
            if _ranked(condition, values, DEFAULT) > 2:
                best = min((name for name in values if counted[name]), key=values.__getitem__)
                lines.append(
                    f"| {condition.group}: {condition.words} | {what} | {values[DEFAULT]:.0f} "
                    f"| {best} | {values[best]:.0f} |"
                )
    return lines


@dataclass(frozen=True)
class Panel:
    """One map of the figure: a value of every cell, and a share for every scheduler."""

    title: str
    colours: str
    norm: Normalize
    value: Callable[[Condition, str], float]
    head: str
    share: Callable[[Standing], float]


PANELS = (
    Panel(
        "Goodput over the best scheduler's",
        "cividis",
        Normalize(ENOUGH, 1.0),
        Condition.relative,
        "ties",
        lambda s: s.ties,
    ),
    Panel(
        "Longest stall, ms",
        "cividis_r",
        LogNorm(1, 1000),
        lambda c, name: c.stall_ms[name],
        "top 2",
        lambda s: s.stall,
    ),
    Panel(
        "In-order delay, 99th percentile, ms",
        "cividis_r",
        LogNorm(1, 1000),
        lambda c, name: c.in_order_ms[name],
        "top 2",
        lambda s: s.in_order,
    ),
)


def figure(conditions: Sequence[Condition]) -> Figure:
    """Three maps, a row for each scheduler and a column for each condition; pale is good."""
    schedulers = list(conditions[0].goodput_mbps)
    standings = [standing(conditions, name) for name in schedulers]
    with drawing():
        drawn = Figure(figsize=(WIDTH_IN, 1.0 + 3 * (0.45 + 0.19 * len(schedulers))))
        for axis, panel in zip(drawn.subplots(3, 1), PANELS, strict=True):
            _map(axis, conditions, schedulers, panel)
            _shares(axis, panel.head, [f"{panel.share(s):.0%}" for s in standings])
        drawn.subplots_adjust(left=0.135, right=0.9, top=0.95, bottom=0.04, hspace=0.32)
    return drawn


def _map(
    axis: Axes, conditions: Sequence[Condition], schedulers: Sequence[str], panel: Panel
) -> None:
    low = panel.norm.vmin or 0.0
    cells = [[max(panel.value(c, name), low) for c in conditions] for name in schedulers]
    image = axis.imshow(
        cells,
        aspect="auto",
        interpolation="nearest",
        cmap=panel.colours,
        norm=panel.norm,
        rasterized=True,
    )
    # No title of the axes: it would move above the scale beside it.
    axis.annotate(
        panel.title, (0, 1.03), xycoords="axes fraction", va="bottom", weight="bold", color=INK
    )
    axis.set_yticks(range(len(schedulers)), schedulers)
    axis.tick_params(length=0)
    groups = [condition.group for condition in conditions]
    bounds = [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    starts, ends = [0, *bounds], [*bounds, len(groups)]
    for bound in bounds:
        axis.axvline(bound - 0.5, color=PAPER, linewidth=2.5)
    axis.set_xticks(
        [(a + b - 1) / 2 for a, b in zip(starts, ends, strict=True)],
        [GROUP_WORDS[groups[start]] for start in starts],
    )
    for spine in axis.spines.values():
        spine.set_visible(False)
    # Beside the title, so that rows keep the same length in all maps.
    place = axis.inset_axes((0.62, 1.035, 0.34, 0.05))
    axis.figure.colorbar(image, cax=place, orientation="horizontal")
    place.xaxis.set_ticks_position("top")
    place.tick_params(length=0, pad=1)
    place.minorticks_off()


def _shares(axis: Axes, head: str, shares: Sequence[str]) -> None:
    """A share right of each row."""
    for row, text in enumerate(shares):
        axis.annotate(text, (1.01, row), xycoords=("axes fraction", "data"), va="center", color=INK)
    axis.annotate(head, (1.01, 1.03), xycoords="axes fraction", va="bottom", color=INK)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.tournament",
        description="Which scheduler wins where.",
        epilog="Example: python -m sumrate.report.tournament tournament.json --figure wins.png",
    )
    parser.add_argument("tables", nargs="+", type=Path, help="what fbdt-tournament wrote")
    parser.add_argument("--figure", type=Path, help="write the maps here (svg, png or pdf)")
    parser.add_argument("--summary", type=Path, help="write the standings here (Markdown)")
    parser.add_argument(
        "--sockets",
        type=Path,
        help="kept result of the laboratory's tournament-sample, to be set beside these",
    )
    parser.add_argument(
        "--commit", default="unknown", help="of the source, for the summary [default: unknown]"
    )
    parser.add_argument("--json", action="store_true", help="print the standings as JSON")
    given = parser.parse_args(arguments)
    try:
        conditions = read(given.tables)
        sample = _sample(given.tables, given.sockets) if given.sockets else ""
        made = origin(given.tables, given.commit)
    except (TableError, SampleError) as error:
        print(f"tournament: {error}", file=sys.stderr)
        return 2
    if given.figure:
        figure(conditions).savefig(given.figure, dpi=200)
    if given.summary:
        given.summary.write_text(made + summary(conditions) + sample, encoding="utf-8")
    if given.json:
        standings = [standing(conditions, n) for n in conditions[0].goodput_mbps]
        print(json.dumps([vars(s) for s in standings], indent=2))
    elif not given.summary:
        print(made + summary(conditions) + sample, end="")
    return 0


def _sample(tables: Iterable[Path], folder: Path) -> str:
    rows = [row for path in tables for row in _rows(path)]
    return "\n" + sample_summary(cells(rows, folder))


if __name__ == "__main__":
    sys.exit(main())
