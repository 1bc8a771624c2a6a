"""Whether something grows: the slope of a series of samples, with its confidence interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

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
