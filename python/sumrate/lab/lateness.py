"""When a run is void: the emulator itself was late, so it did not emulate what was asked."""

from typing import Any

LATE_MS = 25.0
"""An emulator that sent a packet later than this makes a run void: half of the 50 ms of silence
after which a path is taken to be blocked, so that no lateness looks like a blockage."""

LATE_SHARE = 0.01
"""So does one that sent more than this share of its packets later than 2 ms."""


def worst_lateness_ms(stats: dict[str, Any]) -> float | None:
    """The emulator's worst lateness since it was last reset, or None if it does not say."""
    value = stats.get("lateness_since_reset", {}).get("worst_ms")
    return float(value) if value is not None else None


def late_share(stats: dict[str, Any]) -> float:
    """The share of packets that were more than 2 ms late since the last reset."""
    counted = stats.get("lateness_since_reset", {})
    return float(counted.get("late_over_2ms", 0)) / max(1.0, float(counted.get("events", 0)))


def is_late(stats: dict[str, Any]) -> bool:
    """Whether the run is void; one whose lateness is unknown is."""
    late = worst_lateness_ms(stats)
    return late is None or late > LATE_MS or late_share(stats) > LATE_SHARE
