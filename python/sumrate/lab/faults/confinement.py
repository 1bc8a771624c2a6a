"""What a process may take and what it took: memory, descriptors, panics.

Memory is limited by a control group of its own where one can be made (below this process's own
group, version 1 or 2); elsewhere nothing limits it, and its largest resident size is checked
afterwards.
"""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from sumrate.lab.process import Process

CGROUPS = Path("/sys/fs/cgroup")
PREFIX = "sumrate-lab-"
LEFT_S = 600.0
"""A group that has been empty for so long belongs to nobody."""
PANIC = re.compile(r"panicked at|stack overflow|memory allocation of \d+ bytes failed")


class MemoryGroup:
    """A control group with a memory limit; `files` are its procs, limit and peak files."""

    def __init__(self, folder: Path, *, unified: bool, limit: int) -> None:
        """Makes the group. Raises OSError where that is refused."""
        self.folder = folder
        names = ("memory.max", "memory.peak", "memory.current")
        if not unified:
            names = ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.usage_in_bytes")
        self._limit, self._peak, self._current = (folder / name for name in names)
        folder.mkdir()
        try:
            self._limit.write_text(f"{limit}\n", encoding="ascii")
        except OSError:
            self.remove()
            raise

    def prefix(self) -> list[str]:
        """What a command line begins with so that the process runs in the group from its start."""
        script = 'echo $$ >"$0" && exec "$@"'
        return ["sh", "-c", script, str(self.folder / "cgroup.procs")]

    def peak(self) -> int:
        """Most bytes that were ever charged to the group: page cache and sockets too."""
        path = self._peak if self._peak.exists() else self._current
        return int(path.read_text(encoding="ascii"))

    def remove(self) -> None:
        """Removes the group, if its processes are gone."""
        with suppress(OSError):
            self.folder.rmdir()


def memory_group(name: str, limit: int) -> MemoryGroup | None:
    """A control group that may take `limit` bytes; None where none can be made."""
    for parent, unified in _parents():
        for left in parent.glob(f"{PREFIX}*"):  # of a driver that was killed; busy ones stay
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > LEFT_S:
                    left.rmdir()
        with suppress(OSError):
            return MemoryGroup(
                parent / f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{name}",
                unified=unified,
                limit=limit,
            )
    return None


def _parents() -> list[tuple[Path, bool]]:
    """The folders of this process's own groups that account for memory, and their version."""
    found = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            number, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                found.append((CGROUPS / "memory" / path.lstrip("/"), False))
            elif number == "0":
                found.append((CGROUPS / path.lstrip("/"), True))
    return [(folder, unified) for folder, unified in found if folder.is_dir()]


def _status_bytes(process: Process, field: str) -> int:
    text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def peak_memory(process: Process) -> int:
    """Largest resident size of a process so far, in bytes (VmHWM)."""
    return _status_bytes(process, "VmHWM")


def memory(process: Process) -> int:
    """Resident size of a process now, in bytes (VmRSS)."""
    return _status_bytes(process, "VmRSS")


def descriptors(process: Process) -> int:
    """File descriptors that a process has open."""
    return len(os.listdir(f"/proc/{process.pid}/fd"))  # noqa: PTH208  (a count, often taken)


def panics(log: Path) -> list[str]:
    """Lines of a log that tell of a panic."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return [line for line in text.splitlines() if PANIC.search(line)]
