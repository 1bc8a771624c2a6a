"""When a run is void: the emulator itself was late, so it did not emulate what was asked."""

from typing import Any

LATE_MS = 25.0
"""An emulator that sent a packet later than this makes a run void: half of the 50 ms of silence
after which a path is taken to be blocked, so that no lateness looks like a blockage."""

ON_TIME_MS = 2.0
"""A packet that was sent later than this is counted as late by the emulator."""

LATE_SHARE = 0.01
"""A larger share of late packets makes a run void too."""


def worst_lateness_ms(stats: dict[str, Any]) -> float | None:
    """The emulator's worst lateness since it was last reset, or None if it does not say."""
    value = stats.get("lateness_since_reset", {}).get("worst_ms")
    return float(value) if value is not None else None


def late_share(stats: dict[str, Any]) -> float:
    """The share of packets that were more than `ON_TIME_MS` late since the last reset."""
    counted = stats.get("lateness_since_reset", {})
    return float(counted.get("late_over_2ms", 0)) / max(1.0, float(counted.get("events", 0)))


def is_late(stats: dict[str, Any]) -> bool:
    """Whether the run is void; one whose lateness is unknown is."""
    return why_late(stats) is not None


def why_late(stats: dict[str, Any]) -> str | None:
    """What makes the run void, with the value and its limit; None if nothing does."""
    late, share = worst_lateness_ms(stats), late_share(stats)
    if late is None:
        return "the emulator does not say how late it was"
    if late > LATE_MS:
        return f"the emulator sent a packet {late:.0f} ms late (limit: {LATE_MS:g} ms)"
    if share > LATE_SHARE:
        return (
            f"the emulator sent {share:.1%} of the packets more than {ON_TIME_MS:g} ms late "
            f"(limit: {LATE_SHARE:.0%})"
        )
    return None
