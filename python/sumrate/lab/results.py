"""What makes a result reproducible: commit, kernel, machine, settings; and where it is written."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn
from rich.progress import Progress as RichProgress

from sumrate.atomic import replacing
from sumrate.lab.built import behind, digests
from sumrate.lab.programs import REPOSITORY

Step = TypeVar("Step")


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
    with replacing(path) as file:
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def rounded(value: float, digits: int = 3) -> float:
    """A number for a result file."""
    return round(float(value), digits)


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
    results, so that `--json` needs no silence. No thread draws: it would disturb measurements.
    """

    def __init__(self, total_s: float) -> None:
        """Expects the work to take `total_s` seconds in all."""
        self.left_s = total_s
        self._total_s = max(total_s, 1e-9)
        self._last = ""
        self._bar = bar("{task.description}") if sys.stderr.isatty() else None
        self._task = self._bar.add_task("", total=self._total_s) if self._bar else None

    def show(self, text: str, step_left_s: float = 0.0) -> None:
        """Shows the line; `step_left_s` is what the current step adds to what is left."""
        left_s = max(0.0, self.left_s + step_left_s)
        if self._bar is not None and self._task is not None:
            self._bar.start()
            words = f"{time_left(left_s)} left: {text}"
            done = max(0.0, self._total_s - left_s)
            self._bar.update(self._task, completed=done, description=words, refresh=True)
        elif text.split(":", maxsplit=1)[0] != self._last:
            print(f"{text}, about {time_left(left_s)} left", file=sys.stderr, flush=True)
            self._last = text.split(":", maxsplit=1)[0]

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._bar is not None:
            self._bar.stop()


def bar(*words: str) -> RichProgress:
    """A bar on stderr that vanishes when it is stopped, and is drawn when it is told to."""
    return RichProgress(
        BarColumn(20),
        TaskProgressColumn(),
        *words,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        disable=not sys.stderr.isatty(),
        redirect_stdout=False,
        redirect_stderr=False,
    )


def steps(some: Sequence[Step], what: str, *, silent: bool = False) -> Iterator[Step]:
    """Each of some, with a bar on a terminal."""
    if silent or not sys.stderr.isatty():
        yield from some
        return
    with bar("{task.completed} of {task.total} {task.description}") as shown:
        task = shown.add_task(what, total=len(some))
        for step in some:
            shown.refresh()
            yield step
            shown.advance(task)
