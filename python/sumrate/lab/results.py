"""What makes a result reproducible: commit, kernel, machine, settings; and where it is written."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sumrate.lab.built import behind, digests
from sumrate.lab.programs import REPOSITORY


def commit() -> str:
    """The repository's commit, with `-dirty` if tracked files were changed; `unknown` outside."""
    done = subprocess.run(
        ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=40"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def processor() -> str:
    """What the kernel calls this machine's processor; `unknown` where it does not say."""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    fields = (line.partition(":") for line in said.splitlines())
    names = (value.strip() for key, _, value in fields if key.strip() == "model name")
    return next(names, "unknown")


def provenance(argv: list[str]) -> dict[str, Any]:
    """Command line, commit, programs, kernel, time and size of the machine of a run."""
    return {
        "commit": commit(),
        "kernel": platform.release(),
        "machine": {
            "cpus": os.cpu_count(),
            "architecture": platform.machine(),
            "processor": processor(),
        },
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": argv,
        "programs": digests(),
        "programs_behind": behind(),
    }


def write_json(path: Path, document: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def rounded(value: float, digits: int = 3) -> float:
    """A number for a result file."""
    return round(float(value), digits)


BAR_WIDTH = 20
ERASE_REST = "\x1b[K"
"""Erases from the cursor to the end of the line (ECMA-48, EL)."""


def time_left(seconds: float) -> str:
    """A time to go, in the unit that suits it."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """A bar on stderr, how long everything still takes, and what runs.

    A terminal has one line of it, a log file one line for each step. Standard output is left to
    results, so that `--json` needs no silence.
    """

    def __init__(self, total_s: float) -> None:
        """Expects the work to take `total_s` seconds in all."""
        self.left_s = total_s
        self._total_s = total_s
        self._terminal = sys.stderr.isatty()
        self._last = ""

    def show(self, text: str, step_left_s: float = 0.0) -> None:
        """Shows the line; `step_left_s` is what the current step adds to what is left."""
        left_s = max(0.0, self.left_s + step_left_s)
        if self._terminal:
            line = f"{self._bar(left_s)} {time_left(left_s)} left: {text}"
            # A line that wraps could not be erased.
            line = line[: max(1, shutil.get_terminal_size().columns - 1)]
            print(f"\r{line}{ERASE_REST}", end="", file=sys.stderr, flush=True)
        elif text.split(":", maxsplit=1)[0] != self._last:
            print(f"{text}, about {time_left(left_s)} left", file=sys.stderr, flush=True)
            self._last = text.split(":", maxsplit=1)[0]

    def _bar(self, left_s: float) -> str:
        done = 1.0 - min(1.0, left_s / self._total_s) if self._total_s > 0 else 1.0
        filled = int(done * BAR_WIDTH)
        return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done * 100:3.0f} %"

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._terminal:
            print(f"\r{ERASE_REST}", end="", file=sys.stderr, flush=True)
