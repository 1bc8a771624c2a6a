"""Cells of the tournament that were run on real sockets too, beside what the simulation says.

A condition of the laboratory and a row of the table belong together by rates, RTTs, loss and outage
of their links, which both have on record.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sumrate.report.lab.read import Condition, Run, RunError, read_run

FIELDS = ("rate_ratio", "rtt_ratio", "loss", "outage_s")
ROUNDED = 0.01
"""Ratios of a laboratory's rates, which are written with three decimals, differ by less."""


class SampleError(Exception):
    """A result cannot be compared with the table."""


@dataclass(frozen=True)
class Cell:
    """One scheduler in one condition, simulated and on sockets: medians over seeds, repetitions."""

    condition: str
    """The laboratory's title."""
    scheduler: str
    simulated: float
    """Goodput over the sum of the links alone."""
    measured: float

    @property
    def error(self) -> float:
        """What the simulation has too much or too little, as a share of what was measured."""
        return self.simulated / self.measured - 1


def cells(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Cell]:
    """Every scheduler and condition that both have.

    Raises:
        SampleError: there is no usable result in `folder`, or nothing in it is in the table.

    """
    try:
        run = read_run(folder)
    except RunError as error:
        raise SampleError(str(error)) from error
    found = []
    for condition in run.conditions:
        simulated = matching(rows, condition)
        for scheduler in dict.fromkeys(row["scheduler"] for row in simulated):
            measured = _sum_ratios(run, condition.name, scheduler)
            if measured:
                of = [r["sum_ratio"] for r in simulated if r["scheduler"] == scheduler]
                found.append(Cell(condition.title, scheduler, median(of), median(measured)))
    if not found:
        raise SampleError(f"{folder}: none of its conditions and schedulers is in the table")
    return found


def matching(rows: Sequence[Mapping[str, Any]], condition: Condition) -> list[Mapping[str, Any]]:
    """The rows whose links are those of a condition with two links."""
    want = parameters(list(condition.links.values()))
    return [
        row
        for row in rows
        if not row["buffer_bytes"]
        and not row["trace"]
        and all(math.isclose(row[name], want[name], rel_tol=ROUNDED) for name in FIELDS)
        and all(row[name] == want[name] for name in ("late", "lossy", "dark", "flapping", "group"))
    ]


def parameters(links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Two links of a manifest in the words of the table."""
    fast, slow = sorted(links, key=lambda link: -link["rate_mbps"])
    rtts = fast["rtt_ms"], slow["rtt_ms"]
    outages = {name: link["blackouts"] for name, link in (("fast", fast), ("slow", slow))}
    dark = _side(bool(outages["fast"]), bool(outages["slow"]))
    lossy = _side(fast["loss"] > 0, slow["loss"] > 0)
    intervals = outages["fast"] or outages["slow"]
    return {
        "group": "outage" if dark != "none" else "loss" if lossy != "none" else "rate-rtt",
        "rate_ratio": fast["rate_mbps"] / slow["rate_mbps"],
        "rtt_ratio": max(rtts) / min(rtts),
        "late": _side(rtts[0] > rtts[1], rtts[1] > rtts[0]),
        "loss": max(fast["loss"], slow["loss"]),
        "lossy": lossy,
        "outage_s": intervals[0][1] - intervals[0][0] if intervals else 0.0,
        "dark": dark,
        "flapping": len(intervals) > 1,
    }


def _side(fast: bool, slow: bool) -> str:
    return {(True, True): "both", (True, False): "fast", (False, True): "slow"}.get(
        (fast, slow), "none"
    )


def _sum_ratios(run: Run, condition: str, scheme: str) -> list[float]:
    return [
        value.value
        for value in run.metrics
        if value.metric == "sum_ratio"
        and value.key.scheme == scheme
        and value.key.setting.condition == condition
    ]


def median_error(found: Sequence[Cell]) -> float:
    """Median of the errors' amounts."""
    return median(abs(cell.error) for cell in found)


def summary(found: Sequence[Cell]) -> str:
    """Markdown: the median error, and every cell with both values."""
    schedulers = list(dict.fromkeys(cell.scheduler for cell in found))
    titles = list(dict.fromkeys(cell.condition for cell in found))
    at = {(cell.condition, cell.scheduler): cell for cell in found}
    worst = max(found, key=lambda cell: abs(cell.error))
    lines = [
        f"On real sockets, {len(found)} cells (goodput over the sum of the links alone, simulated "
        f"/ measured). The median error of the simulation is {median_error(found):.1%}; "
        f"the largest {abs(worst.error):.0%} ({worst.scheduler}, {worst.condition}).",
        "",
        "| condition | " + " | ".join(schedulers) + " |",
        "|---" * (len(schedulers) + 1) + "|",
    ]
    for title in titles:
        row = [at.get((title, name)) for name in schedulers]
        shown = [f"{c.simulated:.3f} / {c.measured:.3f}" if c else "" for c in row]
        lines.append(f"| {title} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"
