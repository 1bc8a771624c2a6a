"""Congestion controls that are not the kernel's own: loaded before a measurement, and taken out."""

import contextlib
import fcntl
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sumrate.lab.programs import REPOSITORY, have, program

PREFIX = "sumrate_"
"""What the kernel's names of ours begin with."""
STATE = REPOSITORY / "out" / "state"
"""Where a driver notes what it loads, so that the next one takes out what a killed one left."""
MARKER = "congestion-controls-"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def loaded(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Loads those of ours that are not there yet; takes them out again on leaving.

    What a driver loaded that was killed is taken out first. What others loaded is left alone.

    Args:
        names: congestion controls as for TCP_CONGESTION; the kernel's own are left alone.

    Yields:
        Those that cannot be had, each with the reason.

    """
    take_out_what_is_left()
    wanted = [name for name in names if name.startswith(PREFIX)]
    if not wanted:
        yield {}
        return
    missing: dict[str, str] = {}
    own: list[str] = []
    with _marker() as marker:
        try:
            for name in wanted:
                there = name in available()
                if not there:
                    _note(marker, [*own, name])
                # What is there may be another build's, which is refused.
                if reason := load(name):
                    missing[name] = reason
                elif not there:
                    own.append(name)
            _note(marker, own)
            yield missing
        finally:
            for name in own:
                command("unload", name)


def take_out_what_is_left() -> None:
    """Takes out what drivers loaded that ended without doing so; those that run hold a lock."""
    for path in sorted(STATE.glob(f"{MARKER}*")):
        with contextlib.suppress(OSError), path.open(encoding="utf-8") as marker:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            boot, *names = marker.read().split() or [""]
            if boot == _boot():  # a restart has taken out everything
                for name in sorted(available().intersection(names)):
                    command("unload", name)
            path.unlink()


@contextmanager
def _marker() -> Iterator[IO[str]]:
    """A file for the names of what is loaded, locked while this process lives."""
    STATE.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=STATE, prefix=MARKER, delete=False
    ) as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        try:
            yield marker
        finally:
            Path(marker.name).unlink(missing_ok=True)


def _note(marker: IO[str], names: Sequence[str]) -> None:
    """Writes down what is loaded, before it is."""
    marker.seek(0)
    marker.truncate()
    marker.write(" ".join([_boot(), *names]))
    marker.flush()


def _boot() -> str:
    """What tells this run of the kernel from others."""
    return BOOT_ID.read_text(encoding="ascii").strip()


def available() -> set[str]:
    """The kernel names of those of ours that are loaded."""
    if not have("sumrate"):
        return set()
    listed = json.loads(command("list").stdout or '{"algorithms": []}')
    return {entry["kernel_name"] for entry in listed["algorithms"] if entry["loaded"]}


def load(name: str) -> str:
    """Loads one; the reason why it cannot be had, or nothing."""
    if not have("sumrate"):
        return "the binary `sumrate` is not built (make build)"
    done = command("load", name)
    return "" if done.returncode == 0 else done.stderr.strip().removeprefix("sumrate: ")


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `sumrate cc`."""
    argv = [str(program("sumrate")), "cc", *words, "--json"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)
