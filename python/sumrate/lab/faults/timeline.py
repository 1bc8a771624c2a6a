"""What every client was delivered at which time, and the most descriptors that were open."""

import bisect
import itertools
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Self

from sumrate.lab.faults.confinement import descriptors
from sumrate.lab.faults.world import World


class Sampler(ABC):
    """Calls `sample` in a thread of its own, from the beginning of a `with` block to its end."""

    def __init__(self, interval_s: float) -> None:
        """Prepares it; `with` starts and ends it."""
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abstractmethod
    def sample(self) -> None:
        """Looks once."""

    def __enter__(self) -> Self:
        """Starts sampling."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends it."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self.sample()


SAMPLE_S = 0.01
LOOK_S = 0.1
"""How often descriptors are counted."""


class Timeline(Sampler):
    """Samples the deliveries of all clients in a thread of its own; times are time.monotonic()."""

    def __init__(self, world: World) -> None:
        """Prepares it; `with` starts and ends it."""
        super().__init__(SAMPLE_S)
        self._world = world
        self._times: dict[str, list[float]] = {name: [] for name in world.clients}
        self._bytes: dict[str, list[int]] = {name: [] for name in world.clients}
        self._lock = threading.Lock()
        self._looked = 0.0
        self.most_descriptors: dict[str, int] = {}

    def forget(self) -> None:
        """Forgets all deliveries so far, and how many descriptors were open."""
        with self._lock:
            for name in self._times:
                del self._times[name][:-1], self._bytes[name][:-1]
            self.most_descriptors.clear()

    def goodput_mbps(self, name: str, begin: float, end: float) -> float:
        """Mean goodput of a client in an interval, in Mbit/s."""
        return (self._at(name, end) - self._at(name, begin)) * 8e-6 / (end - begin)

    def longest_stall(self, name: str, begin: float, end: float) -> float:
        """Longest time in seconds in which nothing was delivered, within an interval."""
        with self._lock:
            grown = [t for t in self._times[name] if begin < t < end]
        edges = [begin, *grown, end]
        return max(b - a for a, b in itertools.pairwise(edges))

    def first_after(self, name: str, at: float) -> float | None:
        """When a client was next delivered something; None if it was not yet."""
        with self._lock:
            times = self._times[name]
            found = bisect.bisect_right(times, at)
            return times[found] if found < len(times) else None

    def _at(self, name: str, at: float) -> int:
        with self._lock:
            found = bisect.bisect_right(self._times[name], at)
            return self._bytes[name][found - 1] if found else 0

    def sample(self) -> None:
        """Notes what every client was delivered, and now and then the descriptors."""
        for name in self._times:
            size = self._world.delivered(name)
            now = time.monotonic()
            with self._lock:
                sizes = self._bytes[name]
                if size > (sizes[-1] if sizes else 0):
                    sizes.append(size)
                    self._times[name].append(now)
        if time.monotonic() - self._looked > LOOK_S:
            self._looked = time.monotonic()
            self.look()

    def look(self) -> None:
        """Notes how many descriptors are open."""
        for name, process in self._world.daemons().items():
            with self._lock, suppress(OSError):  # it was killed
                most = max(self.most_descriptors.get(name, 0), descriptors(process))
                self.most_descriptors[name] = most
