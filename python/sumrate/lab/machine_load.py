"""How busy the machine is before anything is measured: what others take is missing in results."""

import sys
import time
from pathlib import Path

STAT = Path("/proc/stat")
LOOK_S = 0.5
MOST = 0.1
"""A measured scheme that would use all cores loses about as much."""
IDLE = (3, 4)
"""Places of idle and iowait among a processor's times (proc_stat(5))."""


def busy_share(before: str, after: str) -> float | None:
    """The share of all processors' time that was used between two states of `/proc/stat`."""
    try:
        first, last = (
            [int(word) for word in text.splitlines()[0].split()[1:9]] for text in (before, after)
        )
        passed = [b - a for a, b in zip(first, last, strict=True)]
        total = sum(passed)
        return 1.0 - sum(passed[place] for place in IDLE) / total if total > 0 else None
    except (IndexError, ValueError):
        return None


def busy_before(seconds: float = LOOK_S) -> float | None:
    """Looks for so long; None where the kernel does not say. Says so if others use much."""
    try:
        before = STAT.read_text(encoding="ascii")
        time.sleep(seconds)
        share = busy_share(before, STAT.read_text(encoding="ascii"))
    except OSError:
        return None
    if share is not None and share > MOST:
        print(
            f"warning: other programs use {share:.0%} of this machine's processors: what is "
            "measured now may be too low; stop them and run it again",
            file=sys.stderr,
        )
    return share
