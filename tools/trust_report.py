"""Prints what soaks, faults, attacks, loads and fuzzers reached, as Markdown, from their reports.

Exit status 2 where a report shows a failure, or is none.

Run: .venv/bin/python tools/trust_report.py --soak out/soak/report.json
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from templates import rendered

LEAST_RATIO = 0.9
"""Of its goodput before a fault another client keeps so much at least."""
ROUNDS_JUDGED = 3
"""A median of fewer is one late second of the machine."""
REAL = ("faults", "transfers", "bytes_lost", "memory", "panics", "problems")
FIELDS = {
    "soak": ("faults", "schedulers", "rules", "seeds", "failed"),
    "fuzz": ("targets", "seconds"),
    "faults": REAL,
    "soak-real": REAL,
    "attacks": ("attacks", "connections", "sessions_harmed", "problems"),
    "load": ("sessions", "streams", "handshakes_per_s", "idle_share", "problems"),
}
"""The reports in their order, and what each must have."""
Report = dict[str, Any]


class TableError(Exception):
    """A report that shows a failure or cannot be used; the message says which and why."""


def rule_order(rules: Mapping[str, object]) -> list[str]:
    """Rules by their number: F9b comes after F9 and before F10."""
    return sorted(rules, key=lambda rule: (int(re.sub(r"\D", "", rule) or 0), rule))


FILTERS: dict[str, Callable[..., Any]] = {
    "n": lambda value: f"{value:,.0f}",
    "mb": lambda count: f"{count / 1e6:,.0f}",
    "percent": lambda share: f"{share:.0%}",
    "rule_order": rule_order,
}


def section(kind: str, report: Report, *more: Report | None) -> str:
    """The part of the page about one report."""
    return rendered("trust.md.j2", kind.replace("-", "_"), report, *more, **FILTERS)


def load(kind: str, path: Path) -> Report:
    """A report without a failure.

    Raises TableError: it shows one, or is no report.
    """
    try:
        report: Report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error
    if missing := [field for field in FIELDS[kind] if field not in report]:
        raise TableError(f"{path} is not such a report: {', '.join(missing)} missing")
    for wrong in (*CHECKS.get(kind, _of_problems)(report), *_of_problems(report)):
        raise TableError(f"{path}: {wrong}")
    return report


def _of_problems(report: Report) -> Iterator[str]:
    if report.get("problems"):
        yield "; ".join(report["problems"])


def _of_soak(report: Report) -> Iterator[str]:
    if report["failed"]:
        yield f"{report['failed']} seeds failed"
    if idle := [name for name, row in report["schedulers"].items() if not row["placed_seeds"]]:
        yield f"{', '.join(idle)} never chose between paths: run more seeds"


def _of_fuzz(report: Report) -> Iterator[str]:
    if failed := [run["target"] for run in report["targets"] if run["failed"]]:
        yield f"{', '.join(failed)} failed"


def _of_losses(report: Report) -> Iterator[str]:
    if report["bytes_lost"] or report["bad_transfers"] or report["panics"]:
        yield "bytes were lost, or a process crashed"


def _of_faults(report: Report) -> Iterator[str]:
    """Faults that slowed others down, or were made too seldom to say."""
    yield from _of_losses(report)
    for name, row in report["faults"].items():
        others = row["others_ratio"]
        if others is None and not row.get("stops_everybody"):
            yield f"{name} has no goodput of others, and no reason for that"
        if others and row["injected"] < ROUNDS_JUDGED:
            yield (
                f"{name} was made {row['injected']} times, {ROUNDS_JUDGED} are needed: "
                f"make faults ROUNDS={ROUNDS_JUDGED}"
            )
        if others and others["median"] < LEAST_RATIO:
            yield (
                f"{name} left the other client {others['median']:.0%} of its goodput, "
                f"at least {LEAST_RATIO:.0%} is wanted"
            )


CHECKS: dict[str, Callable[[Report], Iterator[str]]] = {
    "soak": _of_soak,
    "fuzz": _of_fuzz,
    "faults": _of_faults,
    "soak-real": _of_losses,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 2 if a report shows a failure or cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    for kind in FIELDS:
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"of `make {kind}`")
    given = {kind.replace("_", "-"): path for kind, path in vars(parser.parse_args(argv)).items()}
    if not any(given.values()):
        parser.error("nothing to do: give a report")
    try:
        reports = {kind: load(kind, path) for kind, path in given.items() if path}
        for kind, report in reports.items():
            more = [reports.get("fuzz")] if kind == "attacks" else []
            print(section(kind, report, *more))
    except TableError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
