"""Prints what soaks, faults, attacks, loads and fuzzers reached, as Markdown, from their reports.

Exit status 2 where a report shows a failure, or is none.

Run: python3 tools/trust_report.py --soak out/soak/report.json
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trust_contents import (
    TableError,
    attacks,
    faults,
    load_held,
    real_faults,
    real_soak,
    rules,
    schedulers,
    targets,
)

KINDS = ("soak", "fuzz", "faults", "soak-real", "attacks", "load")
LEAST_RATIO = 0.9
"""Of its goodput before a fault another client keeps so much at least."""
ROUNDS_JUDGED = 3
"""A median of fewer is one late second of the machine."""


def load(path: Path, fields: Sequence[str]) -> dict[str, Any]:
    """A report; raises TableError if it is none."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error
    missing = [field for field in fields if field not in report]
    if missing:
        raise TableError(f"{path} is not such a report: {', '.join(missing)} missing")
    found: dict[str, Any] = report
    return found


def sections(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The heading and the table of everything that there is a report for.

    Raises:
        TableError: a report shows a failure, or is none.

    """
    if arguments.soak:
        report = simulated(arguments.soak)
        yield "Simulated faults", faults(report)
        yield "Schedulers in simulation", schedulers(report)
        yield "Rules in simulation", rules(report)
    fuzz = fuzzed(arguments.fuzz) if arguments.fuzz else None
    if fuzz:
        yield "Fuzzing", targets(fuzz)
    if arguments.faults:
        report = real(arguments.faults)
        judge(arguments.faults, report)
        yield "Faults on real sockets", real_faults(report)
    if arguments.soak_real:
        yield "Soak on real sockets", real_soak(real(arguments.soak_real))
    if arguments.attacks:
        fields = ["attacks", "connections", "sessions_harmed"]
        yield "Attacks", attacks(unharmed(arguments.attacks, fields), fuzz)
    if arguments.load:
        fields = ["sessions", "streams", "handshakes_per_s", "idle_share"]
        yield "Load", load_held(unharmed(arguments.load, fields))


def simulated(path: Path) -> dict[str, Any]:
    """A report of simulated seeds of which none failed."""
    report = load(path, ["faults", "schedulers", "rules", "seeds", "failed"])
    if report["failed"]:
        raise TableError(f"{path}: {report['failed']} seeds failed")
    idle = [name for name, row in report["schedulers"].items() if not row["placed_seeds"]]
    if idle:
        raise TableError(f"{path}: {', '.join(idle)} never chose between paths: run more seeds")
    return report


def fuzzed(path: Path) -> dict[str, Any]:
    """A report of fuzzing that found nothing."""
    report = load(path, ["targets", "seconds"])
    failed = [run["target"] for run in report["targets"] if run["failed"]]
    if failed:
        raise TableError(f"{path}: {', '.join(failed)} failed")
    return report


def unharmed(path: Path, fields: Sequence[str]) -> dict[str, Any]:
    """A report of attacks or load without problems."""
    report = load(path, [*fields, "problems"])
    if report["problems"]:
        raise TableError(f"{path}: {'; '.join(report['problems'])}")
    return report


def real(path: Path) -> dict[str, Any]:
    """A report on real sockets that shows no failure."""
    report = load(path, ["faults", "transfers", "bytes_lost", "memory", "panics", "problems"])
    if report["bytes_lost"] or report["bad_transfers"] or report["panics"]:
        raise TableError(f"{path}: bytes were lost, or a process crashed")
    if report["problems"]:
        raise TableError(f"{path}: {'; '.join(report['problems'])}")
    return report


def judge(path: Path, report: dict[str, Any]) -> None:
    """Refuses faults that slowed others down, or were made too seldom to say."""
    for name, row in report["faults"].items():
        others = row["others_ratio"]
        if others is None and not row.get("stops_everybody"):
            raise TableError(f"{path}: {name} has no goodput of others, and no reason for that")
        if others and row["injected"] < ROUNDS_JUDGED:
            raise TableError(
                f"{path}: {name} was made {row['injected']} times, {ROUNDS_JUDGED} are needed: "
                f"make faults ROUNDS={ROUNDS_JUDGED}"
            )
        if others and others["median"] < LEAST_RATIO:
            raise TableError(
                f"{path}: {name} left the other client {others['median']:.0%} of its goodput, "
                f"at least {LEAST_RATIO:.0%} is wanted"
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 2 if a report shows a failure or cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for kind in KINDS:
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"of `make {kind}`")
    arguments = parser.parse_args(argv)
    if not any(getattr(arguments, kind.replace("-", "_")) for kind in KINDS):
        parser.error("nothing to do: give a report")
    try:
        for heading, table in sections(arguments):
            print(f"## {heading}\n\n{table}\n")
    except TableError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
