"""`sumrate-lab trace make | show`: link traces from ready-made scenes."""

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, ParamSpec

from cyclopts import Parameter

from sumrate.lab.options import Json, Seed
from sumrate.lab.results import Progress
from sumrate.phy.codebook import PatternError, read_patterns
from sumrate.phy.parameters import ParameterError
from sumrate.traces.access_delay import BEACON_INTERVAL_S, AccessDelay, Alone
from sumrate.traces.course import make
from sumrate.traces.link_trace import (
    LinkTrace,
    LinkTraceError,
    read_link_trace,
    write_link_trace,
)
from sumrate.traces.mahimahi import write_mahimahi
from sumrate.traces.scenarios import SCENES, scene
from sumrate.traces.scene import Scene
from sumrate.traces.summary import summary, text
from sumrate.traces.trace import write

USAGE = 2
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
    _print(trace, as_json)
    return 0


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
    _print(trace, as_json)
    return 0


def _print(trace: LinkTrace, as_json: bool) -> None:
    print(json.dumps(summary(trace), indent=1) if as_json else text(trace))


def refined(chosen: Scene) -> Scene:
    """The scene with trainings in the data time, within a beacon interval of a drop."""
    return replace(chosen, training=replace(chosen.training, refined_s=BEACON_INTERVAL_S))


def simulated(protocol: str, clients: int, seed: int) -> AccessDelay:
    """Waits of whole simulated A-BFTs; `alone` has no contention to simulate."""
    if protocol == "alone":
        return Alone()
    from sumrate.access.delay import SimulatedAccessDelay  # noqa: PLC0415 (compiles kernels)
    from sumrate.access.progress import compile_simulation  # noqa: PLC0415

    compile_simulation(Progress(0.0))
    known: Literal["dot11ad", "jpoc"] = "jpoc" if protocol == "jpoc" else "dot11ad"
    return SimulatedAccessDelay(known, clients, seed)


def _columns(found: dict[str, str]) -> str:
    return "\n".join(f"{name:18}{title}" for name, title in found.items())
