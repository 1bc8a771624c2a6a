"""Generates a trace of a link's rate and compares its statistics with measured ones.

Goodputs are in Mbit/s: 1448/1500 of the rate, over windows of 1 s.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sumrate.traces.calibration import MEASURED, SECONDS, SEEDS, calibrate, number, table
from sumrate.traces.generate import generate
from sumrate.traces.kinds import KINDS
from sumrate.traces.measure import Statistics, statistics
from sumrate.traces.trace import Trace, write

MEASURED_FAILURE = 1
USAGE = 2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m sumrate.traces", description=__doc__)
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--kind", choices=list(KINDS), help="make one trace of this kind")
    what.add_argument(
        "--calibration",
        action="store_true",
        help="statistics of many traces of every kind; fails if they are not as measured",
    )
    made.add_argument("--seed", type=int, default=1, help="of the trace, or the first (1)")
    made.add_argument(
        "--seeds", type=int, default=SEEDS, help=f"how many in a calibration ({SEEDS})"
    )
    made.add_argument(
        "--seconds", type=float, help=f"length (60; in a calibration {SECONDS:g} each)"
    )
    made.add_argument("--output", type=Path, help="file for the trace")
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    args = parser().parse_args(argv)
    try:
        return _calibration(args) if args.calibration else _one(args)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE


def _one(args: argparse.Namespace) -> int:
    trace = generate(args.kind, args.seed, 60.0 if args.seconds is None else args.seconds)
    found = statistics(trace)
    if args.output:
        write(trace, args.output)
    if args.json:
        _print_json(
            {
                "schema": "sumrate.trace.v1",
                "kind": args.kind,
                "seed": args.seed,
                "seconds": trace.seconds,
                "step_ms": trace.step_ms,
                "output": str(args.output) if args.output else None,
                "mean_rate_mbps": trace.mean_rate_mbps,
                "goodput_mbps": _plain(found),
                "measured_goodput_mbps": _plain(MEASURED[args.kind]),
            }
        )
    else:
        print(_comparison(trace, found, MEASURED[args.kind]))
    return 0


def _comparison(trace: Trace, found: Statistics, measured: Statistics) -> str:
    lines = [
        trace.origin,
        f"mean rate {trace.mean_rate_mbps:.1f} Mbit/s of IP bytes",
        "",
        f"{'Mbit/s over 1 s':20}{'this trace':>12}{'measured':>12}",
    ]
    expected = measured.values()
    lines += [
        f"{name.replace('_', ' '):20}{number(name, value):>12}{number(name, expected[name]):>12}"
        for name, value in found.values().items()
    ]
    return "\n".join(lines)


def _calibration(args: argparse.Namespace) -> int:
    seconds = SECONDS if args.seconds is None else args.seconds
    if args.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, not {args.seeds}")
    if args.output:
        raise ValueError("--output goes with --kind: a calibration keeps no trace")
    done = [calibrate(kind, args.seeds, seconds, args.seed) for kind in KINDS]
    outside = [found for one in done for found in one.findings() if not found.within]
    if args.json:
        _print_json(
            {
                "schema": "sumrate.trace-calibration.v1",
                "first_seed": args.seed,
                "seeds": args.seeds,
                "seconds": seconds,
                "kinds": {
                    one.kind: {
                        "goodput_mbps": _plain(one.generated),
                        "measured_goodput_mbps": _plain(MEASURED[one.kind]),
                        "mean_of_single_traces_p5_p95_mbps": list(one.mean_range),
                        "outside": [f.statistic for f in outside if f.kind == one.kind],
                    }
                    for one in done
                },
            }
        )
    else:
        print(table(done))
    for found in outside:
        print(
            f"OFF {found.kind} {found.statistic}: {found.generated:.3g}, "
            f"measured {found.measured:.3g}",
            file=sys.stderr,
        )
    return MEASURED_FAILURE if outside else 0


def _plain(values: Statistics) -> dict[str, float | None]:
    return {k: None if math.isnan(v) else round(v, 3) for k, v in values.values().items()}


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2))
