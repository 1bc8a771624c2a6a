"""Goodput and stalls as the application sees them: the growth of the file that it writes.

How far the receiver has written (the offset of its standard output, which the driver shares) is
read every 5 ms from outside. That costs the transfer nothing (no pipe, no copy, no tracing), is the
same for every scheme, and shows exactly the bytes that the application was given, in order. Times
are known to one sampling interval, so a stall is known to about 5 ms (more when the machine was
busy: the worst sampling gap is reported).
"""

import bisect
import time
from collections.abc import Callable
from dataclasses import dataclass

from sumrate.lab.process import Process, ProcessFailedError

SAMPLE_S = 0.005
GROWTH_S = 2 * SAMPLE_S
Interval = tuple[float, float]


@dataclass(frozen=True)
class Stall:
    """An interval in which the application received nothing: start and length in seconds."""

    at_s: float
    length_s: float


class Curve:
    """Cumulative bytes against time, from the first byte on.

    Args:
        times: seconds, strictly increasing; the first is the time of the first growth.
        sizes: bytes at those times, increasing.

    """

    def __init__(self, times: list[float], sizes: list[int], worst_gap_s: float = 0.0) -> None:
        """Shifts the time axis so that the first byte is at 0."""
        if not times or len(times) != len(sizes):
            raise ValueError("a curve needs at least one sample, and a size for each time")
        self.times = [t - times[0] for t in times]
        self.sizes = sizes
        self.worst_gap_s = worst_gap_s

    @property
    def duration_s(self) -> float:
        """Time from the first to the last byte."""
        return self.times[-1]

    def bytes_at(self, at_s: float) -> float:
        """Bytes received by this time, interpolated between samples."""
        if at_s <= 0:
            return float(self.sizes[0]) if at_s == 0 else 0.0
        if at_s >= self.times[-1]:
            return float(self.sizes[-1])
        i = bisect.bisect_right(self.times, at_s)
        t1 = self.times[i]
        t0 = max(self.times[i - 1], t1 - GROWTH_S)  # the growth was seen within two samples
        if at_s <= t0:
            return float(self.sizes[i - 1])
        share = (at_s - t0) / (t1 - t0)
        return self.sizes[i - 1] + share * (self.sizes[i] - self.sizes[i - 1])

    def goodput_mbps(self, *intervals: Interval) -> float:
        """Mean goodput over the intervals together, or over the whole transfer if none is given."""
        chosen = intervals or ((0.0, self.duration_s),)
        length = sum(end - start for start, end in chosen)
        if length <= 0:
            return 0.0
        received = sum(self.bytes_at(end) - self.bytes_at(start) for start, end in chosen)
        return received * 8 / 1e6 / length

    def series(self, step_s: float = 0.1) -> list[tuple[float, float]]:
        """Middle of each step in seconds and its goodput in Mbit/s; the last step may be short."""
        points, start = [], 0.0
        while start < self.duration_s:
            end = min(start + step_s, self.duration_s)
            if end - start >= step_s / 2:
                points.append(((start + end) / 2, self.goodput_mbps((start, end))))
            start += step_s
        return points

    def longest_stall(self, within: Interval | None = None) -> Stall:
        """The longest interval without growth, among those that overlap `within`."""
        longest = Stall(0.0, 0.0)
        for start, end in zip(self.times, self.times[1:], strict=False):
            overlaps = within is None or (end > within[0] and start < within[1])
            if overlaps and end - start > longest.length_s:
                longest = Stall(start, end - start)
        return longest

    def resumed_after(self, at_s: float) -> float:
        """Time of the first growth at or after `at_s`."""
        i = bisect.bisect_left(self.times, at_s)
        return self.times[min(i, len(self.times) - 1)]


def watch(
    process: Process,
    received: Callable[[], int],
    *,
    timeout_s: float,
    on_first_byte: Callable[[], object] = lambda: None,
    on_sample: Callable[[float, int], object] = lambda _elapsed, _size: None,
) -> Curve:
    """Samples what was received until `process` ends.

    Args:
        process: the receiver.
        received: gives the bytes that it has written so far.
        timeout_s: longest time to wait for the end, in seconds.
        on_first_byte: called once, right after the first growth was seen.
        on_sample: called after each sample with seconds since the first byte and the size.

    Raises ProcessFailedError: the receiver failed, got nothing, or did not end in time.
    """
    times: list[float] = []
    sizes: list[int] = []
    began = previous = time.monotonic()
    worst_gap = 0.0
    ended = False
    while not ended:
        ended = process.poll() is not None
        size = received()
        now = time.monotonic()
        if times:
            worst_gap = max(worst_gap, now - previous)
        previous = now
        if size > (sizes[-1] if sizes else 0):
            times.append(now)
            sizes.append(size)
            if len(times) == 1:
                on_first_byte()
        on_sample(now - times[0] if times else 0.0, size)
        if now - began > timeout_s:
            process.kill()
            raise ProcessFailedError(
                f"`{process.command_line}` had {size} bytes after {timeout_s:.0f} s and was ended"
            )
        if not ended:
            time.sleep(SAMPLE_S)
    if process.poll() != 0 or not times:
        raise ProcessFailedError(
            f"`{process.command_line}` ended with {process.poll()}: {process.tail()}"
        )
    return Curve(times, sizes, worst_gap)
