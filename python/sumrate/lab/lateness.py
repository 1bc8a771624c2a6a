"""When a run is void: the emulator itself was late, so it did not emulate what was asked."""

from typing import Any

LATE_MS = 10.0
"""An emulator that sent a packet later than this makes a run void: half of a link's queue of 20 ms,
so that what was late was jitter and never an empty link."""


def worst_lateness_ms(stats: dict[str, Any]) -> float | None:
    """The emulator's worst lateness since it was last reset, or None if it does not say."""
    value = stats.get("lateness_since_reset", {}).get("worst_ms")
    return float(value) if value is not None else None


def is_late(stats: dict[str, Any]) -> bool:
    """Whether the run is void; one whose lateness is unknown is."""
    late = worst_lateness_ms(stats)
    return late is None or late > LATE_MS
