"""A thread that does things at their times in a run: plugs interfaces, reads counters."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from sumrate.lab.endpoints import FollowsInterfaces, Handover, Scheme
from sumrate.lab.experiment.record import Run
from sumrate.lab.links import Link
from sumrate.lab.scene import Scene

Events = Iterable[tuple[float, Callable[[], object]]]
"""Seconds after the start, and what is done then."""
Intervals = Sequence[tuple[float, float]]
PATIENCE_S = 5.0
"""How long after the end of the last phase its reading may take."""


class Timetable:
    """A thread that ends with the `with` block; an action that failed makes the block fail."""

    def __init__(self, events: Events, patience_s: float | None = None) -> None:
        """Nothing happens before `start`; with patience, leaving waits for the last event."""
        self._events = sorted(events, key=lambda event: event[0])
        self._patience_s = patience_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._error: Exception | None = None
        self._began = 0.0

    def start(self) -> None:
        """Time 0 is now."""
        self._began = time.monotonic()
        if self._events:
            self._thread.start()

    def _work(self) -> None:
        try:
            for at_s, action in self._events:
                if self._stop.wait(max(0.0, self._began + at_s - time.monotonic())):
                    return
                action()
        except (RuntimeError, OSError) as error:
            self._error = error

    def __enter__(self) -> Self:
        """The thread; it has ended on leaving."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Ends it."""
        if self._patience_s is not None and kind is None and self._thread.is_alive():
            end = self._began + self._events[-1][0] + self._patience_s
            self._thread.join(max(0.0, end - time.monotonic()))
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._error is not None and kind is None:
            raise self._error


def plugging(built: Scene, scheme: Scheme, unplugged: Mapping[str, Intervals]) -> Timetable:
    """Takes interfaces down, brings them up, and moves sessions at their times."""
    return Timetable(_actions(built, scheme, unplugged))


def _actions(
    built: Scene, scheme: Scheme, unplugged: Mapping[str, Intervals]
) -> Iterator[tuple[float, Callable[[], object]]]:
    links = {link.name: link for link in built.links}

    def plug(link: Link) -> None:
        built.plug(link)
        if isinstance(scheme, FollowsInterfaces):
            scheme.plugged(built, link)

    for name, intervals in unplugged.items():
        for down_s, up_s in intervals:
            yield down_s, lambda link=links[name]: built.unplug(link)  # type: ignore[misc]
            yield up_s, lambda link=links[name]: plug(link)  # type: ignore[misc]
    if isinstance(scheme, Handover):
        for at_s, link in scheme.moves(built):
            yield at_s, lambda link=link: scheme.move(built, link)  # type: ignore[misc]


class PhaseCounters(Timetable):
    """Reads the emulator's counters when a phase begins and when it ends."""

    def __init__(
        self,
        stats: Callable[[], Mapping[str, Any]],
        phases: Intervals,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stats` gives the counters; phases have begin and end in seconds after the start."""
        self._phases = tuple(phases)
        self._readings: dict[float, tuple[float, dict[str, int]]] = {}

        def read(bound: float) -> None:
            self._readings[bound] = (clock(), delivered(stats()))

        bounds = sorted({at for phase in phases for at in phase})
        events = ((bound, lambda bound=bound: read(bound)) for bound in bounds)
        super().__init__(events, PATIENCE_S)

    def add(self, run: Run) -> None:
        """Adds the mean rate of IP that each link delivered to the client in each phase."""
        for number, (start, end) in enumerate(self._phases, start=1):
            if start not in self._readings or end not in self._readings:
                continue
            (began, before), (ended, after) = self._readings[start], self._readings[end]
            for link in before.keys() & after.keys():
                rate = (after[link] - before[link]) * 8e-6 / (ended - began)
                run.add(f"carried_{link}_phase_{number}_mbps", rate, "Mbit/s")


def delivered(stats: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of IP that each link has delivered to the client so far."""
    return {
        link["name"]: link["b_to_a"]["counters"]["bytes_out"] for link in stats.get("links", ())
    }
