"""The benchmark: Sumrate and kernel MPTCP against the sum of the two links, in five conditions.

In every repetition each link alone (iperf3, one TCP), kernel MPTCP (iperf3 under mptcpize) and
Sumrate (`sumrate bench --reverse`) send from the server to the client under the same condition with
the same seed, each on links made afresh, in an order that rotates from repetition to repetition.
The sum ratio of a repetition is the goodput divided by the sum of the links alone in the same
repetition. A run in which the emulator was late is void: it is repeated up to twice, and if
it is late again its whole repetition is left out of the summary and shown as void.
"""

import argparse
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.conditions import Condition, conditions
from sumrate.lab.endpoints import KernelMptcp, Scheme, SinglePath, Sumrate, Unavailable
from sumrate.lab.lateness import LATE_MS, is_late, worst_lateness_ms
from sumrate.lab.namespaces import IsolationUnavailableError, run_isolated
from sumrate.lab.priority import granted, raise_own
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.programs import REPOSITORY, MissingProgramError, program, require
from sumrate.lab.results import Progress, provenance, rounded, write_json
from sumrate.lab.scene import scene
from sumrate.report.bench_page import bench_page

SCHEMA = "sumrate.lab.bench.v1"
MAX_RETRIES = 2
"""How often a run whose emulator was late is repeated."""
SET_UP_S = 1.5
"""Typical time around a run for making links and starting programs."""


@dataclass(frozen=True)
class Options:
    """What the user asked for; times in seconds."""

    repetitions: int
    seconds: float
    delayed_seconds: float
    warmup_s: float
    seed: int
    congestion_control: str
    only: tuple[str, ...]
    output: Path
    json: bool
    keep: bool


def schemes(condition: Condition) -> list[Scheme]:
    """The links alone first, then what uses them together."""
    alone = [SinglePath(link, f"{link.name} alone") for link in condition.links]
    return [*alone, KernelMptcp(), Sumrate()]


def rotated(items: Sequence[Scheme], by: int) -> list[Scheme]:
    """The same items, starting with another one."""
    start = by % len(items)
    return [*items[start:], *items[:start]]


def measure(
    condition: Condition, scheme: Scheme, seed: int, options: Options, folder: Path
) -> dict[str, Any]:
    """One run of one scheme on fresh links; a failure becomes its entry, never silence."""
    try:
        with scene(
            condition.links,
            seed=seed,
            folder=folder,
            congestion_control=options.congestion_control,
        ) as built:
            settings = built.settings()
            result = scheme.bench(built, condition.seconds, options.warmup_s)
            stats = built.emulator.stats()
    except (ProcessFailedError, RuntimeError) as error:
        return {"error": str(error)}
    return {
        "goodput_mbps": rounded(result.goodput_mbps),
        "command": result.command,
        "details": dict(result.details),
        "settings": settings,
        "seed": seed,
        "emulator": {"worst_lateness_ms": worst_lateness_ms(stats), "stats": stats},
        "void": is_late(stats),
    }


def repetition(
    condition: Condition, number: int, options: Options, work: Path, progress: Progress
) -> dict[str, Any]:
    """All schemes once under one condition with one seed; late runs are tried once more."""
    seed = options.seed + number
    runs: dict[str, Any] = {}
    order = rotated(schemes(condition), number)
    for scheme in order:
        progress.left_s -= condition.seconds + options.warmup_s + SET_UP_S
        progress.show(
            f"{condition.title}, repetition {number + 1}, {scheme.title}",
            condition.seconds + options.warmup_s,
        )
        try:
            scheme.check()
        except Unavailable as reason:
            runs[scheme.name] = {"missing": str(reason)}
            continue
        folder = work / f"{condition.name}-{number}-{scheme.name}"
        entry = measure(condition, scheme, seed, options, folder)
        late: list[float | None] = []
        while entry.get("void") and len(late) < MAX_RETRIES:
            late.append(entry["emulator"]["worst_lateness_ms"])
            entry = measure(condition, scheme, seed, options, folder)
        if late:
            entry["void_before_ms"] = late
        runs[scheme.name] = entry
    total = sum(runs[link.name].get("goodput_mbps", 0.0) for link in condition.links)
    complete = all("goodput_mbps" in runs[link.name] for link in condition.links) and total > 0
    return {
        "seed": seed,
        "order": [scheme.name for scheme in order],
        "sum_of_links_mbps": rounded(total) if complete else None,
        "void": any(run.get("void", False) for run in runs.values()),
        "runs": runs,
    }


def spread(values: list[float]) -> dict[str, float] | None:
    """Median and range, or None without values."""
    if not values:
        return None
    return {
        "median": rounded(statistics.median(values), 4),
        "min": rounded(min(values), 4),
        "max": rounded(max(values), 4),
    }


