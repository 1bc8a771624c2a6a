"""A rate over time and the emulator's native text format (docs/traces.md)."""

import math
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

HEADER = "sumrate-trace 1"
"""First line of every file."""
MAX_STEPS = 10_000_000
NS_PER_MS = 1_000_000
DURATION_MAX_MS = 1e12
"""Longest step, about 32 years."""


class TraceFormatError(ValueError):
    """A file is not a trace; the message has the line and the expected content."""


@dataclass(frozen=True)
class Trace:
    """The rate of one direction of a link in equal steps, repeated at the end."""

    step_ms: float
    rates_mbps: tuple[float, ...]
    """Mbit/s of IP bytes, headers included."""
    origin: str = ""
    """Origin in one line, the file's first comment."""

    @property
    def seconds(self) -> float:
        """Length of one round."""
        return len(self.rates_mbps) * self.step_ms / 1e3

    def scaled(self, factor: float) -> "Trace":
        """The trace with every rate multiplied, and the factor in its origin."""
        if factor == 1.0:
            return self
        rates = tuple(round(rate * factor, 3) for rate in self.rates_mbps)
        return Trace(self.step_ms, rates, f"{self.origin}, rates x {factor:g}")

    @property
    def mean_rate_mbps(self) -> float:
        """Mean rate of one round."""
        return math.fsum(self.rates_mbps) / len(self.rates_mbps)


def text(trace: Trace) -> str:
    """The trace in the native format; consecutive equal steps are merged.

    Raises:
        ValueError: a rate or step is out of range.

    """
    if not any(rate > 0 for rate in trace.rates_mbps):
        raise ValueError("a trace needs at least one step with a rate above 0")
    if min(trace.rates_mbps) < 0 or not trace.step_ms > 0:
        raise ValueError("a trace has no negative rates and no steps of no duration")
    lines = [HEADER, f"# {trace.origin}", "# duration_ms rate_mbps"]
    for rate, equal in groupby(trace.rates_mbps):
        duration_ms = sum(1 for _ in equal) * trace.step_ms
        lines.append(f"{duration_ms:.12g} {rate:.12g}")
    return "\n".join(lines) + "\n"


def write(trace: Trace, path: Path) -> None:
    """Writes the trace in the native format."""
    path.write_text(text(trace), encoding="utf-8")


def read(path: Path) -> Trace:
    """Reads the native format; the step is the greatest common divisor of the durations.

    Raises:
        TraceFormatError: the file is not a trace.

    """
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        wrong = path.read_bytes()[: error.start].count(b"\n") + 1
        raise TraceFormatError(f"{path}: line {wrong}: not UTF-8 text: {error.reason}") from error
    header, *lines = content.split("\n")  # The emulator accepts no other line separator.
    if header.strip() != HEADER:
        raise TraceFormatError(f"{path}: line 1: expected {HEADER!r}, found {header!r}")
    steps: list[tuple[int, float]] = []
    for number, line in enumerate(lines, start=2):
        step = line.partition("#")[0].strip()
        if step:
            steps.append(_step(step, f"{path}: line {number}"))
    if not any(rate > 0 for _, rate in steps):
        raise TraceFormatError(f"{path}: no step has a rate above 0")
    unit = math.gcd(*(duration for duration, _ in steps))
    if sum(duration for duration, _ in steps) // unit > MAX_STEPS:
        raise TraceFormatError(f"{path}: its durations have no common step of a useful length")
    rates = tuple(rate for duration, rate in steps for _ in range(duration // unit))
    origin = lines[0].removeprefix("# ") if lines and lines[0].startswith("# ") else ""
    return Trace(unit / NS_PER_MS, rates, origin)


def _step(content: str, where: str) -> tuple[int, float]:
    """Duration in nanoseconds and rate of one line."""
    try:
        duration_ms, rate = map(float, content.split())
    except ValueError:
        raise TraceFormatError(
            f"{where}: expected `duration_ms rate_mbps`, found {content!r}"
        ) from None
    if not (math.isfinite(duration_ms) and math.isfinite(rate)) or min(duration_ms, rate) < 0:
        raise TraceFormatError(f"{where}: both must be numbers and not negative, found {content!r}")
    if duration_ms > DURATION_MAX_MS:
        raise TraceFormatError(
            f"{where}: the duration must be at most {DURATION_MAX_MS:g} ms, found {content!r}"
        )
    duration = round(duration_ms * NS_PER_MS)
    if duration <= 0:
        raise TraceFormatError(f"{where}: the duration must be at least 0.000001 ms")
    return duration, rate
