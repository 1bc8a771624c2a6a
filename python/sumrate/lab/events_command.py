"""`sumrate-lab events`: what an event log of `sumrate up` or `sumrate serve` says."""

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from sumrate.lab.options import Json
from sumrate.lab.refusal import USAGE
from sumrate.traces.events import EventLog, EventLogError, PathEvents, read_event_log

EVENTS_SCHEMA = "sumrate.lab.events.v1"


def events(file: Path, /, *, plot: Path | None = None, as_json: Json = False) -> int:
    """Summarise or plot an event log of `sumrate up` or `sumrate serve`.

    Example: sumrate up @link.txt --event-log run.log; sumrate-lab events run.log --plot run.svg

    Args:
        file: File that --event-log wrote.
        plot: Plot to this SVG, PNG or PDF file.

    """
    try:
        log = read_event_log(file)
        if plot:
            from sumrate.report.events import draw  # noqa: PLC0415 (loads matplotlib)

            draw(log, plot)
    except (EventLogError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    summary = summarise(log)
    if as_json:
        print(json.dumps(summary, indent=2))
        return 0
    print(f"{summary['role']}, {summary['seconds']:.1f} s, {sum(log.counts.values())} events")
    for path in summary["paths"]:
        print(
            f"{path['name']}: sent {path['sent_mb']:.1f} MB, "
            f"received {path['received_mb']:.1f} MB, "
            f"RTT {path['rtt_ms_min']:.1f} to {path['rtt_ms_max']:.1f} ms, "
            f"suspect or dead {path['unwell_s']:.1f} s"
        )
    return 0


def summarise(log: EventLog) -> dict[str, Any]:
    """What a log comes to: sums by path, and counts of events by name."""
    return {
        "schema": EVENTS_SCHEMA,
        "role": log.header.get("role"),
        "seconds": log.end_s,
        "events": log.counts,
        "paths": [_path(path, log.end_s) for path in log.paths.values()],
    }


def _path(path: PathEvents, end_s: float) -> dict[str, Any]:
    rtts = path.values["rtt_ms"] or [0.0]
    changes = [*path.health, (end_s, "")]
    unwell = sum(
        end - begin
        for (begin, health), (end, _) in pairwise(changes)
        if health in {"suspect", "dead"}
    )
    return {
        "session": path.session,
        "name": path.name,
        "sent_mb": _megabytes(path, "sent_mbps"),
        "received_mb": _megabytes(path, "received_mbps"),
        "rtt_ms_min": min(rtts),
        "rtt_ms_max": max(rtts),
        "unwell_s": unwell,
    }


def _megabytes(path: PathEvents, measure: str) -> float:
    """Rates times the time since the measurement before.

    What came after a pause counts for at most twice the shortest time between two, because nothing
    is logged while nothing moves.
    """
    times = path.time_s
    steps = [b - a for a, b in pairwise(times)]
    usual = min(steps, default=0.1)
    durations = [usual, *(min(step, usual * 2) for step in steps)]
    rates = path.values[measure]
    return sum(rate * step for rate, step in zip(rates, durations, strict=True)) / 8
