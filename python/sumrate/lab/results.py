"""What makes a result reproducible: commit, kernel, machine, settings; and where it is written."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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


def provenance(argv: list[str]) -> dict[str, Any]:
    """Command line, commit, kernel, time and size of the machine of a run."""
    return {
        "commit": commit(),
        "kernel": platform.release(),
        "machine": {"cpus": os.cpu_count(), "architecture": platform.machine()},
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": argv,
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


class Progress:
    """One line on the terminal that says what runs and how long everything still takes."""

    def __init__(self, total_s: float, *, quiet: bool = False) -> None:
        """Expects the work to take `total_s` seconds in all."""
        self.left_s = total_s
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._width = 0
        self._last = ""

    def show(self, text: str, step_left_s: float = 0.0) -> None:
        """Shows the line; `step_left_s` is what the current step adds to what is left."""
        if self._quiet:
            return
        line = f"{text}, about {max(0.0, self.left_s + step_left_s):.0f} s left"
        if self._terminal:
            print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
            self._width = len(line)
        elif text.split(":", maxsplit=1)[0] != self._last:  # a log file gets one line for each step
            print(line, file=sys.stderr, flush=True)
            self._last = text.split(":", maxsplit=1)[0]

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._terminal and not self._quiet:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0
