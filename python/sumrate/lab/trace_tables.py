"""`sumrate-lab trace contention | calibrate`: tables of many link traces, those of docs/traces.md.

`contention` says what access protocols and other clients leave of a scene; `calibrate` sets the
scenes of the thesis beside what was measured there.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from sumrate.lab.trace_command import contests, refined, refusing, simulated
from sumrate.phy.parameters import whole
from sumrate.traces.access_delay import PROTOCOLS, AccessDelay
from sumrate.traces.calibration import MEASURED, number
from sumrate.traces.course import make
from sumrate.traces.measure import Statistics, pooled
from sumrate.traces.scenarios import scene
from sumrate.traces.scene import Scene

TITLES = {"alone": "alone", "jpoc": "JPOC", "dot11ad": "802.11ad"}
THESIS = {
    "thesis-los": ("wigig-los", 30),
    "thesis-nlos": ("wigig-nlos", 10),
    "thesis-mobility": ("wigig-mobility", 4),
}
"""Scenes with what was measured there, and from how many seeds on their statistics settle."""
MEASURED_S = 370.0
"""How long was measured."""


@dataclass(frozen=True)
class Row:
    """Several traces of one scene under one access protocol."""

    clients: int
    access: str
    rate_mbps: float
    """Mean, of IP bytes."""
    outage: float
    """Share of the time."""
    longest_s: float
    """Outage."""
    interval_s: float | None
    """Mean time between two contests of the client; None if there was none."""


def add_commands(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `contention` and `calibrate`."""
    sub = kinds.add_parser(
        "contention",
        help="compare the goodput of a scene over access protocols and numbers of clients",
        epilog="example: sumrate-lab trace contention thesis-mobility --clients 4 16",
    )
    sub.add_argument("scenario", nargs="?", default="thesis-mobility", metavar="SCENARIO")
    sub.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8, 16], metavar="N")
    sub.add_argument("--access", nargs="+", choices=PROTOCOLS, default=list(TITLES))
    sub.add_argument("--seconds", type=float, default=120.0, help="length of each trace (120)")
    sub.add_argument("--seeds", type=int, default=3, help="traces of each point (3)")
    sub.add_argument("--seed", type=int, default=1, help="first seed (1)")
    sub.add_argument("--refinement", action="store_true", help="as in `trace make`")
    sub.add_argument("--simulated-access", action="store_true", help="as in `trace make`")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=refusing(contention))
    sub = kinds.add_parser(
        "calibrate",
        help="compare the thesis's scenes with its measurements",
        epilog="example: sumrate-lab trace calibrate --seed 1001",
    )
    sub.add_argument("--seed", type=int, default=1, help="first seed (1)")
    sub.add_argument("--refinement", action="store_true", help="as in `trace make`")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=refusing(calibrate))


def contention(args: argparse.Namespace) -> int:
    """Prints the table of a scene."""
    base = scene(args.scenario)
    base = refined(base) if args.refinement else base
    whole("--seeds", args.seeds, 1)
    rows: list[Row] = []
    total = len(args.clients) * len(args.access)
    for clients in args.clients:
        chosen = replace(base, contention=replace(base.contention, clients=clients))
        for access in args.access:
            _progress(len(rows), total, args.json)
            rows.append(_row(chosen, access, args))
    _progress(total, total, args.json)
    if args.json:
        document = {"schema": "sumrate.trace-contention.v1", "scenario": args.scenario,
                    "seconds": args.seconds, "seed": args.seed, "seeds": args.seeds,
                    "refinement": args.refinement, "simulated_access": args.simulated_access,
                    "rows": [asdict(row) for row in rows]}  # fmt: skip
        print(json.dumps(document, indent=1))
    else:
        print(contention_table(rows, args.access))
    return 0


def _row(chosen: Scene, access: str, args: argparse.Namespace) -> Row:
    traces = []
    for seed in range(args.seed, args.seed + args.seeds):
        delay: str | AccessDelay = access
        if args.simulated_access:
            delay = simulated(access, chosen.contention.clients, seed)
        traces.append(make(chosen, args.seconds, seed, delay))
    count = sum(contests(trace) for trace in traces)
    return Row(
        chosen.contention.clients,
        access,
        sum(float(trace.rate_mbps.mean()) for trace in traces) / len(traces),
        sum(float(trace.in_state("outage").mean()) for trace in traces) / len(traces),
        max((float(t.outages_s().max()) for t in traces if t.outages_s().size), default=0.0),
        args.seconds * len(traces) / count if count else None,
    )


def contention_table(rows: list[Row], protocols: list[str]) -> str:
    """Markdown: a line for each number of clients."""
    lines = [
        "| clients | " + " | ".join(TITLES[name] for name in protocols) + " |",
        "|---" * (len(protocols) + 1) + "|",
    ]
    for clients in dict.fromkeys(row.clients for row in rows):
        cells = [_cell(row) for row in rows if row.clients == clients]
        lines.append(f"| {clients} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Row) -> str:
    every = "" if row.interval_s is None else f", every {row.interval_s:.1f} s"
    return f"{row.rate_mbps:.0f}, {100 * row.outage:.1f} %, {row.longest_s:.1f} s{every}"


def calibrate(args: argparse.Namespace) -> int:
    """Prints the thesis's scenes beside what was measured."""
    whole("--seed", args.seed, 0)
    found: dict[str, Statistics] = {}
    for name, (_, seeds) in THESIS.items():
        _progress(len(found), len(THESIS), args.json)
        chosen = refined(scene(name)) if args.refinement else scene(name)
        traces = (make(chosen, MEASURED_S, args.seed + i) for i in range(seeds))
        found[name] = pooled([trace.rate_trace() for trace in traces])
    _progress(len(THESIS), len(THESIS), args.json)
    if args.json:
        document = {"schema": "sumrate.trace-calibration.v1", "seed": args.seed,
                    "refinement": args.refinement, "seconds": MEASURED_S,
                    "scenes": {name: {"seeds": THESIS[name][1], "generated": values.values(),
                                      "measured": MEASURED[THESIS[name][0]].values()}
                               for name, values in found.items()}}  # fmt: skip
        print(json.dumps(document, indent=1))
    else:
        print("\n".join(calibration_table(found)))
    return 0


def calibration_table(found: dict[str, Statistics]) -> Iterator[str]:
    """Markdown: scene / measured."""
    yield "| scene | mean | std | p5 | p50 | p95 | autocorrelation 1 s | 5 s |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, values in found.items():
        measured = MEASURED[THESIS[name][0]].values()
        cells = [f"{number(key, value)} / {number(key, measured[key])}"
                 for key, value in values.values().items()]  # fmt: skip
        yield f"| `{name}` | {' | '.join(cells)} |"


def _progress(done: int, total: int, as_json: bool) -> None:
    if sys.stderr.isatty() and not as_json:
        end = "\r\033[K" if done == total else ""
        print(f"\r{done} of {total}{end}", end="", file=sys.stderr, flush=True)
