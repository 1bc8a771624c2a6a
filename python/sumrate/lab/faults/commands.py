"""`sumrate-lab faults | soak`."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sumrate.lab.faults.campaign import CLOCK, EXPECTED_S, campaign
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.clock import library
from sumrate.lab.faults.fault import FaultNotMadeError
from sumrate.lab.faults.soak import soak
from sumrate.lab.namespaces import IsolationUnavailableError, run_isolated
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.programs import (
    REPOSITORY,
    RUN_FOLDER,
    MissingProgramError,
    program,
    require,
    without_machine_paths,
)
from sumrate.lab.results import Progress, provenance, write_json

FAULTS_SCHEMA = "sumrate.lab.faults.v1"
SOAK_SCHEMA = "sumrate.lab.soak.v1"
PROGRAMS = ("ip", "ss", "tc", "nft", "nsenter", "prlimit")
SHORTEST_S = 10.0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the subcommands."""
    sub = commands.add_parser(
        "faults",
        help="every real fault on real sockets: what is lost, how long recovery takes",
        description="Makes every fault beside busy sessions in namespaces of its own, "
        "compares every byte, and measures stalls, recovery and the goodput of others. Exit "
        "status 1 if a byte was lost or a process crashed.",
        epilog="example: sumrate-lab faults --rounds 3 --fault server-killed --fault disk-full",
    )
    sub.add_argument("--rounds", type=_positive, default=3, help="how often each is made (3)")
    sub.add_argument("--fault", action="append", choices=sorted(FAULTS), help="only this one")
    _add_usual(sub, REPOSITORY / "out" / "faults" / "report.json")
    sub.set_defaults(run=run_faults)

    sub = commands.add_parser(
        "soak",
        help="random traffic under random faults for a long time",
        description="Transfers of random size, up and down, in three sessions, while faults are "
        "made at random: every byte is compared, memory and descriptors are watched for growth. "
        "Exit status 1 if a byte was lost, a process crashed or something grows.",
        epilog="example: sumrate-lab soak --time 7200 --seed 4",
    )
    sub.add_argument("--time", type=_seconds, default=7200.0, help="seconds (7200)")
    _add_usual(sub, REPOSITORY / "out" / "soak-real" / "report.json")
    sub.set_defaults(run=run_soak)


def _add_usual(sub: argparse.ArgumentParser, output: Path) -> None:
    sub.add_argument("--seed", type=int, default=1, help="of all that is drawn (1)")
    sub.add_argument("--output", type=Path, default=output, help="the report")
    sub.add_argument("--json", action="store_true", help="print the report")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not value >= SHORTEST_S:
        raise argparse.ArgumentTypeError(f"{text}: at least {SHORTEST_S:g} s are needed")
    return value


def run_faults(args: argparse.Namespace) -> int:
    """Makes the faults and writes the report."""
    names = args.fault or list(FAULTS)
    if CLOCK in names and library() is None:
        print(f"left out: {CLOCK} (libfaketime is not installed)", file=sys.stderr)
        names = [name for name in names if name != CLOCK]
    progress = Progress(EXPECTED_S * args.rounds * len(names), quiet=args.json)

    def work() -> int:
        found = campaign(RUN_FOLDER / "faults", names, args.rounds, args.seed, progress)
        progress.clear()
        rows = {name: account.row(FAULTS[name]) for name, account in found.accounts.items()}
        report = {"seed": args.seed, "rounds": args.rounds, "faults": rows, **found.report()}
        _deliver(args, FAULTS_SCHEMA, report)
        return 0 if found.sound() else 1

    return _isolated(work)


def run_soak(args: argparse.Namespace) -> int:
    """Soaks and writes the report."""
    progress = Progress(args.time, quiet=args.json)

    def work() -> int:
        kept = soak(RUN_FOLDER / "soak", args.time, args.seed, progress)
        progress.clear()
        _deliver(args, SOAK_SCHEMA, kept.report())
        return 0 if kept.sound() else 1

    return _isolated(work)


def _isolated(work: Callable[[], int]) -> int:
    """Runs it in private namespaces; what cannot start or fails is said in a line."""

    def guarded() -> int:
        try:
            return work()
        except (FaultNotMadeError, ProcessFailedError, RuntimeError) as error:
            print(f"\nerror: {error}", file=sys.stderr)
            return 1

    try:
        require(*PROGRAMS)
        program("sumrate")
        return run_isolated(guarded)
    except (IsolationUnavailableError, MissingProgramError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _deliver(args: argparse.Namespace, schema: str, report: dict[str, Any]) -> None:
    """Writes the report, and prints it as JSON or in lines."""
    document = without_machine_paths({"schema": schema, "run": provenance(sys.argv), **report})
    write_json(args.output, document)
    if args.json:
        print(json.dumps(document, indent=1))
        return
    for line in summary(document):
        print(line)
    print(f"report: {args.output}")


def summary(report: dict[str, Any]) -> list[str]:
    """A report for people."""
    lines = [f"{'fault':24}{'times':>7}{'MB':>9}{'stall ms':>10}{'recovery ms':>13}{'others':>9}"]
    for name, row in report["faults"].items():
        if row["injected"]:
            others = row["others_ratio"]
            lines.append(
                f"{name:24}{row['injected']:7}{row['bytes'] / 1e6:9.0f}"
                f"{row['longest_stall_ms']:10.0f}{row['longest_recovery_ms']:13.0f}"
                f"{_share(others)}"
            )
    told = sum(report["transfers"].get(kind, 0) for kind in ("refused", "broken"))
    lines.append(
        f"{sum(report['transfers'].values())} transfers, {report['bytes'] / 1e6:.0f} MB compared, "
        f"{report['bytes_lost']} bytes lost, {told} transfers ended early and said so, "
        f"{len(report['bad_transfers'])} bad ones, {len(report['panics'])} panics"
    )
    lines += [f"bad: {json.dumps(bad)}" for bad in report["bad_transfers"][:10]]
    lines += [f"panic: {line}" for line in report["panics"][:10]]
    for name, quantities in report.get("growth", {}).items():
        for quantity, seen in quantities.items():
            lines.append(
                f"{name:14}{quantity:14} mean {seen['mean']:14.0f}, "
                f"per hour {seen['per_hour']:+.0f} "
                f"({seen['low']:+.0f} to {seen['high']:+.0f})"
                f"{', GROWS' if f'{name}: {quantity}' in report['growing'] else ''}"
            )
    return lines


def _share(others: dict[str, float] | None) -> str:
    return f"{others['median']:9.0%}" if others else f"{'-':>9}"
