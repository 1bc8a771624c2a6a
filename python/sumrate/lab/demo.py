"""The demo: one real file by plain curl over WiFi, WiGig, kernel MPTCP and Sumrate.

WiGig is blocked between seconds 2 and 4 of every transfer, counted from its first byte. Exit codes:
0 measured, 1 failed, 4 void, because this machine was too slow or too busy for the rates.
"""

import argparse
import os
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.blockage import BLOCKAGE, DEFINITION, MARGIN_S, describe, sum_ratio
from sumrate.lab.endpoints import KernelMptcp, Scheme, SinglePath, Sumrate, Unavailable
from sumrate.lab.lateness import LATE_MS, why_late, worst_lateness_ms
from sumrate.lab.links import Emulator
from sumrate.lab.machine_load import busy_before
from sumrate.lab.measure import Curve, watch
from sumrate.lab.namespaces import IsolationUnavailableError, run_isolated
from sumrate.lab.payload import NoRoomError, Payload, Sink, make_payload, storage
from sumrate.lab.priority import granted, raise_own
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import REPOSITORY, MissingProgramError, program, require
from sumrate.lab.results import Progress, provenance, write_json
from sumrate.lab.scene import Scene, radio, scene
from sumrate.lab.traffic import Probe
from sumrate.report.demo_page import demo_page

SCHEMA = "sumrate.lab.demo.v1"
VOID = 4
"""Exit status where the emulator was late in some transfer, and in each that was made instead."""
WIFI = radio("wifi", 1, 630.0, 3.0, *())
WIGIG = radio("wigig", 2, 1800.0, 2.0, BLOCKAGE)
LINKS = (WIFI, WIGIG)
SCHEMES: tuple[Scheme, ...] = (
    SinglePath(WIFI, "WiFi alone"),
    SinglePath(WIGIG, "WiGig alone"),
    KernelMptcp(),
    Sumrate(),
)
EXPECTED_MBPS = {"wifi": 600.0, "wigig": 1350.0, "mptcp": 1750.0, "sumrate": 1950.0}
TIMEOUT_FACTOR = 6.0
MAX_RETRIES = 2
"""How often a transfer whose emulator was late is made again."""
PROBE_S = 1.0
"""When the connections are looked at, seconds after the first byte."""


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    size: int
    seed: int
    output: Path
    only: tuple[str, ...]
    json: bool
    keep: bool


@dataclass(frozen=True)
class Outcome:
    """One scheme's entry in the result, and its curve if it finished."""

    entry: dict[str, Any]
    curve: Curve | None


class Transfer:
    """One download by one scheme, with everything that is recorded beside it."""

    def __init__(self, scheme: Scheme, payload: Payload, built: Scene, progress: Progress) -> None:
        """Prepares the transfer in a scene."""
        self.scheme = scheme
        self.payload = payload
        self.scene = built
        self.progress = progress
        self.probe = Probe(built.server)
        self._shown_s = -1.0

    def run(self, sink: Sink) -> Outcome:
        """Downloads into `sink` and verifies the checksum after the clock has stopped."""
        expected_s = self.payload.size * 8e-6 / EXPECTED_MBPS[self.scheme.name]
        with self.scheme.download(self.scene, self.payload) as ready:
            log = self.scene.folder / "curl.log"
            with Process(ready.curl, log=log, host=self.scene.client, stdout=sink.file) as curl:
                curve = watch(
                    curl,
                    sink.received,
                    timeout_s=30 + TIMEOUT_FACTOR * expected_s,
                    on_first_byte=self.scene.emulator.trigger,
                    on_sample=lambda at, size: self._sampled(at, size, expected_s),
                )
            stats = self.scene.emulator.stats()
            settings = self.scene.settings()
        self.progress.show(f"{self.scheme.title}: verifying the checksum")
        same = sink.matches(self.payload)
        cpu = {"curl": curl.cpu_seconds}
        if isinstance(emulator := self.scene.emulator, Emulator):
            emulator.process.stop()
            cpu["sumrate-link"] = emulator.process.cpu_seconds
        cpu.update({name: process.cpu_seconds for name, process in ready.processes.items()})
        late = why_late(stats)
        entry = {
            **describe(curve, self.scheme.name),
            "sha256_ok": same,
            "command": f"{curl.command_line} 1<> {sink.path.name}",
            "other_commands": ready.commands,
            "cpu_seconds": cpu,
            "connections": self.probe.connections(),
            "tcp_settings": settings,
            "emulator": {"worst_lateness_ms": worst_lateness_ms(stats), "stats": stats},
            "void": late is not None,
        }
        if late:
            entry["void_reason"] = late
        return Outcome(entry, curve)

    def _sampled(self, at_s: float, size: int, expected_s: float) -> None:
        if at_s >= PROBE_S:
            self.probe.fire()
        if at_s - self._shown_s >= 0.5 or self._shown_s < 0:
            self._shown_s = at_s
            done = size / self.payload.size
            self.progress.show(
                f"{self.scheme.title}: {done:4.0%}", max(0.0, expected_s * (1 - done))
            )


