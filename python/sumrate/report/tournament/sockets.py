"""Cells of the tournament that were run on real sockets too, beside what the simulation says.

A condition of the laboratory and a row of the table belong together by the ratios of their links'
rates and RTTs, their loss and outage, and by the buffer, which both have on record; the rates' sum
and the smaller RTT, which rows do not have, the experiment's file has to choose as the matrix does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sumrate.report.lab.result import Result, RunError, read_result
from sumrate.report.tournament.table import DEFAULT

FIELDS = ("rate_ratio", "rtt_ratio", "loss", "outage_s", "buffer_bytes")
MEASURES = (
    ("sum_ratio", "sum_ratio"),
    ("stall_ms", "longest_stall_ms"),
    ("in_order_p99_ms", "in_order_delay_p99_ms"),
)
"""Names of each quantity in the table and in the laboratory."""
PLAIN_TIE = 0.02
"""Two schedulers whose goodput on sockets differs by less than this are a tie there."""
ROUNDED = 0.01
"""Ratios of a laboratory's rates, which are written with three decimals, differ by less."""


class SampleError(Exception):
    """A result cannot be compared with the table."""


class Predicted:
    """A ratio of goodputs that the simulation says and sockets measured."""

    simulated: float
    measured: float

    @property
    def error(self) -> float:
        """Simulated less measured value, as a share of the measured one."""
        return self.simulated / self.measured - 1

    @property
    def plain_error(self) -> float:
        """Error of a guess of 1: every cell carries the sum, all schedulers alike."""
        return 1 / self.measured - 1


@dataclass(frozen=True)
class Cell(Predicted):
    """One scheduler in one condition, simulated and on sockets: medians over seeds, repetitions."""

    condition: str
    """The laboratory's title."""
    scheduler: str
    simulated: float
    """Goodput over the sum of the links alone."""
    measured: float
    stall_ms: tuple[float, float] | None = None
    """The longest stall, simulated and measured, where both are known."""
    in_order_ms: tuple[float, float] | None = None
    """The 99th percentile of the in-order delay likewise."""


@dataclass(frozen=True)
class Pair(Predicted):
    """The default's goodput over another scheduler's in one condition, simulated and measured."""

    condition: str
    other: str
    simulated: float
    measured: float

    @property
    def same_sign(self) -> bool:
        """True if simulation and sockets agree which of the two carries more."""
        return (self.simulated - 1) * (self.measured - 1) > 0

    @property
    def told_apart(self) -> bool:
        """True if the two are no tie on sockets."""
        return abs(self.measured - 1) > PLAIN_TIE


def cells(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Cell]:
    """Every scheduler and condition that the table and a result have.

    Raises:
        SampleError: there is no usable result in `folder`, or nothing in it is in the table.

    """
    try:
        result = read_result(folder)
    except RunError as error:
        raise SampleError(str(error)) from error
    found = []
    for condition in result.manifest.conditions:
        links = list(result.links(condition.name).values())
        simulated = matching(rows, links, condition.stream_buffer_bytes)
        for scheduler in dict.fromkeys(row["scheduler"] for row in simulated):
            own = [row for row in simulated if row["scheduler"] == scheduler]
            goodput, stall, in_order = (
                _medians(own, field, _values(result, condition.name, scheduler, metric))
                for field, metric in MEASURES
            )
            if goodput:
                found.append(Cell(condition.title, scheduler, *goodput, stall, in_order))
    if not found:
        raise SampleError(f"{folder}: none of its conditions and schedulers is in the table")
    return found


def recorded(folder: Path) -> str:
    """Which result a folder has, in words: its name, its commit and the day.

    Raises:
        SampleError: there is no usable result in `folder`.

    """
    try:
        result = read_result(folder)
    except RunError as error:
        raise SampleError(str(error)) from error
    manifest = result.manifest
    return f"`{manifest.experiment}` of {manifest.started[:10]} at commit {manifest.commit}"


