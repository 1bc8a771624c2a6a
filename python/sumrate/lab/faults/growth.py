"""Memory and descriptors of the processes over a long run, and whether they grow."""

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean
from typing import Any

from sumrate.lab.faults.confinement import descriptors, memory
from sumrate.lab.faults.timeline import Sampler
from sumrate.lab.process import Process

BINS = 24
"""A series is reduced to the least sample of so many equal intervals: what is in use comes and
goes, what leaks stays in the least. Neighbouring intervals are then nearly independent."""
FEWEST_BINS = 6
CONFIDENCE = 0.99


class TooShortError(ValueError):
    """A series is too short for a slope; the message says how long it is."""


@dataclass(frozen=True)
class Slope:
    """Growth per hour, in the samples' unit: estimate and bounds of the confidence interval."""

    per_hour: float
    low: float
    high: float
    mean: float
    hours: float
    """Length of the series."""

    def grows(self, tolerance: float) -> bool:
        """Whether it surely grew by more than `tolerance` (samples' unit) over its length."""
        return self.low * self.hours > tolerance


def slope(times: Sequence[float], values: Sequence[float]) -> Slope:
    """Ordinary least squares on the least values of equal intervals, with Student's t.

    Args:
        times: seconds, increasing.
        values: samples at those times.

    Raises TooShortError: fewer than six intervals have samples.
    """
    x, y = _least(times, values)
    n = len(x)
    if n < FEWEST_BINS:
        raise TooShortError(f"{n} intervals have samples, {FEWEST_BINS} are needed")
    mean_x, mean_y = fmean(x), fmean(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    estimate = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    rest = sum((b - mean_y - estimate * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
    error = math.sqrt(rest / (n - 2) / spread) * _student(n - 2)
    return Slope(
        per_hour=estimate * 3600,
        low=(estimate - error) * 3600,
        high=(estimate + error) * 3600,
        mean=fmean(values),
        hours=(times[-1] - times[0]) / 3600,
    )


def _least(times: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Time and value of the least sample of each interval that has samples."""
    if len(times) < 2 or times[-1] <= times[0]:
        return [], []
    width = (times[-1] - times[0]) / BINS
    least: dict[int, tuple[float, float]] = {}
    for at, value in zip(times, values, strict=True):
        number = min(BINS - 1, int((at - times[0]) / width))
        if number not in least or value < least[number][1]:
            least[number] = (at, value)
    kept = [least[number] for number in sorted(least)]
    return [at for at, _ in kept], [value for _, value in kept]


def _student(degrees: int) -> float:
    """Two-sided quantile of Student's t (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


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
