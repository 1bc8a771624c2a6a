"""Memory and descriptors of the processes over a long run, and whether they grow."""

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sumrate.lab.faults.confinement import descriptors, memory
from sumrate.lab.faults.sampler import Sampler
from sumrate.lab.faults.slope import TooShortError, slope
from sumrate.lab.process import Process

LOOK_S = 0.25
TOLERANCE = {"memory_bytes": 16 << 20, "descriptors": 8.0}
"""Growth over a whole run that counts as none: an allocator keeps what a burst needed."""


class Growth(Sampler):
    """Samples processes in a thread of its own; a process that is replaced begins anew."""

    def __init__(self, processes: dict[str, Process]) -> None:
        """Takes over the dictionary: what is replaced in it is followed."""
        super().__init__(LOOK_S)
        self._processes = processes
        self._series: dict[str, tuple[int, list[float], dict[str, list[float]]]] = {}

    def begin(self) -> None:
        """Forgets what was sampled so far: the time of warming up."""
        self._series.clear()

    def slopes(self) -> dict[str, dict[str, Any]]:
        """By process and quantity: the slope per hour with its bounds, and whether it grows."""
        found: dict[str, dict[str, Any]] = {}
        for name, (_, times, series) in list(self._series.items()):
            found[name] = {}
            until = len(times)  # the sampling thread goes on, and appends times last
            for quantity, values in series.items():
                with suppress(TooShortError):
                    seen = slope(times[:until], values[:until])
                    grows = seen.grows(TOLERANCE[quantity])
                    found[name][quantity] = {**asdict(seen), "most": max(values), "grows": grows}
        return found

    def sample(self) -> None:
        """Looks at every process."""
        for name, process in list(self._processes.items()):
            with suppress(OSError):  # it was killed
                taken = {"memory_bytes": memory(process), "descriptors": descriptors(process)}
                self._note(name, process.pid, taken)

    def _note(self, name: str, pid: int, taken: dict[str, int]) -> None:
        known = self._series.get(name)
        if known is None or known[0] != pid:
            known = (pid, [], {quantity: [] for quantity in taken})
            self._series[name] = known
        for quantity, value in taken.items():
            known[2][quantity].append(float(value))
        known[1].append(time.monotonic())
