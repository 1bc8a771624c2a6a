"""`sumrate-lab trace make | show`: link traces from ready-made scenes."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sumrate.phy.codebook import PatternError, read_patterns
from sumrate.phy.parameters import ParameterError
from sumrate.traces.access_delay import BEACON_INTERVAL_S, PROTOCOLS, AccessDelay
from sumrate.traces.course import make
from sumrate.traces.link_trace import (
    STATES,
    LinkTrace,
    LinkTraceError,
    read_link_trace,
    write_link_trace,
)
from sumrate.traces.mahimahi import write_mahimahi
from sumrate.traces.measure import GOODPUT_SHARE
from sumrate.traces.scenarios import SCENES, scene
from sumrate.traces.scene import Scene
from sumrate.traces.trace import write

USAGE = 2
BARS = " .:-=+*#%@"


def add_make(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `make`."""
    sub = commands.add_parser(
        "make",
        help="make a link trace from a scene",
        epilog="example: sumrate-lab trace make thesis-mobility --seed 1 --output x.parquet",
    )
    sub.add_argument(
        "scenario", nargs="?", choices=SCENES, metavar="SCENARIO", help="scenario; see --list"
    )
    sub.add_argument("--list", action="store_true", help="only list the scenarios")
    sub.add_argument(
        "--seconds", type=float, default=60.0, help="length of the trace in seconds (60)"
    )
    sub.add_argument("--seed", type=int, default=1, help="random seed (1)")
    sub.add_argument(
        "--access",
        choices=PROTOCOLS,
        default="dot11ad",
        help="protocol that trains the beams (dot11ad)",
    )
    sub.add_argument(
        "--patterns",
        type=Path,
        metavar="FILE",
        help="beams of both ends as CSV with the columns beam,azimuth_deg,elevation_deg,gain_dbi",
    )
    sub.add_argument(
        "--clients",
        type=int,
        help="clients that contend, this one included (default: the scenario's)",
    )
    sub.add_argument(
        "--simulated-access",
        action="store_true",
        help="take waiting times from simulated A-BFTs with SINR and capture",
    )
    sub.add_argument(
        "--refinement",
        action="store_true",
        help="also train beams in the data time, within a beacon interval of a drop",
    )
    sub.add_argument("--output", type=Path, help="Parquet file with all columns")
    sub.add_argument("--rate-output", type=Path, help="file with the rate in the emulator's format")
    sub.add_argument("--mahimahi-output", type=Path, help="file with the rate in mahimahi's format")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=refusing(make_trace))


