"""`sumrate-lab trace make | show`: link traces from ready-made scenes."""

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

import numpy as np
from cyclopts import Parameter

from sumrate.lab.options import Json, Seed
from sumrate.phy.codebook import PatternError, read_patterns
from sumrate.phy.parameters import ParameterError
from sumrate.traces.access_delay import BEACON_INTERVAL_S, AccessDelay
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
Given = ParamSpec("Given")
Protocol = Literal["alone", "jpoc", "dot11ad"]
Simulated = Annotated[
    bool, Parameter(help="Take waiting times from simulated A-BFTs with SINR and capture.")
]
Refinement = Annotated[
    bool,
    Parameter(help="Also train beams in the data time, within a beacon interval of a drop."),
]


def refusing(command: Callable[Given, int]) -> Callable[Given, int]:
    """The command; what it refuses becomes a line on stderr and an exit status."""

    @functools.wraps(command)
    def run(*words: Given.args, **options: Given.kwargs) -> int:
        try:
            return command(*words, **options)
        except (ParameterError, PatternError, LinkTraceError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE

    return run


@refusing
def make_trace(  # noqa: C901 (an option each)
    scenario: str | None = None,
    /,
    *,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    seconds: float = 60.0,
    seed: Seed = 1,
    access: Protocol = "dot11ad",
    patterns: Path | None = None,
    clients: int | None = None,
    simulated_access: Simulated = False,
    refinement: Refinement = False,
    output: Path | None = None,
    rate_output: Path | None = None,
    mahimahi_output: Path | None = None,
    as_json: Json = False,
) -> int:
    """Make a link trace from a scene.

    Example: sumrate-lab trace make thesis-mobility --seed 1 --output x.parquet

    Args:
        scenario: Scenario; see --list.
        list_: Only list the scenarios.
        seconds: Length of the trace in seconds.
        access: Protocol that trains the beams.
        patterns: Beams of both ends as a CSV file with the columns
            beam,azimuth_deg,elevation_deg,gain_dbi.
        clients: Clients that contend, this one included (the scenario's).
        output: Parquet file with all columns.
        rate_output: File with the rate in the emulator's format.
        mahimahi_output: File with the rate in mahimahi's format.

    """
    if list_:
        found = {name: maker().title for name, maker in SCENES.items()}
        print(json.dumps(found, indent=1) if as_json else _columns(found))
        return 0
    if scenario is None:
        raise ParameterError("scenario", "missing", ", ".join(SCENES))
    chosen = scene(scenario)
    if clients is not None:
        chosen = replace(chosen, contention=replace(chosen.contention, clients=clients))
    if patterns is not None:
        chosen = replace(chosen, radio=replace(chosen.radio, beams=read_patterns(patterns)))
    if refinement:
        chosen = refined(chosen)
    delay: str | AccessDelay = access
    if simulated_access:
        delay = simulated(access, chosen.contention.clients, seed)
    for path in filter(None, (output, rate_output, mahimahi_output)):
        path.parent.mkdir(parents=True, exist_ok=True)
    trace = make(chosen, seconds, seed, delay)
    if output:
        write_link_trace(trace, output)
    if rate_output:
        write(trace.rate_trace(), rate_output)
    if mahimahi_output:
        write_mahimahi(trace.rate_trace(), mahimahi_output)
    return _print(trace, as_json)


@refusing
def show(file: Path, /, *, plot: Path | None = None, as_json: Json = False) -> int:
    """Summarise or plot a link trace.

    Example: sumrate-lab trace show x.parquet --plot x.svg

    Args:
        file: Parquet file of `trace make`.
        plot: Plot to this SVG or PNG file.

    """
    trace = read_link_trace(file)
    if plot:
        from sumrate.report.phy.link_trace import draw  # noqa: PLC0415 (loads matplotlib)

        draw(trace, plot)
    return _print(trace, as_json)


def refined(chosen: Scene) -> Scene:
    """The scene with trainings in the data time too, within a beacon interval of a drop."""
    return replace(chosen, training=replace(chosen.training, refined_s=BEACON_INTERVAL_S))


def simulated(protocol: str, clients: int, seed: int) -> AccessDelay:
    """Waits of whole simulated A-BFTs.

    Raises ParameterError: a protocol without contention.
    """
    if protocol not in ("dot11ad", "jpoc"):
        raise ParameterError("access", repr(protocol), "dot11ad or jpoc where it is simulated")
    from sumrate.access.delay import SimulatedAccessDelay  # noqa: PLC0415 (compiles kernels)

    known: Literal["dot11ad", "jpoc"] = "jpoc" if protocol == "jpoc" else "dot11ad"
    return SimulatedAccessDelay(known, clients, seed)


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