@dataclass(frozen=True)
class Files:
    """What is sent, and where it is received, in every scheme."""

    payload: Payload
    sink: Sink


def one_scheme(
    scheme: Scheme, files: Files, options: Options, work: Path, progress: Progress
) -> Outcome:
    """Runs one scheme in a scene of its own; a failure becomes its entry, never silence."""
    try:
        scheme.check()
    except Unavailable as reason:
        return Outcome({"missing": str(reason)}, None)
    files.sink.clear()
    try:
        with scene(LINKS, seed=options.seed, folder=work / scheme.name) as built:
            return Transfer(scheme, files.payload, built, progress).run(files.sink)
    except (ProcessFailedError, RuntimeError) as error:
        return Outcome({"error": str(error)}, None)


def on_time(
    scheme: Scheme, files: Files, options: Options, work: Path, progress: Progress
) -> Outcome:
    """Runs one scheme; a transfer during which the emulator was late is made again."""
    outcome = one_scheme(scheme, files, options, work, progress)
    late: list[float | None] = []
    while outcome.entry.get("void") and len(late) < MAX_RETRIES:
        late.append(outcome.entry["emulator"]["worst_lateness_ms"])
        outcome = one_scheme(scheme, files, options, work, progress)
    if late:
        outcome.entry["void_before_ms"] = late
    return outcome


def whole(value: float | None) -> str:
    """A number without decimals; a dash for what was not measured."""
    return "-" if value is None else f"{value:.0f}"


def summary(document: dict[str, Any]) -> str:
    """The table that is printed."""
    lines = [
        f"{'':14}{'goodput':>10}{'outside':>10}{'blocked':>10}{'longest':>10}{'sha256':>8}",
        f"{'':14}{'Mbit/s':>10}{'Mbit/s':>10}{'Mbit/s':>10}{'stall ms':>10}",
    ]
    titles = {scheme.name: scheme.title for scheme in SCHEMES}
    for name, entry in document["schemes"].items():
        problem = entry.get("missing") or entry.get("error")
        if problem:
            lines.append(f"{titles[name]:14}{'missing' if 'missing' in entry else 'failed':>10}")
            lines.append(f"    {problem}")
            continue
        lines.append(
            f"{titles[name]:14}{whole(entry['goodput_mbps']):>10}"
            f"{whole(entry['goodput_outside_blockage_mbps']):>10}"
            f"{whole(entry['goodput_during_blockage_mbps']):>10}"
            f"{whole(entry['longest_stall_ms']):>10}"
            f"{'ok' if entry['sha256_ok'] else 'WRONG':>8}{'  VOID' if entry['void'] else ''}"
        )
    ratio, bare = document["sum_ratio"], document["sum_ratio_without_margin"]
    lines.append("")
    if ratio is None:
        lines.append("sum ratio: unknown, because a scheme is missing")
    else:
        lines.append(
            f"sum ratio outside the blockage: {ratio:.3f} (without any margin: {bare:.3f})"
        )
    lines.extend(
        f"VOID: {titles[name]}: {entry['void_reason']}: this machine was too slow or too busy for "
        "the rates; run it again with nothing else running."
        for name, entry in document["schemes"].items()
        if entry.get("void")
    )
    return "\n".join(lines)


def failures(document: dict[str, Any]) -> list[str]:
    """What keeps the run from counting as a success: failed schemes and wrong checksums."""
    found = []
    for name, entry in document["schemes"].items():
        if "error" in entry:
            found.append(f"{name}: {entry['error']}")
        elif entry.get("missing"):
            if name != "mptcp":
                found.append(f"{name}: {entry['missing']}")
        elif not entry["sha256_ok"]:
            found.append(f"{name}: the received file differs from the one that was sent")
    return found


def status(document: dict[str, Any]) -> int:
    """The exit status that goes with a result."""
    if failures(document):
        return 1
    return VOID if any(entry.get("void") for entry in document["schemes"].values()) else 0


