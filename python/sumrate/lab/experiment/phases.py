"""What each link carried in each phase of a run, by the emulator's counters at its bounds."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sumrate.lab.experiment.record import Run
from sumrate.lab.process import ProcessFailedError

PATIENCE_S = 5.0
"""How long after the end of the last phase its reading may take."""


class PhaseCounters:
    """A thread that reads the counters when a phase begins and when it ends."""

    def __init__(
        self, stats: Callable[[], Mapping[str, Any]], phases: Sequence[tuple[float, float]]
    ) -> None:
        """Nothing happens before `start`.

        Args:
            stats: gives the emulator's counters.
            phases: begin and end of each, in seconds after the start.

        """
        self._stats = stats
        self._phases = tuple(phases)
        self._bounds = sorted({at for phase in phases for at in phase})
        self._readings: dict[float, tuple[float, dict[str, int]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._error: Exception | None = None
        self._began = 0.0

    def start(self) -> None:
        """Time 0 is now."""
        self._began = time.monotonic()
        if self._bounds:
            self._thread.start()

    def _work(self) -> None:
        try:
            for bound in self._bounds:
                if self._stop.wait(max(0.0, self._began + bound - time.monotonic())):
                    return
                self._readings[bound] = (time.monotonic(), delivered(self._stats()))
        except (ProcessFailedError, RuntimeError, OSError) as error:
            self._error = error

    def __enter__(self) -> Self:
        """The thread; it has ended on leaving."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Waits for the end of the last phase; counters that could not be read fail the run."""
        if kind is None and self._thread.is_alive():
            end = self._began + self._bounds[-1] + PATIENCE_S
            self._thread.join(max(0.0, end - time.monotonic()))
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

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
