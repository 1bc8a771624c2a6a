"""`sumrate-lab faults | soak | attacks | load`."""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sumrate.lab.faults import attacks as strangers
from sumrate.lab.faults.campaign import CLOCK, EXPECTED_S, campaign
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.clock import MISSING, REQUIRED, library, required
from sumrate.lab.faults.fault import FaultNotMadeError
from sumrate.lab.faults.load import CROWD_EXPECTED_S, load
from sumrate.lab.faults.soak import Soak, soak
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
ATTACKS_SCHEMA = "sumrate.lab.attacks.v1"
LOAD_SCHEMA = "sumrate.lab.load.v1"
PROGRAMS = ("ip", "ss", "tc", "nft", "nsenter", "prlimit")
SHORTEST_S = 10.0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the subcommands."""
    sub = commands.add_parser(
        "faults",
        help="cause real faults on real sockets; check for lost bytes, measure recovery",
        description="Causes each fault during transfers in network namespaces, compares every "
        "byte, and measures stalls, recovery and the goodput of a second client. Exit status "
        "1, with a line for each reason: a byte was lost, a process crashed, a transfer failed "
        "that the fault does not affect, or the second client kept less than nine tenths of its "
        "goodput (median of three rounds or more).",
        epilog="example: sumrate-lab faults --rounds 3 --fault server-killed --fault disk-full",
    )
    sub.add_argument(
        "--rounds", type=_positive, default=3, help="times that each fault is caused (3)"
    )
    sub.add_argument(
        "--fault", action="append", choices=sorted(FAULTS), help="only this fault (repeatable)"
    )
    _add_seed_and_report(sub, REPOSITORY / "out" / "faults" / "report.json")
    sub.set_defaults(run=run_faults)

    sub = commands.add_parser(
        "soak",
        help="run random traffic under random faults for hours",
        description="Three sessions transfer files of random size, up and down, under random "
        "faults. Every byte is compared; memory and descriptors are checked for growth. Exit "
        "status 1 if a byte was lost, a process crashed or grew, or a transfer failed that no "
        "fault affects.",
        epilog="example: sumrate-lab soak --time 7200 --seed 4",
    )
    sub.add_argument("--time", type=_seconds, default=7200.0, help="duration in seconds (7200)")
    _add_seed_and_report(sub, REPOSITORY / "out" / "soak-real" / "report.json")
    sub.set_defaults(run=run_soak)
    _add_strangers(commands)


def _add_strangers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser(
        "attacks",
        help="attack a server's port while checked sessions transfer",
        description="Attackers without a credential attack the server's port in several ways, one "
        "after the other, while two sessions transfer and every byte is compared. Exit status 1 "
        "if a session was harmed or an attack had no effect.",
        epilog="example: sumrate-lab attacks --time 10 --attack wrong-proof",
    )
    sub.add_argument("--time", type=_positive, default=10, help="seconds of each attack (10)")
    names = sorted(strangers.KINDS)
    sub.add_argument(
        "--attack", action="append", choices=names, help="only this attack (repeatable)"
    )
    _add_seed_and_report(sub, REPOSITORY / "out" / "attacks" / "report.json")
    sub.set_defaults(run=run_attacks)

    sub = commands.add_parser(
        "load",
        help="run many sessions with many streams; measure handshakes per second",
        description="Starts many clients, each with one session and many downloads. Then makes "
        "full TLS handshakes that the server refuses. Exit status 1 if a session does not "
        "complete, if more than a tenth of the processors is idle during the handshakes, or if a "
        "limit of the server is reached.",
        epilog="example: sumrate-lab load --sessions 100 --streams 10",
    )
    sub.add_argument("--sessions", type=_positive, default=100, help="number of clients (100)")
    sub.add_argument("--streams", type=_positive, default=10, help="downloads of each session (10)")
    sub.add_argument(
        "--bytes", type=_positive, default=1 << 20, help="bytes of each download (1048576)"
    )
    sub.add_argument("--time", type=_positive, default=10, help="seconds of making handshakes (10)")
    _add_report(sub, REPOSITORY / "out" / "load" / "report.json")
    sub.set_defaults(run=run_load)


def _add_seed_and_report(sub: argparse.ArgumentParser, output: Path) -> None:
    sub.add_argument("--seed", type=int, default=1, help="seed of all random choices (1)")
    _add_report(sub, output)


def _add_report(sub: argparse.ArgumentParser, output: Path) -> None:
    sub.add_argument("--output", type=Path, default=output, help="file of the report")
    sub.add_argument("--json", action="store_true", help="print the report as JSON")


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
    if CLOCK in names and library() is None and required():
        print(f"error: {CLOCK}: {MISSING}; {REQUIRED} is set", file=sys.stderr)
        return 2
    if CLOCK in names and library() is None:
        print(f"skipped: {CLOCK}: {MISSING}", file=sys.stderr)
        names = [name for name in names if name != CLOCK]
    progress = Progress(EXPECTED_S * args.rounds * len(names))

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
    progress = Progress(args.time)
    interim = args.output.with_name("so-far.json")

    def so_far(kept: Soak) -> None:
        document = {"schema": SOAK_SCHEMA, "run": provenance(sys.argv), **kept.report()}
        write_json(interim, without_machine_paths(document))

    def work() -> int:
        kept = soak(RUN_FOLDER / "soak", args.time, args.seed, progress, so_far)
        progress.clear()
        if kept.broken_off:
            _keep_logs(RUN_FOLDER / "soak", args.output.parent / "broken-off")
        _deliver(args, SOAK_SCHEMA, kept.report())
        interim.unlink(missing_ok=True)
        return 0 if kept.sound() else 1

    return _isolated(work)


def _keep_logs(folder: Path, kept: Path) -> None:
    """Copies what the processes said; the folder that has it goes with the namespaces."""
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for pattern in ("*.log", "*.json"):
        for found in folder.glob(pattern):
            shutil.copy(found, kept)
    print(f"stopped early; logs of the processes: {kept}", file=sys.stderr)


def run_attacks(args: argparse.Namespace) -> int:
    """Attacks and writes the report."""
    names = args.attack or list(strangers.KINDS)
    left_s = (strangers.EXPECTED_S + args.time) * len(names)
    progress = Progress(left_s)

    def work() -> int:
        found = strangers.attacks(RUN_FOLDER / "attacks", names, args.time, args.seed, progress)
        progress.clear()
        report = strangers.report(found)
        _deliver(args, ATTACKS_SCHEMA, {"seed": args.seed, **report})
        return 1 if report["problems"] else 0

    return _isolated(work)


def run_load(args: argparse.Namespace) -> int:
    """Loads the machine and writes the report."""
    progress = Progress(CROWD_EXPECTED_S + args.time)

    def work() -> int:
        place = RUN_FOLDER / "load"
        size = (args.sessions, args.streams, args.bytes)
        held = load(place, *size, time_s=args.time, progress=progress)
        progress.clear()
        _deliver(args, LOAD_SCHEMA, held.report())
        return 1 if held.problems() else 0

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
    for line in summary(document) if "faults" in document else figures(document):
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
    lines += [f"problem: {line}" for line in report["problems"]]
    for name, count in report.get("without_effect", {}).items():
        lines.append(f"without effect: {name}, {count} times")
    for name, quantities in report.get("growth", {}).items():
        for quantity, seen in quantities.items():
            lines.append(
                f"{name:14}{quantity:14} mean {seen['mean']:14.0f}, "
                f"per hour {seen['per_hour']:+.0f} "
                f"({seen['low']:+.0f} to {seen['high']:+.0f})"
                f"{', GROWS' if f'{name}: {quantity}' in report['growing'] else ''}"
            )
    return lines


def figures(report: dict[str, Any]) -> list[str]:
    """A report of attacks or of load for people."""
    lines = []
    for name, row in report.get("attacks", {}).items():
        lines.append(
            f"{name:14}{row['made']:8} made{row['closed']:8} ended by the server"
            f"{row['answered']:8} answered, {row['transfers']} transfers and "
            f"{row['bytes'] / 1e6:.0f} MB beside it, {row['sessions_harmed']} sessions harmed"
        )
    usual = ("schema", "run", "attacks", "problems")
    lines += [f"{name}: {value}" for name, value in report.items() if name not in usual]
    return lines + [f"problem: {line}" for line in report["problems"]]


def _share(others: dict[str, float] | None) -> str:
    return f"{others['median']:9.0%}" if others else f"{'-':>9}"
