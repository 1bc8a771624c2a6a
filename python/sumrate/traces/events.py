"""The event log of `sumrate up` and `sumrate serve --event-log`, as arrays by path."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "sumrate.event-log.v1"
"""Name and version of the form that is read (docs/schemas/event-log.v1.json)."""

MEASURES = ("sent_mbps", "received_mbps", "redundant_mbps", "rate_mbps", "rtt_ms", "commit_bytes")
"""Measurements of a path's `path:metrics` events."""


class EventLogError(ValueError):
    """A file is not an event log; the message has the line and the cause."""


@dataclass
class PathEvents:
    """The events of one path of one session.

    Attributes:
        session: the session's id.
        name: the path's name.
        time_s: times of its measurements, in seconds since the process started.
        values: each of `MEASURES` at these times.
        health: changes, (time in seconds, `active`, `suspect` or `dead`).
        directions: changes, (time in seconds, `forward`, `backward` or another).

    """

    session: str
    name: str
    time_s: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in MEASURES})
    health: list[tuple[float, str]] = field(default_factory=list)
    directions: list[tuple[float, str]] = field(default_factory=list)


@dataclass
class EventLog:
    """A whole log.

    Attributes:
        header: the first line.
        paths: by session and name, in the order of their first event.
        counts: number of events by name.
        end_s: time of the last event.

    """

    header: dict[str, Any]
    paths: dict[tuple[str, str], PathEvents] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    end_s: float = 0.0


def read_event_log(path: Path) -> EventLog:
    """Reads a log, without a truncated last line.

    Raises:
        EventLogError: the file or one of its lines is not of this schema.
        OSError: it cannot be read.

    """
    lines = list(_lines(path))
    if not lines or lines[0].get("schema") != SCHEMA:
        message = f"{path}: line 1 is not the header of {SCHEMA}; `--event-log` writes such files"
        raise EventLogError(message)
    log = EventLog(lines[0])
    for number, line in enumerate(lines[1:], 2):
        try:
            _enter(log, line)
        except (KeyError, TypeError) as error:
            raise EventLogError(f"{path}: line {number} is no event: {error!r}") from error
    return log


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines) and not text.endswith("\n"):
                return
            raise EventLogError(f"{path}: line {number} is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise EventLogError(f"{path}: line {number} is no event")
        yield value


def _enter(log: EventLog, line: dict[str, Any]) -> None:
    name, time_s, data = line["name"], float(line["time_s"]), line["data"]
    log.counts[name] = log.counts.get(name, 0) + 1
    log.end_s = max(log.end_s, time_s)
    if name not in {"path:metrics", "path:health", "path:direction"}:
        return
    key = (data["session"], data["path"])
    path = log.paths.setdefault(key, PathEvents(*key))
    if name == "path:health":
        path.health.append((time_s, data["health"]))
        return
    if name == "path:direction":
        path.directions.append((time_s, data["direction"]))
        return
    path.time_s.append(time_s)
    for measure in MEASURES:
        path.values[measure].append(float(data[measure]))
