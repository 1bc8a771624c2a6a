"""Congestion controls that are not the kernel's own: loaded before a measurement, and taken out."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sumrate.lab.programs import have, program

PREFIX = "sumrate_"
"""What the kernel's names of ours begin with."""


@contextmanager
def loaded(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Loads those of ours that are not there yet; takes them out again on leaving.

    A driver that is killed leaves them loaded, which harms nobody: `sumrate cc unload`.

    Args:
        names: congestion controls as for TCP_CONGESTION; the kernel's own are left alone.

    Yields:
        Those that cannot be had, each with the reason.

    """
    missing: dict[str, str] = {}
    own: list[str] = []
    try:
        for name in names:
            if not name.startswith(PREFIX) or name in available():
                continue
            if reason := load(name):
                missing[name] = reason
            else:
                own.append(name)
        yield missing
    finally:
        for name in own:
            command("unload", name)


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
