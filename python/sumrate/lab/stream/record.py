"""What a receiver notes while it reads: bytes in 5 ms bins, the longest stall, delays of blocks.

Time is CLOCK_MONOTONIC in nanoseconds, and 0 s is the first byte. All of it is integer arithmetic
per read, never per byte.
"""

import math
import struct
from array import array
from collections.abc import Sequence
from typing import Any

STEP_NS = 5_000_000
SILENCE_NS = 5_000_000
"""Gaps between two reads from this length on are noted one by one."""
HEADER = struct.Struct("<QQ")
"""How a paced block begins: when it was due to be sent (ns), and its length with this header."""


class Recorder:
    """Bytes and gaps of one transfer, from its first byte to the end of the measured time."""

    def __init__(self, *, warmup_ns: int, time_ns: int, step_ns: int = STEP_NS) -> None:
        """Counts `time_ns` after the first `warmup_ns`; bins hold all of it."""
        self.warmup_ns = warmup_ns
        self.time_ns = time_ns
        self.step_ns = step_ns
        self.first_ns = self.counted_from_ns = self.end_ns = -1
        self.total = self.before_warmup = self.reads = 0
        self.longest_ns = self.longest_at_ns = 0
        self._last_ns = 0
        self._bins: list[int] = []
        self._silences: list[tuple[int, int]] = []

    @property
    def started(self) -> bool:
        """Whether the first byte is here."""
        return self.first_ns >= 0

    def start(self, now_ns: int) -> None:
        """The first byte came."""
        self.first_ns = self._last_ns = now_ns
        self.counted_from_ns = now_ns + self.warmup_ns
        self.end_ns = self.counted_from_ns + self.time_ns

    def add(self, now_ns: int, count: int) -> None:
        """A read gave `count` bytes, before the end."""
        index = (now_ns - self.first_ns) // self.step_ns
        bins = self._bins
        while len(bins) <= index:
            bins.append(self.total)
        if now_ns < self.counted_from_ns:
            self.before_warmup += count
        else:
            self._gap(now_ns)
        self._last_ns = now_ns
        self.reads += 1
        self.total += count
        bins[index] = self.total

    def _gap(self, now_ns: int) -> None:
        gap = now_ns - self._last_ns
        if gap > self.longest_ns:
            self.longest_ns, self.longest_at_ns = gap, self._last_ns
        if gap >= SILENCE_NS:
            self._silences.append((self._last_ns - self.first_ns, gap))

    def finish(self, ended_ns: int | None = None) -> dict[str, Any]:
        """The result. A silence that lasts to the end is a stall too.

        Args:
            ended_ns: when the sender ended before the measured time was over.

        """
        end = self.end_ns if ended_ns is None else min(ended_ns, self.end_ns)
        if end > self.counted_from_ns:
            self._gap(end)
        duration_ns = max(0, end - self.counted_from_ns)
        counted = self.total - self.before_warmup
        bins = list(self._bins)
        bins += [self.total] * (math.ceil((end - self.first_ns) / self.step_ns) - len(bins))
        return {
            "goodput_mbps": round(counted * 8e3 / duration_ns, 3) if duration_ns else 0.0,
            "duration_s": duration_ns / 1e9,
            "warmup_s": self.warmup_ns / 1e9,
            "counted_bytes": counted,
            "total_bytes": self.total,
            "reads": self.reads,
            "longest_stall_ms": round(self.longest_ns / 1e6, 3),
            "longest_stall_at_s": round((self.longest_at_ns - self.first_ns) / 1e9, 6)
            if self.longest_ns
            else 0.0,
            "silences": [[round(at / 1e9, 6), round(gap / 1e6, 3)] for at, gap in self._silences],
            "bins": {"step_s": self.step_ns / 1e9, "bytes": bins},
        }


class Blocks:
    """Finds the end of each paced block in what is read, and how long the block took (ns)."""

    def __init__(self) -> None:
        """Begins at the start of a block."""
        self.delays_ns: array[int] = array("q")
        self._header = bytearray()
        self._stamp = 0
        self._left = 0

    def feed(self, data: memoryview, now_ns: int, *, count: bool = True) -> None:
        """Goes through what one read gave; its time is that of every block that ends in it.

        Raises ValueError: this is no paced stream.
        """
        at, size = 0, len(data)
        while at < size:
            if not self._left:
                taken = min(HEADER.size - len(self._header), size - at)
                self._header += data[at : at + taken]
                at += taken
                if len(self._header) < HEADER.size:
                    return
                self._stamp, length = HEADER.unpack(self._header)
                if length <= HEADER.size:
                    raise ValueError(f"a block of {length} bytes: the stream is not paced")
                self._header.clear()
                self._left = length - HEADER.size
            taken = min(self._left, size - at)
            self._left -= taken
            at += taken
            if not self._left and count:
                self.delays_ns.append(now_ns - self._stamp)

    def finish(self) -> dict[str, Any] | None:
        """The delays in ms; None without a block."""
        if not self.delays_ns:
            return None
        ordered = sorted(self.delays_ns)
        least, p99 = ordered[0], percentile(ordered, 99)
        return {
            "blocks": len(ordered),
            "min_ms": round(least / 1e6, 4),
            "p50_ms": round(percentile(ordered, 50) / 1e6, 4),
            "p99_ms": round(p99 / 1e6, 4),
            "max_ms": round(ordered[-1] / 1e6, 4),
            "p99_excess_ms": round((p99 - least) / 1e6, 4),
        }


def percentile(ordered: Sequence[int], percent: float) -> int:
    """The smallest value that at least `percent` per cent of the sorted values do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
