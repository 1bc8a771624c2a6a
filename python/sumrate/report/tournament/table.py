"""The table of `fbdt-tournament`: its conditions, and how schedulers stand in them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from sumrate.ranking import ENOUGH, place

SCHEMA = "tournament.v1"
DEFAULT = "just-in-time"
"""The product's scheduler where nothing else is asked for."""
TIE = 0.02
"""Goodput within this share of the best is a tie."""
LINKS_MBPS = 60.0
"""Both links together, where no trace gives their rates. Goodput above it counts as this much: what
a path's TCP held behind bytes that it had to send again, when counting began, comes out later."""
MEASURED = (
    "goodput_mbps",
    "goodput_p5_mbps",
    "stall_ms",
    "in_order_p50_ms",
    "in_order_p99_ms",
    "reorder_peak_bytes",
    "redundant_share",
)
USUAL_TCP = "brisk"
"""The model that fills any link soon."""
SOURCES = {
    "matrix": ("conditions", "unknown"),
    "behaviour": ("schedulers", "unknown"),
    "tcp": ("congestion control", USUAL_TCP),
}
"""Keys that identify a table's source, with their words and default values."""
GROUPS = ("rate-rtt", "loss", "buffer", "outage", "short", "trace")


class TableError(Exception):
    """A file is no table of the tournament."""


@dataclass(frozen=True)
class Condition:
    """One condition and what every scheduler made of it, medians over the draws."""

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
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As they stand in the table."""
    draws: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Goodput in Mbit/s in each draw (seed), in the same order for all: what a draw's links lose
    and how late they are is the same for every scheduler."""

    copies: Mapping[str, float] = field(default_factory=dict)
    """Of what each sends, the share that is copies."""

    measured: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    """All that was measured in each draw, as it stands in the table."""

    def ratios(self, scheduler: str, other: str) -> list[float]:
        """Its goodput over the other's, draw by draw."""
        pairs = zip(self.draws[scheduler], self.draws[other], strict=True)
        return [own / max(others, 1e-9) for own, others in pairs]

    def relative(self, scheduler: str) -> float:
        """Goodput over the best's, median of the draws' ratios."""
        return median(self.ratios(scheduler, self.best_but()))

    def best_but(self, *left_out: str) -> str:
        """The scheduler with the highest goodput; some may be left out, but not all."""
        names = [name for name in self.goodput_mbps if name not in left_out]
        return max(names, key=self.goodput_mbps.__getitem__)

    def same(self, scheduler: str, other: str) -> bool:
        """True if both had equal values in every draw."""
        return self.measured[scheduler] == self.measured[other]

    def undecided(self, scheduler: str, other: str) -> bool:
        """True if one is ahead in some draws and the other in others; a tie is nobody's.

        With one draw there is nothing to tell it by: False.
        """
        ratios = self.ratios(scheduler, other)
        return min(ratios) < 1 < max(ratios)


def read(paths: Iterable[Path]) -> list[Condition]:
    """The conditions of several tables, in the order of the groups.

    Raises TableError naming the file that is none, or that lacks a scheduler of another.
    """
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in paths:
        for row in rows_of(path):
            grouped.setdefault((row["group"], _words(row)), []).append(row)
    conditions = [_condition(rows) for rows in grouped.values()]
    names = {tuple(sorted(condition.goodput_mbps)) for condition in conditions}
    uneven = any(len({len(d) for d in condition.draws.values()}) > 1 for condition in conditions)
    if len(names) != 1 or uneven:
        raise TableError("the tables do not have the same schedulers in every condition and seed")
    return sorted(conditions, key=lambda c: (GROUPS.index(c.group), c.order))


def origin(paths: Sequence[Path], commit: str) -> str:
    """A sentence about the source of the tables, which tells a kept summary from a later one.

    Raises TableError as `read` and `of_one_source` do.
    """
    of_one_source(paths)
    tables = [_table(path) for path in paths]
    rows = [row for table in tables for row in table["rows"]]
    conditions = len({(row["group"], _words(row)) for row in rows})

    matrix, behaviour, tcp = (tables[0].get(name, usual) for name, (_, usual) in SOURCES.items())
    return (
        f"Made at commit {commit}: {conditions} conditions, {len(rows)} cells, {_draws(rows)}; "
        f"the number of the matrix is {matrix}, that of what the schedulers do "
        f"{behaviour}." + (f" Every path's TCP is {tcp}." if tcp != USUAL_TCP else "")
    )


def conditions_of(conditions: Sequence[Condition], like: Path) -> list[Condition]:
    """Those that another table has too, of whatever TCP.

    Raises TableError where `like` is no table or has none of these.
    """
    there = {(row["group"], _words(row)) for row in rows_of(like)}
    found = [condition for condition in conditions if (condition.group, condition.words) in there]
    if not found:
        raise TableError(f"{like} has none of these conditions")
    return found


