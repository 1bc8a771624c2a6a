"""How busy the machine is before and while something is measured: what others take is missing."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROCESSES = Path("/proc")
STAT = PROCESSES / "stat"
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


@dataclass(frozen=True)
class UserTime:
    """Processors' time in programs since some moment, in seconds."""

    total_s: float
    """Of all processors together, idle or not."""
    all_s: float
    """In programs, of the whole machine."""
    own_s: float
    """In the programs that `/proc` shows, and those that they have waited for."""


def user_time() -> UserTime | None:
    """What programs have used so far; None where the kernel does not say, or not of ours alone.

    In a process namespace of one's own `/proc` has its programs only and `/proc/stat` the whole
    machine. Time in the kernel is left out: much of it works for whoever sends, and says not for
    whom.
    """
    try:
        if str((PROCESSES / "self").readlink()) != "1" or os.getpid() != 1:
            return None  # it has the programs of others as well
        ticks = os.sysconf("SC_CLK_TCK")
        words = [int(word) for word in STAT.read_text(encoding="ascii").split("\n")[0].split()[1:9]]
        return UserTime(sum(words) / ticks, (words[0] + words[1]) / ticks, _own_ticks() / ticks)
    except (OSError, ValueError, IndexError):
        return None


def _own_ticks() -> int:
    """User time of all processes that are seen, and of the children that they have waited for."""
    found = 0
    for folder in PROCESSES.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            # The name, which may have spaces and parentheses, ends with the last parenthesis.
            words = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        fields = words.rpartition(")")[2].split()
        found += int(fields[11]) + int(fields[13])
    return found


def foreign_share(before: UserTime | None, after: UserTime | None) -> float | None:
    """The share of all processors' time that programs which are not ours used in between."""
    if before is None or after is None or after.total_s <= before.total_s:
        return None
    others = (after.all_s - before.all_s) - (after.own_s - before.own_s)
    return max(0.0, others / (after.total_s - before.total_s))
