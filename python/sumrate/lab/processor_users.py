"""Which programs outside a measurement used the processors while it ran.

The folder `/proc` is opened before the measurement enters namespaces of its own, from where only
its own processes are seen.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

LEAST_CORES = 0.1
"""A program that used less of one core is not named."""
MOST_NAMED = 3
FOREIGN_SHARE, IDLE_SHARE = 0.1, 0.05
"""A measurement was starved if others used more than FOREIGN_SHARE of the processors' time and less
than IDLE_SHARE was left."""
HOST = "the host of this virtual machine"
IDLE, STEAL = 3, 7
"""Places of the idle and the stolen time among a processor's times (proc_stat(5))."""


@dataclass(frozen=True)
class Usage:
    """What one process has used so far, in ticks."""

    name: str
    parent: int
    started: int
    ticks: int


@dataclass(frozen=True)
class Moment:
    """All processes at one moment."""

    uptime_ticks: float
    total_ticks: int
    """Of all processors together."""
    idle_ticks: int
    stolen_ticks: int
    processes: Mapping[int, Usage]


@dataclass
class ProcessorUsers:
    """Adds up what programs other than those below `own` use between looks."""

    own: int
    folder: int
    ticks: Counter[str] = field(default_factory=Counter)
    passed_ticks: float = 0.0
    _last: Moment | None = None

    @classmethod
    def open(cls) -> Self:
        """Looks from where this process is now; its children are not counted."""
        return cls(os.getpid(), os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))

    def begin(self) -> None:
        """Starts to count."""
        self._last = self._moment()

    def end(self) -> str | None:
        """Adds what was used since `begin`; says why the measurement was starved, if it was."""
        before, after = self._last, self._moment()
        if before is None or after is None:
            return None
        used = used_between(before, after, self.own)
        self.passed_ticks += after.uptime_ticks - before.uptime_ticks
        self.ticks += used
        return starved(before, after, sum(used.values()))

    def users(self) -> list[dict[str, Any]]:
        """The programs that used the most: `name` and `cores`, the mean number of cores."""
        if self.passed_ticks <= 0:
            return []
        cores = [(name, count / self.passed_ticks) for name, count in self.ticks.most_common()]
        named = [(name, share) for name, share in cores if share >= LEAST_CORES]
        return [{"name": n, "cores": round(share, 2)} for n, share in named[:MOST_NAMED]]

    def _moment(self) -> Moment | None:
        try:
            times = [int(word) for word in self._read("stat").split("\n", 1)[0].split()[1:9]]
            stolen, idle = times[STEAL], times[IDLE]
            uptime = float(self._read("uptime").split()[0]) * os.sysconf("SC_CLK_TCK")
            pids = [int(name) for name in os.listdir(self.folder) if name.isdecimal()]  # noqa: PTH208
        except (OSError, ValueError, IndexError):
            return None
        found = {}
        for pid in pids:
            try:
                found[pid] = usage(self._read(f"{pid}/stat"))
            except (OSError, ValueError, IndexError):  # it has ended
                continue
        return Moment(uptime, sum(times), idle, stolen, found)

    def _read(self, name: str) -> str:
        file = os.open(name, os.O_RDONLY, dir_fd=self.folder)
        with os.fdopen(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()


def usage(text: str) -> Usage:
    """Reads `/proc/PID/stat`; the name, which may have spaces, ends with the last parenthesis."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    name = "".join(c for c in head.partition("(")[2] if c.isprintable())
    return Usage(name, int(fields[1]), int(fields[19]), int(fields[11]) + int(fields[12]))


def used_between(before: Moment, after: Moment, own: int) -> Counter[str]:
    """Ticks of each program's name that is not `own` or below it, and of the host."""
    found: Counter[str] = Counter()
    for pid, now in after.processes.items():
        if _is_below(pid, own, after.processes):
            continue
        earlier = before.processes.get(pid)
        same = earlier is not None and earlier.started == now.started
        found[now.name] += now.ticks - (earlier.ticks if earlier and same else 0)
    found[HOST] += after.stolen_ticks - before.stolen_ticks
    return found


def _is_below(pid: int, own: int, processes: Mapping[int, Usage]) -> bool:
    while pid != own:
        if pid not in processes:
            return False
        pid = processes[pid].parent
    return True


def starved(before: Moment, after: Moment, foreign_ticks: int) -> str | None:
    """Says what others used, where they took processor time that the measurement lacked."""
    total = max(1, after.total_ticks - before.total_ticks)
    idle, foreign = (after.idle_ticks - before.idle_ticks) / total, foreign_ticks / total
    if foreign <= FOREIGN_SHARE or idle >= IDLE_SHARE:
        return None
    return (
        f"other programs used {foreign:.0%} of the processors (limit: {FOREIGN_SHARE:.0%}) "
        "and left nothing idle"
    )
