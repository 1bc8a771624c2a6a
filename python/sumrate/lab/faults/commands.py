"""`sumrate-lab faults | soak | attacks | load`."""

import json
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from sumrate.lab.faults import attacks as strangers
from sumrate.lab.faults.campaign import CLOCK, EXPECTED_S, campaign
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.clock import MISSING, REQUIRED, library, required
from sumrate.lab.faults.fault import FaultNotMadeError
from sumrate.lab.faults.load import CROWD_EXPECTED_S
from sumrate.lab.faults.load import load as run_load
from sumrate.lab.faults.soak import Soak
from sumrate.lab.faults.soak import soak as run_soak
from sumrate.lab.namespaces import run_isolated
from sumrate.lab.options import Json, Positive, Report, Seed
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.programs import (
    REPOSITORY,
    RUN_FOLDER,
    program,
    require,
    without_machine_paths,
)
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import Progress, provenance, write_json

OUT = REPOSITORY / "out"
PROGRAMS = ("ip", "ss", "tc", "nft", "nsenter", "prlimit")
SHORTEST_S = 10.0


def faults(
    *,
    rounds: Positive = 3,
    fault: tuple[str, ...] = (),
    seed: Seed = 1,
    output: Report = OUT / "faults" / "report.json",
    as_json: Json = False,
) -> int:
    """Cause real faults on real sockets; check for lost bytes, measure recovery.

    Causes each fault during transfers in network namespaces, compares every byte, and measures
    stalls, recovery and the goodput of a second client. Exit status 1, with a line for each
    reason: a byte was lost, a process crashed, a transfer failed that the fault does not affect,
    or the second client kept less than nine tenths of its goodput (median of three rounds or
    more).

    Example: sumrate-lab faults --rounds 3 --fault server-killed --fault disk-full

    Args:
        rounds: Times that each fault is caused.
        fault: Only this fault (repeatable).

    """
    names = _chosen("fault", fault, FAULTS)
    if CLOCK in names and library() is None:
        if required():
            raise RefusedError(f"{CLOCK}: {MISSING}; {REQUIRED} is set")
        print(f"skipped: {CLOCK}: {MISSING}", file=sys.stderr)
        names = [name for name in names if name != CLOCK]
    progress = Progress(EXPECTED_S * rounds * len(names))

    def work() -> int:
        found = campaign(RUN_FOLDER / "faults", names, rounds, seed, progress)
        progress.clear()
        rows = {name: account.row(FAULTS[name]) for name, account in found.accounts.items()}
        report = {"seed": seed, "rounds": rounds, "faults": rows, **found.report()}
        _deliver("faults", report, output, as_json=as_json)
        return 0 if found.sound() else 1

    return _isolated(work)


def soak(
    *,
    time: Annotated[float, Parameter(validator=Number(gte=SHORTEST_S))] = 7200.0,
    seed: Seed = 1,
    output: Report = OUT / "soak-real" / "report.json",
    as_json: Json = False,
) -> int:
    """Run random traffic under random faults for hours.

    Three sessions transfer files of random size, up and down, under random faults. Every byte is
    compared; memory and descriptors are checked for growth. Exit status 1 if a byte was lost, a
    process crashed or grew, or a transfer failed that no fault affects.

    Example: sumrate-lab soak --time 7200 --seed 4

    Args:
        time: Duration in seconds.

    """
    progress = Progress(time)
    interim = output.with_name("so-far.json")

    def so_far(kept: Soak) -> None:
        write_json(interim, _document("soak", kept.report()))

    def work() -> int:
        kept = run_soak(RUN_FOLDER / "soak", time, seed, progress, so_far)
        progress.clear()
        if kept.broken_off:
            _keep_logs(RUN_FOLDER / "soak", output.parent / "broken-off")
        _deliver("soak", kept.report(), output, as_json=as_json)
        interim.unlink(missing_ok=True)
        return 0 if kept.sound() else 1

    return _isolated(work)