def summarise(condition: Condition, repetitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians and ranges over the repetitions that are not void."""
    counted = [r for r in repetitions if not r["void"]]
    goodput, ratio = {}, {}
    for scheme in schemes(condition):
        done = [r for r in counted if "goodput_mbps" in r["runs"][scheme.name]]
        goodput[scheme.name] = spread([r["runs"][scheme.name]["goodput_mbps"] for r in done])
        if not isinstance(scheme, SinglePath):
            ratio[scheme.name] = spread(
                [
                    r["runs"][scheme.name]["goodput_mbps"] / r["sum_of_links_mbps"]
                    for r in done
                    if r["sum_of_links_mbps"]
                ]
            )
    return {
        "title": condition.title,
        "seconds": condition.seconds,
        "links": [
            {
                "name": link.name,
                "rate_mbps": link.down.rate_mbps,
                "rtt_ms": link.down.delay_ms + link.up.delay_ms,
                "queue_ms": link.down.queue_ms,
                "loss": link.down.loss,
            }
            for link in condition.links
        ],
        "goodput_mbps": goodput,
        "sum_ratio": ratio,
        "void_repetitions": len(repetitions) - len(counted),
        "repetitions": repetitions,
    }


def measure_all(options: Options, work: Path) -> dict[str, Any]:
    """Runs every condition and gives the whole result."""
    every = conditions(options.seconds, options.delayed_seconds)
    chosen = [c for c in every if not options.only or c.name in options.only]
    total = sum(
        (c.seconds + options.warmup_s + SET_UP_S) * len(schemes(c)) * options.repetitions
        for c in chosen
    )
    progress = Progress(total, quiet=options.json)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        **provenance(sys.argv),
        "sampler_real_time": granted(),
        "congestion_control": options.congestion_control,
        "warmup_s": options.warmup_s,
        "definition": " ".join((__doc__ or "").split("\n\n", 1)[1].split()),
        "conditions": {},
    }
    for condition in chosen:
        done = [
            repetition(condition, number, options, work, progress)
            for number in range(options.repetitions)
        ]
        document["conditions"][condition.name] = summarise(condition, done)
    progress.clear()
    return document


def cell(values: dict[str, float] | None, pattern: str) -> str:
    """Median and range as text."""
    if values is None:
        return "-"
    parts = [pattern.format(values[key]) for key in ("median", "min", "max")]
    return f"{parts[0]} ({parts[1]}-{parts[2]})"


def summary(document: dict[str, Any]) -> str:
    """The table that is printed: medians with their range."""
    lines = [
        f"{'sum ratio: median (min-max)':28}{'links alone, Mbit/s':>22}"
        f"{'kernel MPTCP':>20}{'Sumrate':>20}"
    ]
    for entry in document["conditions"].values():
        alone = [entry["goodput_mbps"][link["name"]] for link in entry["links"]]
        text = " + ".join("-" if a is None else f"{a['median']:.0f}" for a in alone)
        void = f"  {entry['void_repetitions']} void" if entry["void_repetitions"] else ""
        lines.append(
            f"{entry['title']:28}{text:>22}"
            f"{cell(entry['sum_ratio']['mptcp'], '{:.2f}'):>20}"
            f"{cell(entry['sum_ratio']['sumrate'], '{:.3f}'):>20}{void}"
        )
    return "\n".join([*lines, *late_runs(document), *problems(document)])


def late_runs(document: dict[str, Any]) -> list[str]:
    """The void runs, in words."""
    found = []
    for name, entry in document["conditions"].items():
        for number, done in enumerate(entry["repetitions"]):
            for scheme, run in done["runs"].items():
                if run.get("void"):
                    late = run["emulator"]["worst_lateness_ms"]
                    found.append(
                        f"VOID {name}, repetition {number + 1}, {scheme}: the emulator was {late} "
                        f"ms late (limit {LATE_MS:g} ms); run it on an idle machine"
                    )
    return found


def problems(document: dict[str, Any]) -> list[str]:
    """Every run that failed or could not be made, in words."""
    found = []
    for name, entry in document["conditions"].items():
        for number, done in enumerate(entry["repetitions"]):
            for scheme, run in done["runs"].items():
                reason = run.get("error") or run.get("missing")
                if reason:
                    kind = "FAILED" if "error" in run else "missing"
                    found.append(f"{kind} {name}, repetition {number + 1}, {scheme}: {reason}")
    return found


def body(options: Options) -> int:
    """Everything that happens inside the private namespaces."""
    raise_own()
    work = options.output / "work" if options.keep else Path("/run/sumrate-lab")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    document = measure_all(options, work)
    result, report = options.output / "result.json", options.output / "report.html"
    write_json(result, document)
    report.write_text(bench_page(document), encoding="utf-8")
    if options.json:
        print(result.read_text(encoding="utf-8"), end="")
    else:
        print(summary(document))
        print(f"\nresult: {result}\nreport: {report}")
    lacking = [p for p in problems(document) if "kernel has no MPTCP" not in p]
    return 1 if lacking else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the benchmark's flags."""
    parser.add_argument("--repetitions", type=int, default=5, help="of every condition (5)")
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--time", type=float, default=10.0, help="seconds per run (10)")
    parser.add_argument(
        "--delayed-time", type=float, default=30.0, help="seconds per run with +500 ms (30)"
    )
    parser.add_argument("--warmup", type=float, default=0.0, help="seconds left out at the start")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first repetition")
    parser.add_argument("--cc", default="cubic", help="congestion control of all schemes (cubic)")
    parser.add_argument(
        "--condition",
        action="append",
        default=[],
        choices=[c.name for c in conditions(1, 1)],
        help="only this condition (repeatable)",
    )
    parser.add_argument("--output", type=Path, default=REPOSITORY / "out" / "bench")
    parser.add_argument("--json", action="store_true", help="print the result instead of a table")
    parser.add_argument("--keep", action="store_true", help="keep logs and configurations")


def run(args: argparse.Namespace) -> int:
    """Runs the benchmark in private namespaces."""
    options = Options(
        repetitions=1 if args.quick else max(1, args.repetitions),
        seconds=args.time,
        delayed_seconds=args.delayed_time,
        warmup_s=args.warmup,
        seed=args.seed,
        congestion_control=args.cc,
        only=tuple(args.condition),
        output=args.output.resolve(),
        json=args.json,
        keep=args.keep,
    )
    try:
        require("ip", "ss", "nsenter", "sysctl", "iperf3")
        program("sumrate-link")
        options.output.mkdir(parents=True, exist_ok=True)
        return run_isolated(lambda: body(options))
    except (MissingProgramError, IsolationUnavailableError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
