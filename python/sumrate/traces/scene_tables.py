"""`sumrate-lab trace contention | calibrate`: tables of many link traces, those of docs/traces.md.

`contention` compares the rate of a scene over access protocols and numbers of clients. `calibrate`
compares the scenes of the thesis with its measurements.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated

from sumrate.access.tasks import watch
from sumrate.lab.options import Json, Seed, Several
from sumrate.lab.results import Progress
from sumrate.phy.parameters import whole
from sumrate.traces.access_delay import AccessDelay
from sumrate.traces.calibration import MEASURED, number
from sumrate.traces.course import make
from sumrate.traces.measure import Statistics, pooled
from sumrate.traces.scenarios import scene
from sumrate.traces.scene import Scene
from sumrate.traces.scene_commands import (
    Protocol,
    Refinement,
    Simulated,
    refined,
    refusing,
    simulated,
)

TITLES = {"alone": "alone", "jpoc": "JPOC", "dot11ad": "802.11ad"}
THESIS = {
    "thesis-los": ("wigig-los", 30),
    "thesis-nlos": ("wigig-nlos", 10),
    "thesis-mobility": ("wigig-mobility", 4),
}
"""Measurement of each scene, and the number of seeds for stable statistics."""
SIMULATED_S = 0.005
"""Expected time to simulate a second of a trace."""
MEASURED_S = 370.0
"""Length of the measurements."""


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
    """Longest outage."""
    interval_s: float | None
    """Mean time between two A-BFTs of the client; None without one."""


@refusing
def contention(
    scenario: str = "thesis-mobility",
    /,
    *,
    clients: Annotated[tuple[int, ...], Several] = (1, 4, 8, 16),
    access: Annotated[tuple[Protocol, ...], Several] = ("alone", "jpoc", "dot11ad"),
    seconds: float = 120.0,
    seeds: int = 3,
    seed: Seed = 1,
    refinement: Refinement = False,
    simulated_access: Simulated = False,
    as_json: Json = False,
) -> int:
    """Compare the goodput of a scene over access protocols and numbers of clients.

    Example: sumrate-lab trace contention thesis-mobility --clients 4 16

    Args:
        scenario: Scenario; see `trace make --list`.
        clients: Numbers of clients.
        access: Protocols that train the beams.
        seconds: Length of each trace.
        seeds: Traces of each point.

    """
    base = scene(scenario)
    base = refined(base) if refinement else base
    whole("--seeds", seeds, 1)
    rows: list[Row] = []
    points = [(number, protocol) for number in clients for protocol in access]
    show = watch(Progress(len(points) * seeds * seconds * SIMULATED_S), "contention", "cells")
    for number_of_clients, protocol in points:
        show(len(rows), len(points))
        chosen = replace(base, contention=replace(base.contention, clients=number_of_clients))
        delays = [
            simulated(protocol, number_of_clients, one) if simulated_access else protocol
            for one in range(seed, seed + seeds)
        ]
        rows.append(_row(chosen, protocol, seconds, list(enumerate(delays, start=seed))))
    show(len(points), len(points))
    if as_json:
        document = {"schema": "sumrate.trace-contention.v1", "scenario": scenario,
                    "seconds": seconds, "seed": seed, "seeds": seeds,
                    "refinement": refinement, "simulated_access": simulated_access,
                    "rows": [asdict(row) for row in rows]}  # fmt: skip
        print(json.dumps(document, indent=1))
    else:
        print(contention_table(rows, access))
    return 0


def _row(
    chosen: Scene, access: str, seconds: float, delays: Sequence[tuple[int, str | AccessDelay]]
) -> Row:
    """The row of a protocol; one trace for each seed."""
    traces = [make(chosen, seconds, seed, delay) for seed, delay in delays]
    count = sum(trace.contests for trace in traces)
    return Row(
        chosen.contention.clients,
        access,
        sum(float(trace.rate_mbps.mean()) for trace in traces) / len(traces),
        sum(float(trace.in_state("outage").mean()) for trace in traces) / len(traces),
        max((float(t.outages_s().max()) for t in traces if t.outages_s().size), default=0.0),
        seconds * len(traces) / count if count else None,
    )


def contention_table(rows: list[Row], protocols: Sequence[str]) -> str:
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
    return f"{row.rate_mbps:.0f} Mbit/s, {100 * row.outage:.1f} %, {row.longest_s:.1f} s{every}"


@refusing
def calibrate(*, seed: Seed = 1, refinement: Refinement = False, as_json: Json = False) -> int:
    """Compare the thesis's scenes with its measurements.

    Example: sumrate-lab trace calibrate --seed 1001
    """
    whole("--seed", seed, 0)
    found: dict[str, Statistics] = {}
    simulated_s = sum(MEASURED_S * seeds for _, seeds in THESIS.values())
    show = watch(Progress(simulated_s * SIMULATED_S), "calibration", "scenes")
    for name, (_, seeds) in THESIS.items():
        show(len(found), len(THESIS))
        chosen = refined(scene(name)) if refinement else scene(name)
        traces = (make(chosen, MEASURED_S, seed + i) for i in range(seeds))
        found[name] = pooled([trace.rate_trace() for trace in traces])
    show(len(THESIS), len(THESIS))
    if as_json:
        document = {"schema": "sumrate.trace-calibration.v1", "seed": seed,
                    "refinement": refinement, "seconds": MEASURED_S,
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