def measure_all(options: Options, work: Path) -> dict[str, Any]:
    """Runs the schemes one after the other and gives the whole result."""
    chosen = [s for s in SCHEMES if not options.only or s.name in options.only]
    megabits = options.size * 8e-6
    cost = {s.name: megabits / EXPECTED_MBPS[s.name] + 3 + megabits / 12e3 for s in chosen}
    generation_s = options.size / 200e6
    progress = Progress(sum(cost.values()) + generation_s)
    busy = busy_before()
    folder, kind = storage(work / "files", options.size, options.output / "files")
    progress.show(f"making a file of {options.size / 2**20:.0f} MiB")
    document: dict[str, Any] = {
        "schema": SCHEMA,
        **provenance(sys.argv),
        "sampler_real_time": granted(),
        "busy_before": busy,
    }
    outcomes: dict[str, Outcome] = {}
    try:
        payload = make_payload(folder / "file.bin", options.size, options.seed)
        files = Files(payload, Sink(folder / "received.bin", options.size))
        progress.left_s -= generation_s
        for scheme in chosen:
            progress.left_s -= cost[scheme.name]
            outcomes[scheme.name] = on_time(scheme, files, options, work, progress)
    finally:
        progress.clear()
        if kind == "disk":
            shutil.rmtree(folder, ignore_errors=True)
    curves = {name: outcome.curve for name, outcome in outcomes.items() if outcome.curve}
    document |= {
        "file": {"bytes": payload.size, "sha256": payload.sha256, "kept_in": kind},
        "seed": options.seed,
        "blockage": {"link": WIGIG.name, "start_s": BLOCKAGE.start_s, "end_s": BLOCKAGE.end_s},
        "links": [
            {
                "name": link.name,
                "rate_mbps": link.down.rate_mbps,
                "rtt_ms": link.down.delay_ms + link.up.delay_ms,
                "queue_ms": link.down.queue_ms,
            }
            for link in LINKS
        ],
        "congestion_control": "cubic",
        "tcp_settings": next(
            (o.entry["tcp_settings"] for o in outcomes.values() if "tcp_settings" in o.entry), {}
        ),
        "sum_ratio": sum_ratio(curves, MARGIN_S),
        "sum_ratio_without_margin": sum_ratio(curves, 0.0),
        "sum_ratio_definition": DEFINITION,
        "late_limit_ms": LATE_MS,
        "schemes": {name: outcome.entry for name, outcome in outcomes.items()},
    }
    return document


def body(options: Options) -> int:
    """Everything that happens inside the private namespaces."""
    raise_own()
    with ExitStack() as stack:
        if options.keep:
            work = options.output / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
        else:
            work = Path("/run/sumrate-lab")  # on the private tmpfs: gone with the processes
            work.mkdir()
            stack.callback(shutil.rmtree, work, ignore_errors=True)
        try:
            document = measure_all(options, work)
        except (NoRoomError, MissingProgramError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    write_json(options.output / "result.json", document)
    page = options.output / "report.html"
    page.write_text(demo_page(document), encoding="utf-8")
    if options.json:
        print((options.output / "result.json").read_text(encoding="utf-8"), end="")
    else:
        print(summary(document))
        print(f"\nresult: {options.output / 'result.json'}\nreport: {page}")
    for problem in failures(document):
        print(f"FAILED {problem}", file=sys.stderr)
    return status(document)


def size_in_bytes(text: str) -> int:
    """Reads a size such as 2G, 512M or 1048576."""
    units = {"K": 10, "M": 20, "G": 30}
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if unit and unit not in units:
        raise argparse.ArgumentTypeError(f"{text}: use a number with K, M or G, such as 2G")
    try:
        size = int(float(number) * (1 << units.get(unit, 0)))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: use a number with K, M or G") from None
    if size < 1 << 20:
        raise argparse.ArgumentTypeError(f"{text}: at least 1M, or there is nothing to measure")
    return size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the demo's flags."""
    parser.add_argument("--size", type=size_in_bytes, default=2 << 30, help="file size (2G)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the file and of the emulator")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "out" / "demo")
    parser.add_argument(
        "--scheme",
        action="append",
        default=[],
        choices=[s.name for s in SCHEMES],
        help="only this scheme (repeatable)",
    )
    parser.add_argument("--json", action="store_true", help="print the result instead of a table")
    parser.add_argument("--keep", action="store_true", help="keep logs and configurations")


def run(args: argparse.Namespace) -> int:
    """Runs the demo in private namespaces."""
    options = Options(
        size=args.size,
        seed=args.seed,
        output=args.output.resolve(),
        only=tuple(args.scheme),
        json=args.json,
        keep=args.keep,
    )
    try:
        require("ip", "ss", "nsenter", "sysctl", "curl")
        program("sumrate-link")
        options.output.mkdir(parents=True, exist_ok=True)
        return run_isolated(lambda: body(options))
    except (MissingProgramError, IsolationUnavailableError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def main() -> int:
    """Entry point of `python -m sumrate.lab.demo`."""
    parser = argparse.ArgumentParser(prog="sumrate-lab demo", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