def of_one_source(paths: Sequence[Path]) -> None:
    """Refuses tables of several matrices, schedulers or TCPs, whose cells do not belong together.

    Raises TableError naming the first that differs from the first of all.
    """
    for name, (words, usual) in SOURCES.items():
        first, *others = (_table(path).get(name, usual) for path in paths)
        for path, number in zip(paths[1:], others, strict=True):
            if number != first:
                raise TableError(
                    f"{path} is of other {words} ({number}) than {paths[0]} ({first}): make both "
                    "with the same fbdt-tournament and --tcp, `make tournament` the first"
                )


def congestion_control(path: Path) -> str:
    """The congestion control of a table's paths; raises TableError where it is no table."""
    tcp: str = _table(path).get("tcp", USUAL_TCP)
    return tcp


def _draws(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many draws a condition has, where groups differ with those that have more."""
    seeds: dict[str, dict[str, set[int]]] = {}
    for row in rows:
        seeds.setdefault(row["group"], {}).setdefault(_words(row), set()).add(row["seed"])
    counts = {
        group: sorted({len(drawn) for drawn in seeds[group].values()})
        for group in GROUPS
        if group in seeds
    }
    least = min(few[0] for few in counts.values())
    more = [
        f"{' or '.join(str(count) for count in few)} in {group}"
        for group, few in counts.items()
        if few != [least]
    ]
    return ", ".join([f"{least} draw{'s' if least > 1 else ''} of each", *more])


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a table; raises TableError where it is none."""
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
    if not table.get("rows"):
        raise TableError(f"{path} has no rows")
    broken = [row for row in table["rows"] if row["violation"]]
    if broken:
        row = broken[0]
        raise TableError(f"{path}: {row['scheduler']} broke an invariant: {row['violation']}")
    if "transfer_bytes" not in table["rows"][0]:
        raise TableError(f"{path} was made before transfers were in it: run make tournament")
    found: dict[str, Any] = table
    return found


def _words(row: Mapping[str, Any]) -> str:
    """The parameters of a condition, for people."""
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
    if row["transfer_bytes"]:
        parts.append(f"transfers of {row['transfer_bytes'] // 1000} KB")
    return ", ".join(parts)


def _order(row: dict[str, Any]) -> tuple[float, ...]:
    late, lossy = row["late"] == "slow", ["fast", "slow", "both", "none"].index(row["lossy"])
    return {
        "rate-rtt": (late, row["rate_ratio"], row["rtt_ratio"]),
        "loss": (lossy, row["loss"], row["rtt_ratio"], row["rate_ratio"]),
        "buffer": (row["rtt_ratio"], row["rate_ratio"], row["buffer_bytes"]),
        "short": (row["loss"], row["transfer_bytes"], row["rtt_ratio"], row["rate_ratio"]),
        "outage": (row["flapping"], row["dark"] == "slow", row["outage_s"], row["rtt_ratio"]),
    }.get(row["group"], (0.0,))


def _condition(rows: list[dict[str, Any]]) -> Condition:
    names = list(dict.fromkeys(row["scheduler"] for row in rows))

    def medians(field: str) -> dict[str, float]:
        return {n: median(row[field] for row in rows if row["scheduler"] == n) for n in names}

    links = float("inf") if rows[0]["trace"] else LINKS_MBPS

    def of(name: str) -> list[dict[str, Any]]:
        return sorted((row for row in rows if row["scheduler"] == name), key=lambda r: r["seed"])

    draws = {name: tuple(min(row["goodput_mbps"], links) for row in of(name)) for name in names}
    return Condition(
        group=rows[0]["group"],
        words=_words(rows[0]),
        order=_order(rows[0]),
        sum_ratio=medians("sum_ratio"),
        goodput_mbps={name: median(values) for name, values in draws.items()},
        stall_ms=medians("stall_ms"),
        in_order_ms=medians("in_order_p99_ms"),
        copies=medians("redundant_share"),
        parameters=rows[0],
        draws=draws,
        measured={
            name: tuple(tuple(row[m] for m in MEASURED) for row in of(name)) for name in names
        },
    )


def serious(condition: Condition, scheduler: str) -> dict[str, bool]:
    """Which schedulers count in comparisons of stall and delay, with the one asked for.

    Those that deliver at least nine tenths of the best goodput: who sends little waits for little.
    """
    return {n: n == scheduler or condition.relative(n) >= ENOUGH for n in condition.goodput_mbps}


def ranked(condition: Condition, values: dict[str, float], scheduler: str) -> int:
    """Its place in `values` among those that count."""
    counted = serious(condition, scheduler)
    return place(values[scheduler], [v for name, v in values.items() if counted[name]])


def _among_best(condition: Condition, values: dict[str, float], scheduler: str) -> bool:
    """Best or second of those that count, being one of them."""
    counts = condition.relative(scheduler) >= ENOUGH
    return counts and ranked(condition, values, scheduler) <= 2


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