def matching(
    rows: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]], buffer_bytes: int
) -> list[Mapping[str, Any]]:
    """The rows whose links and buffer are those of a condition with two links."""
    want = parameters(links, buffer_bytes)
    return [
        row
        for row in rows
        if not row["trace"]
        and all(math.isclose(row[name], want[name], rel_tol=ROUNDED) for name in FIELDS)
        and all(row[name] == want[name] for name in ("late", "lossy", "dark", "flapping", "group"))
    ]


def parameters(links: Sequence[Mapping[str, Any]], buffer_bytes: int = 0) -> dict[str, Any]:
    """Two links of a manifest, and what a stream may hold, in the words of the table."""
    fast, slow = sorted(links, key=lambda link: -link["rate_mbps"])
    rtts = fast["rtt_ms"], slow["rtt_ms"]
    outages = {name: link.get("blackouts") or [] for name, link in (("fast", fast), ("slow", slow))}
    dark = _side(bool(outages["fast"]), bool(outages["slow"]))
    lossy = _side(fast["loss"] > 0, slow["loss"] > 0)
    intervals = outages["fast"] or outages["slow"]
    groups = {"buffer": buffer_bytes > 0, "outage": dark != "none", "loss": lossy != "none"}
    return {
        "group": next((name for name, there in groups.items() if there), "rate-rtt"),
        "rate_ratio": fast["rate_mbps"] / slow["rate_mbps"],
        "rtt_ratio": max(rtts) / min(rtts),
        "late": _side(rtts[0] > rtts[1], rtts[1] > rtts[0]),
        "loss": max(fast["loss"], slow["loss"]),
        "lossy": lossy,
        "outage_s": intervals[0][1] - intervals[0][0] if intervals else 0.0,
        "dark": dark,
        "flapping": len(intervals) > 1,
        "buffer_bytes": buffer_bytes,
    }


def _side(fast: bool, slow: bool) -> str:
    return {(True, True): "both", (True, False): "fast", (False, True): "slow"}.get(
        (fast, slow), "none"
    )


def _medians(
    rows: Sequence[Mapping[str, Any]], field: str, measured: Sequence[float]
) -> tuple[float, float] | None:
    simulated = [row[field] for row in rows if field in row]
    return (median(simulated), median(measured)) if simulated and measured else None


def _values(result: Result, condition: str, scheme: str, metric: str) -> list[float]:
    found = result.values.filter(condition=condition, scheme=scheme, metric=metric)
    return found["value"].to_list()


def pairs(found: Sequence[Cell]) -> list[Pair]:
    """The default against each other scheduler, in every condition that has both."""
    own = {cell.condition: cell for cell in found if cell.scheduler == DEFAULT}
    return [
        Pair(
            cell.condition,
            cell.scheduler,
            own[cell.condition].simulated / cell.simulated,
            own[cell.condition].measured / cell.measured,
        )
        for cell in found
        if cell.scheduler != DEFAULT and cell.condition in own
    ]


def median_error(found: Sequence[Cell | Pair]) -> float:
    """Median of the errors' amounts."""
    return median(abs(cell.error) for cell in found)


def plain_median_error(found: Sequence[Cell | Pair]) -> float:
    """Median error of the guess that every value is 1."""
    return median(abs(cell.plain_error) for cell in found)


def _difference(pairs: Sequence[tuple[float, float] | None], name: str) -> str:
    """How far the simulation's milliseconds are from those on sockets, in words."""
    known = [pair for pair in pairs if pair]
    if not known:
        return ""
    apart = median(abs(simulated - measured) for simulated, measured in known)
    more = sum(measured > simulated for simulated, measured in known)
    return (
        f" Of {name} they differ by {apart:.0f} ms in the median cell; in {more} of {len(known)} "
        "it is longer on sockets."
    )


