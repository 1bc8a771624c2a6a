"""The performance goals P1 to P10 with what was measured, as the table of `sumrate-lab bench`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.demands import demands
from sumrate.lab.experiment.load import FOLDER, load, names
from sumrate.lab.experiment.sources import origin_of
from sumrate.verdict.model import (
    BESIDE,
    DEPENDS,
    FAILS,
    HOLDS,
    JUDGED,
    NOT_RUN,
    REPORTED,
    Demand,
    goal_order,
    is_performance,
)
from sumrate.verdict.words import said

SCHEMA = "sumrate.lab.goals.v1"
NOTE = (
    "'Measured' is Sumrate with its default scheduler (just-in-time), unless the row names "
    "another; the other columns are from the same run. '(in 5 of 10)' means in 5 of the row's 10 "
    "conditions, '(3 of 5 repetitions)' that 3 repetitions count; without such a note, all do."
)
TITLES = {
    JUDGED: "measured",
    "sumrate-two-ended": "two-ended",
    "sumrate-thesis": "thesis mode",
    "mptcp": "kernel MPTCP",
    "aggligator": "aggligator",
    "tquic": "TQUIC",
}
MARKS = {
    HOLDS: "reached",
    FAILS: "missed",
    DEPENDS: "in part",
    NOT_RUN: "not measured",
    REPORTED: "",
}


def measured_by(folder: Path = FOLDER) -> list[str]:
    """The experiments that measure performance goals, in the order of the goals."""
    found: dict[str, list[str]] = {}
    for name in names(folder):
        goals = [c.goal for c in load(name, folder).checks if is_performance(c.goal)]
        if goals:
            found[name] = sorted(goals, key=goal_order)
    return sorted(found, key=lambda name: goal_order(found[name][0]))


def rows(results: Path, folder: Path = FOLDER) -> list[Demand]:
    """Every demand of every goal, in the goals' order, P1 to P10 first."""
    found = [demand for demand in demands(results, folder) if demand.kind == "goal"]
    return sorted(found, key=lambda row: goal_order(row.id))


def span(values: tuple[float, float] | None) -> str:
    """One value, or the least and the largest."""
    return "-" if values is None else said(values)


def table(found: Sequence[Demand]) -> str:
    """The goals for a terminal: one line of words, one of figures."""
    width = 18
    heads = [TITLES[s] for s in (JUDGED, *BESIDE)]
    lines = [f"{'':26}{'':14}" + "".join(f"{head:>{width}}" for head in heads)]
    goal = ""
    for row in found:
        name = row.id if row.id != goal else ""
        goal = row.id
        lines.append(f"{name:4} {row.statement}")
        cells = "".join(f"{span(row.measured.get(s)):>{width}}" for s in (JUDGED, *BESIDE))
        lines.append(f"     {row.limit:21}{MARKS[row.verdict]:14}{cells}")
        if few := _few(row):
            lines.append(f"     rests on {few}")
        if row.missed_in:
            lines.append(f"     missed in {'; '.join(row.missed_in)}")
    return "\n".join([*lines, "", NOTE])


def _few(row: Demand) -> str:
    """Which schemes' values rest on how many repetitions, where those are fewer than they were."""
    notes = {TITLES[s]: row.few(s) for s in (JUDGED, *BESIDE) if s in row.measured}
    if len(set(notes.values())) == 1:
        return next(iter(notes.values()))
    return "; ".join(f"{note} ({title})" for title, note in notes.items() if note)


def document(found: Sequence[Demand], results: Path) -> dict[str, Any]:
    """The table as JSON, with where and when each experiment was measured."""
    return {
        "schema": SCHEMA,
        "goals": [_goal(row) for row in found],
        "experiments": dict(_origins(results, dict.fromkeys(row.experiment for row in found))),
    }


def _goal(row: Demand) -> dict[str, Any]:
    entry = row.as_dict()
    return {entry.pop("kind"): entry.pop("id"), **entry}


def _origins(results: Path, wanted: Mapping[str, None]) -> Iterator[tuple[str, dict[str, Any]]]:
    keys = ("commit", "kernel", "machine", "started", "finished", "repetitions", "void_runs")
    for name in wanted:
        if origin := origin_of(results, name):
            yield name, {key: origin[key] for key in keys if key in origin}