def add_show(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `show`."""
    sub = commands.add_parser(
        "show",
        help="summarise or plot a link trace",
        epilog="example: sumrate-lab trace show x.parquet --plot x.svg",
    )
    sub.add_argument("file", type=Path, help="Parquet file of `trace make`")
    sub.add_argument("--plot", type=Path, help="plot to this SVG or PNG file")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=refusing(show_trace))


def refusing(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command, with what it refuses said on stderr and in the exit status."""

    def run(args: argparse.Namespace) -> int:
        try:
            return command(args)
        except (ParameterError, PatternError, LinkTraceError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130

    return run


def make_trace(args: argparse.Namespace) -> int:
    """Makes a trace and writes it where it is wanted."""
    if args.list:
        found = {name: maker().title for name, maker in SCENES.items()}
        listed = json.dumps(found, indent=1) if args.json else _columns(found)
        print(listed)
        return 0
    if args.scenario is None:
        raise ParameterError("scenario", "missing", ", ".join(SCENES))
    chosen = _chosen(args)
    access = args.access
    if args.simulated_access:
        access = simulated(args.access, chosen.contention.clients, args.seed)
    for path in filter(None, (args.output, args.rate_output, args.mahimahi_output)):
        path.parent.mkdir(parents=True, exist_ok=True)
    trace = make(chosen, args.seconds, args.seed, access)
    if args.output:
        write_link_trace(trace, args.output)
    if args.rate_output:
        write(trace.rate_trace(), args.rate_output)
    if args.mahimahi_output:
        write_mahimahi(trace.rate_trace(), args.mahimahi_output)
    return _print(trace, args.json)


def _chosen(args: argparse.Namespace) -> Scene:
    """The scenario with what the options change of it."""
    chosen = scene(args.scenario)
    if args.clients is not None:
        chosen = replace(chosen, contention=replace(chosen.contention, clients=args.clients))
    if args.patterns is not None:
        beams = read_patterns(args.patterns)
        chosen = replace(chosen, radio=replace(chosen.radio, beams=beams))
    if args.refinement:
        chosen = refined(chosen)
    return chosen


def refined(chosen: Scene) -> Scene:
    """The scene with trainings in the data time too, within a beacon interval of a drop."""
    return replace(chosen, training=replace(chosen.training, refined_s=BEACON_INTERVAL_S))


def simulated(protocol: str, clients: int, seed: int) -> AccessDelay:
    """Waits of whole simulated A-BFTs.

    Raises:
        ParameterError: a protocol without contention.

    """
    if protocol not in ("dot11ad", "jpoc"):
        raise ParameterError("access", repr(protocol), "dot11ad or jpoc where it is simulated")
    from sumrate.access.delay import SimulatedAccessDelay  # noqa: PLC0415 (compiles kernels)

    known: Literal["dot11ad", "jpoc"] = "jpoc" if protocol == "jpoc" else "dot11ad"
    return SimulatedAccessDelay(known, clients, seed)


def show_trace(args: argparse.Namespace) -> int:
    """Prints a trace's statistics, and draws it if asked."""
    trace = read_link_trace(args.file)
    if args.plot:
        from sumrate.report.phy.link_trace import draw  # noqa: PLC0415 (loads matplotlib)

        draw(trace, args.plot)
    return _print(trace, args.json)


def summary(trace: LinkTrace) -> dict[str, Any]:
    """Statistics of a trace, as plain JSON values."""
    used = trace.ap_beam >= 0
    dark = trace.outages_s()
    goodput = trace.rate_mbps * GOODPUT_SHARE
    return {
        "schema": "sumrate.link-trace-summary.v1",
        "origin": dict(trace.metadata),
        "seconds": round(trace.seconds, 6),
        "step_ms": trace.step_s * 1e3,
        "goodput_mbps": {
            "mean": round(float(goodput.mean()), 3),
            **{f"p{p}": round(float(np.percentile(goodput, p)), 3) for p in (5, 50, 95)},
        },
        "snr_db": {
            f"p{p}": round(float(np.percentile(trace.snr_db[used], p)), 2) if used.any() else None
            for p in (5, 50, 95)
        },
        "states": {name: round(float(trace.in_state(name).mean()), 5) for name in STATES},
        "contests": {
            "count": contests(trace),
            "interval_s": round(trace.seconds / contests(trace), 3) if contests(trace) else None,
        },
        "outages": {
            "count": int(dark.size),
            "mean_s": round(float(dark.mean()), 4) if dark.size else None,
            "longest_s": round(float(dark.max()), 4) if dark.size else None,
        },
        "mcs": {
            str(mcs): round(float((trace.mcs == mcs).mean()), 5) for mcs in np.unique(trace.mcs)
        },
    }


def contests(trace: LinkTrace) -> int:
    """How often the client went into the A-BFT."""
    away = ~trace.in_state("connected")
    return int(away[0]) + int((away[1:] & ~away[:-1]).sum())


def _print(trace: LinkTrace, as_json: bool) -> int:
    found = summary(trace)
    if as_json:
        print(json.dumps(found, indent=1))
        return 0
    lines = [str(found["origin"].get("title", "link trace"))]
    lines.append(", ".join(f"{k} {v}" for k, v in found["origin"].items() if k != "title"))
    for name in ("goodput_mbps", "snr_db", "states", "contests", "outages", "mcs"):
        values = ", ".join(f"{key} {value}" for key, value in found[name].items())
        lines.append(f"{name.replace('_', ' '):14}{values}")
    lines.append(f"{'rate':14}|{sparkline(trace)}|")
    print("\n".join(lines))
    return 0


def sparkline(trace: LinkTrace, width: int = 72) -> str:
    """The rate in one line of characters, each the mean of its part."""
    parts = np.array_split(trace.rate_mbps, min(width, trace.steps))
    top = max(float(trace.rate_mbps.max()), 1e-9)
    return "".join(BARS[round(float(part.mean()) / top * (len(BARS) - 1))] for part in parts)


def _columns(found: dict[str, str]) -> str:
    return "\n".join(f"{name:18}{title}" for name, title in found.items())