def _power(found: Sequence[Cell]) -> str:
    """A sentence that compares the simulation's errors with those of a guess of 1 everywhere."""
    own, plain = median_error(found), plain_median_error(found)
    text = (
        f"\n\nWho says of every cell that it carries the sum, 1.000, is off by {plain:.1%} in the "
        f"median: {_against(own, plain)}"
    )
    compared = pairs(found)
    if not compared:
        return text
    own, plain = median_error(compared), plain_median_error(compared)
    same = sum(pair.same_sign for pair in compared)
    apart = [pair for pair in compared if pair.told_apart]
    text += (
        f"\n\n{DEFAULT} over each other scheduler, {len(compared)} pairs: the ratio is off by "
        f"{own:.1%} in the median, and by {plain:.1%} where all are said to be equal: "
        f"{_against(own, plain)} In {same} of {len(compared)} pairs both have the same one ahead. "
    )
    if not apart:
        return text + (
            f"On sockets no pair differs by more than {PLAIN_TIE:.0%}: all schedulers are near the "
            "sum there, so these conditions do not test who carries more in the simulation."
        )
    same = sum(pair.same_sign for pair in apart)
    return text + (
        f"On sockets {len(apart)} pairs differ by more than {PLAIN_TIE:.0%}; of these both have "
        f"the same one ahead in {same}."
    )


def _against(own: float, plain: float) -> str:
    """True if the simulation is closer than a guess of 1 everywhere, by the shown digits."""
    if round(own, 3) < round(plain, 3):
        return "the simulation is nearer."
    return "the simulation is no better than that."


def _listed(of: Sequence[str]) -> str:
    return f" ({', '.join(of)})" if of else ""


def _by_condition(found: Sequence[Cell]) -> list[str]:
    """A row for each condition: the errors of both, of cells and of pairs."""
    compared = pairs(found)
    lines = [
        "",
        f"| condition | error of the simulation | of 1.000 | its error of {DEFAULT} "
        "| pairs' error of the simulation | of 1.000 | same one ahead |",
        "|---|---|---|---|---|---|---|",
    ]
    for title in dict.fromkeys(cell.condition for cell in found):
        own = [cell for cell in found if cell.condition == title]
        two = [pair for pair in compared if pair.condition == title]
        shown = [f"{median_error(own):.1%}", f"{plain_median_error(own):.1%}"]
        shown.append("".join(f"{cell.error:+.1%}" for cell in own if cell.scheduler == DEFAULT))
        if two:
            shown += [f"{median_error(two):.1%}", f"{plain_median_error(two):.1%}"]
            shown += [f"{sum(pair.same_sign for pair in two)} of {len(two)}"]
        else:
            shown += ["", "", ""]
        lines.append(f"| {title} | " + " | ".join(shown) + " |")
    return lines


def _own(found: Sequence[Cell]) -> str:
    """How far the default's cells are off, in words."""
    own = [cell for cell in found if cell.scheduler == DEFAULT]
    if not own:
        return ""
    worst = max(own, key=lambda cell: abs(cell.error))
    return (
        f" Of {DEFAULT} alone it is {median_error(own):.1%}, and the largest {worst.error:+.0%} "
        f"({worst.condition})."
    )


def summary(found: Sequence[Cell], of: Sequence[str] = ()) -> str:
    """Markdown: the median error, and every cell with both values; `of` says of which results."""
    schedulers = list(dict.fromkeys(cell.scheduler for cell in found))
    titles = list(dict.fromkeys(cell.condition for cell in found))
    at = {(cell.condition, cell.scheduler): cell for cell in found}
    worst = max(found, key=lambda cell: abs(cell.error))
    lines = [
        f"On real sockets{_listed(of)}, {len(found)} cells (goodput over the sum of the links "
        f"alone, simulated / measured). The median error of the simulation is "
        f"{median_error(found):.1%}; the largest {abs(worst.error):.0%} ({worst.scheduler}, "
        f"{worst.condition})."
        + _own(found)
        + _difference([cell.stall_ms for cell in found], "the longest stall")
        + _difference([cell.in_order_ms for cell in found], "the in-order delay's 99th percentile")
        + " Here rates 10:1 are what is 1:10 above."
        + _power(found),
        "",
        "| condition | " + " | ".join(schedulers) + " |",
        "|---" * (len(schedulers) + 1) + "|",
    ]
    for title in titles:
        row = [at.get((title, name)) for name in schedulers]
        shown = [f"{c.simulated:.3f} / {c.measured:.3f}" if c else "" for c in row]
        lines.append(f"| {title} | " + " | ".join(shown) + " |")
    return "\n".join([*lines, *_by_condition(found)]) + "\n"
