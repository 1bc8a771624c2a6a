"""Mahimahi's format: one line for each delivery opportunity of 1500 bytes, in whole ms."""

from pathlib import Path

from sumrate.traces.trace import Trace, TraceFormatError

PACKET_BITS = 1500 * 8
MAX_LINES = 50_000_000


def mahimahi_text(trace: Trace) -> str:
    """The trace in mahimahi's format, without a partial packet at its end.

    Raises:
        ValueError: no packet fits, or the result has more than 50 million lines.

    """
    length_ms = max(1, round(trace.seconds * 1e3))
    expected = trace.mean_rate_mbps * 1e3 * length_ms / PACKET_BITS
    if expected > MAX_LINES:
        raise ValueError(f"{expected:.3g} lines are more than {MAX_LINES}: use the native format")
    lines: list[str] = []
    waiting, at_ms = 0.0, 0.0
    for rate in trace.rates_mbps:
        left_ms = trace.step_ms
        while left_ms > 1e-9:
            part = min(left_ms, int(at_ms + 1e-9) + 1 - at_ms)
            at_ms, left_ms = at_ms + part, left_ms - part
            waiting += rate * 1e3 * part
            whole = int((waiting + 1e-6) // PACKET_BITS)
            if whole:
                waiting -= whole * PACKET_BITS
                lines += [str(max(1, round(at_ms)))] * whole
    if not lines:
        raise ValueError("the trace delivers less than one packet of 1500 bytes")
    if int(lines[-1]) != length_ms:
        # The last line sets the length of a round.
        lines.append(str(length_ms))
    return "\n".join(lines) + "\n"


def write_mahimahi(trace: Trace, path: Path) -> None:
    """Writes a trace in mahimahi's format."""
    path.write_text(mahimahi_text(trace), encoding="ascii")


def read_mahimahi(path: Path) -> Trace:
    """Reads mahimahi's format: steps of 1 ms.

    Raises:
        TraceFormatError: a line is malformed.

    """
    counts: list[int] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            at = int(line)
        except ValueError:
            raise TraceFormatError(
                f"{path}: line {number}: expected a time in whole ms, found {line!r}"
            ) from None
        if at < max(1, len(counts)):
            least = max(1, len(counts))
            raise TraceFormatError(f"{path}: line {number}: {at} ms is before {least} ms")
        if at > MAX_LINES:
            raise TraceFormatError(f"{path}: line {number}: {at} ms is too long a trace")
        counts += [0] * (at - len(counts))
        counts[at - 1] += 1
    if not counts:
        raise TraceFormatError(f"{path}: it has no delivery opportunity")
    rates = tuple(count * PACKET_BITS / 1e3 for count in counts)
    return Trace(1.0, rates, f"mahimahi trace {path.name}")
