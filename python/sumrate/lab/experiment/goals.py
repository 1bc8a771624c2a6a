"""The performance goals P1 to P10 with what was measured, as the table of `sumrate-lab bench`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.catalogue import goal_order, read_verdicts
from sumrate.lab.experiment.judge import (
    BESIDE,
    DEPENDS,
    FAILS,
    HOLDS,
    JUDGED,
    NOT_RUN,
    figure,
    limits,
    outcome,
)
from sumrate.lab.experiment.load import FOLDER, load, names
from sumrate.lab.experiment.model import Check

SCHEMA = "sumrate.lab.goals.v1"
NOTE = (
    "measured: Sumrate as it is by default (just-in-time), or what the row names; beside it its "
    "other modes and its peers, where they were measured in the same run (in as many of the "
    "row's conditions as is said, else in all)."
)
TITLES = {
    JUDGED: "measured",
    "sumrate-two-ended": "two-ended",
    "sumrate-thesis": "thesis mode",
    "mptcp": "kernel MPTCP",
    "aggligator": "aggligator",
    "tquic": "TQUIC",
}
REPORTED = "reported"
MARKS = {
    HOLDS: "reached",
    FAILS: "missed",
    DEPENDS: "in part",
    NOT_RUN: "not measured",
    REPORTED: "",
}


@dataclass(frozen=True)
class Row:
    """One demand of a goal, and what each scheme has of it: least and largest over conditions."""

    goal: str
    statement: str
    limit: str
    experiment: str
    verdict: str = NOT_RUN
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By scheme; Sumrate as it is by default (just-in-time) first."""
    points: Mapping[str, int] = field(default_factory=dict)
    """By scheme: conditions (with their congestion control and buffers) that were measured."""
    missed_in: tuple[str, ...] = ()
    """Conditions in which it is missed, with what was measured there."""
    cause: str = ""
    """Why it is missed, where that was seen in a measurement."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def is_performance(goal: str) -> bool:
    """Whether it is one of P1 to P10."""
    return goal.startswith("P") and goal[1:2].isdigit()


def measured_by(folder: Path = FOLDER) -> list[str]:
    """The experiments that measure performance goals, in the order of the goals."""
    found: dict[str, list[str]] = {}
    for name in names(folder):
        goals = [c.goal for c in load(name, folder).checks if is_performance(c.goal)]
        if goals:
            found[name] = sorted(goals, key=goal_order)
    return sorted(found, key=lambda name: goal_order(found[name][0]))


def rows(results: Path, folder: Path = FOLDER) -> list[Row]:
    """Every demand of every goal, in the goals' order, P1 to P10 first."""
    found = []
    for name in names(folder):
        findings = _findings(results / name)
        demands = {(c.goal, c.statement): c for c in load(name, folder).checks if c.goal}
        found += [_row(name, check, findings.get(key, [])) for key, check in demands.items()]
    return sorted(found, key=lambda row: goal_order(row.goal))


def _findings(folder: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for verdict in read_verdicts(folder):
        for finding in verdict["findings"]:
            key = (str(verdict.get("goal", "")), finding["statement"])
            found.setdefault(key, []).append(finding)
    return found


def _row(experiment: str, check: Check, findings: Sequence[Mapping[str, Any]]) -> Row:
    values: dict[str, list[float]] = {}
    for finding in findings:
        if finding["measured"] is not None:
            values.setdefault(JUDGED, []).append(finding["measured"])
        for scheme, value in finding.get("beside", {}).items():
            values.setdefault(scheme, []).append(value)
    missed = [f for f in findings if f["holds"] is False]
    verdict = outcome([f["holds"] for f in findings])
    if check.reported and values:
        verdict = REPORTED
    return Row(
        goal=check.goal,
        statement=check.statement,
        limit=limits(check),
        experiment=experiment,
        verdict=verdict,
        measured={scheme: (min(v), max(v)) for scheme, v in values.items()},
        points={scheme: len(v) for scheme, v in values.items()},
        missed_in=tuple(dict.fromkeys(_where(f) for f in missed)),
        cause=" ".join(dict.fromkeys(f["cause"] for f in missed if f.get("cause"))),
    )


def _where(finding: Mapping[str, Any]) -> str:
    usual = {"cubic", "default"}
    parts = [finding["condition"], finding["congestion_control"], finding["buffers"]]
    where = ", ".join(part for part in parts if part not in usual)
    return f"{where}: {figure(finding['measured'])}"


def span(values: tuple[float, float] | None) -> str:
    """One value, or the least and the largest."""
    if values is None:
        return "-"
    low, high = map(figure, values)
    return low if low == high else f"{low} to {high}"


def table(found: Sequence[Row]) -> str:
    """The goals for a terminal: one line of words, one of figures."""
    width = 18
    heads = [TITLES[s] for s in (JUDGED, *BESIDE)]
    lines = [f"{'':26}{'':14}" + "".join(f"{head:>{width}}" for head in heads)]
    goal = ""
    for row in found:
        name = row.goal if row.goal != goal else ""
        goal = row.goal
        lines.append(f"{name:4} {row.statement}")
        cells = "".join(f"{span(row.measured.get(s)):>{width}}" for s in (JUDGED, *BESIDE))
        lines.append(f"     {row.limit:21}{MARKS[row.verdict]:14}{cells}")
        if row.missed_in:
            lines.append(f"     missed in {'; '.join(row.missed_in)}")
    return "\n".join([*lines, "", NOTE])


def document(found: Sequence[Row], results: Path) -> dict[str, Any]:
    """The table as JSON, with where and when each experiment was measured."""
    return {
        "schema": SCHEMA,
        "goals": [row.as_dict() for row in found],
        "experiments": dict(_origins(results, dict.fromkeys(row.experiment for row in found))),
    }


def _origins(results: Path, wanted: Mapping[str, None]) -> Iterator[tuple[str, dict[str, Any]]]:
    keys = ("commit", "kernel", "machine", "started", "finished", "repetitions", "void_runs")
    for name in wanted:
        path = results / name / "manifest.json"
        if path.is_file():
            manifest = json.loads(path.read_text(encoding="utf-8"))
            yield name, {key: manifest[key] for key in keys if key in manifest}
