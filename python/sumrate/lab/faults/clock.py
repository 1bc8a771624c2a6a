"""A fault of the clock: the time of day jumps, as libfaketime (Debian package faketime) has it.

libfaketime stands between the processes and the C library (LD_PRELOAD): what they are told of the
time is faked. The clock of the kernel, which no container may set, is not.
"""

import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sumrate.lab.faults.fault import VICTIM, Fault, break_first_path, proven
from sumrate.lab.faults.world import World

STEPS = ("+3650d", "-3650d", "+0")
"""Years ahead, years back, and the right time again."""
FILE = "/run/sumrate-clock"
REQUIRED = "SUMRATE_EVERY_FAULT"
"""The environment variable by which CI has what is missing fail instead of being left out."""
MISSING = "libfaketime is not installed (tools/prerequisites.sh test, Debian package faketime)"


@cache
def library() -> Path | None:
    """libfaketime, if it is installed."""
    places = (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"))
    return next((p for folder in places for p in folder.glob("**/libfaketimeMT.so.1")), None)


def required() -> bool:
    """Whether a run without this fault is a failure."""
    return os.environ.get(REQUIRED, "") not in ("", "0")


def environment() -> dict[str, str]:
    """What lets the clock of a process be set by a file; empty without libfaketime.

    The monotonic clock, by which timers run, is never stepped by a kernel and is left alone.
    """
    found = library()
    if found is None:
        return {}
    Path(FILE).write_text(STEPS[-1], encoding="ascii")
    return {
        "LD_PRELOAD": str(found),
        "FAKETIME_TIMESTAMP_FILE": FILE,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "SUMRATE_LOG": "debug",
    }


def clock_stepped(world: World, hold_s: float) -> Mapping[str, int]:
    """The clock of server and clients jumps by ten years; paths break and come back meanwhile."""
    log = world.bench.folder / "serve.log"
    before = _years(log)
    for step in STEPS:
        Path(FILE).write_text(step, encoding="ascii")
        break_first_path(world)
        world.wait_delivered(VICTIM, 1 << 20)
        time.sleep(hold_s)
        world.wait_whole(VICTIM)
    return proven(years_seen_in_the_log=len(_years(log) - before))


def _years(log: Path) -> set[str]:
    """The years in which lines of a log were written."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return {line[:4] for line in text.splitlines() if line[:4].isdigit()}


FAULTS = (
    Fault("clock-stepped",
          "the time of day jumps by ten years, and back (libfaketime, preloaded; not the kernel's)",
          clock_stepped),
)  # fmt: skip