def _keep_logs(folder: Path, kept: Path) -> None:
    """Copies the logs of the processes; their folder vanishes with the namespaces."""
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for pattern in ("*.log", "*.json"):
        for found in folder.glob(pattern):
            shutil.copy(found, kept)
    print(f"stopped early; logs of the processes: {kept}", file=sys.stderr)


def attacks(
    *,
    time: Positive = 10,
    attack: tuple[str, ...] = (),
    seed: Seed = 1,
    output: Report = OUT / "attacks" / "report.json",
    as_json: Json = False,
) -> int:
    """Attack a server's port while checked sessions transfer.

    Attackers without a credential attack the server's port in several ways, one after the other,
    while two sessions transfer and every byte is compared. Exit status 1 if a session was harmed
    or an attack had no effect.

    Example: sumrate-lab attacks --time 10 --attack wrong-proof

    Args:
        time: Seconds of each attack.
        attack: Only this attack (repeatable).

    """
    names = _chosen("attack", attack, strangers.KINDS)
    progress = Progress((strangers.EXPECTED_S + time) * len(names))

    def work() -> int:
        found = strangers.attacks(RUN_FOLDER / "attacks", names, time, seed, progress)
        progress.clear()
        report = strangers.report(found)
        _deliver("attacks", {"seed": seed, **report}, output, as_json=as_json)
        return 1 if report["problems"] else 0

    return _isolated(work)


def load(
    *,
    sessions: Positive = 100,
    streams: Positive = 10,
    stream_bytes: Annotated[Positive, Parameter(name="--bytes")] = 1 << 20,
    time: Positive = 10,
    output: Report = OUT / "load" / "report.json",
    as_json: Json = False,
) -> int:
    """Run many sessions with many streams; measure handshakes per second.

    Starts many clients, each with one session and many downloads. Then makes full TLS handshakes
    that the server refuses. Exit status 1 if a session does not complete, if more than a tenth of
    the processors is idle during the handshakes, or if a limit of the server is reached.

    Example: sumrate-lab load --sessions 100 --streams 10

    Args:
        sessions: Number of clients.
        streams: Downloads of each session.
        stream_bytes: Bytes of each download.
        time: Seconds of making handshakes.

    """
    progress = Progress(CROWD_EXPECTED_S + time)

    def work() -> int:
        size = (sessions, streams, stream_bytes)
        held = run_load(RUN_FOLDER / "load", *size, time_s=time, progress=progress)
        progress.clear()
        _deliver("load", held.report(), output, as_json=as_json)
        return 1 if held.problems() else 0

    return _isolated(work)


def _chosen(kind: str, wanted: Sequence[str], known: Collection[str]) -> list[str]:
    """The names that were asked for, all if none was.

    Raises RefusedError: there is no such fault or attack.
    """
    for name in wanted:
        if name not in known:
            raise RefusedError(f"no {kind} `{name}`; there are {', '.join(sorted(known))}")
    return [*(wanted or known)]


def _isolated(work: Callable[[], int]) -> int:
    """Runs it in private namespaces; a failure becomes a line on stderr."""

    def guarded() -> int:
        try:
            return work()
        except (FaultNotMadeError, ProcessFailedError, RuntimeError) as error:
            print(f"\nerror: {error}", file=sys.stderr)
            return 1

    require(*PROGRAMS)
    program("sumrate")
    return run_isolated(guarded)


def _document(kind: str, report: dict[str, Any]) -> dict[str, Any]:
    schema = f"sumrate.lab.{kind}.v1"
    return without_machine_paths({"schema": schema, "run": provenance(sys.argv), **report})


def _deliver(kind: str, report: dict[str, Any], output: Path, *, as_json: bool) -> None:
    """Writes the report, and prints it as JSON or in lines."""
    document = _document(kind, report)
    write_json(output, document)
    if as_json:
        print(json.dumps(document, indent=1))
        return
    for line in summary(document) if "faults" in document else figures(document):
        print(line)
    print(f"report: {output}")


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
