"""Of which code a kept result is, and how often the transport has changed since."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sumrate.lab.programs import REPOSITORY

TRANSPORT = ("crates/fbdt-proto/src", "crates/fbdt/src")
"""What moves the bytes of a scheme whose name begins with OURS."""
OURS = "sumrate"


@dataclass(frozen=True)
class Recorded:
    """When and of which commit an experiment's result is."""

    experiment: str
    day: str
    commit: str
    changes: int | None
    """Commits to the transport since; None where no run is of it, or git does not know."""

    def words(self) -> str:
        """For a list of results."""
        text = f"{self.experiment} {self.day} at {self.commit[:10]}"
        if self.changes is None:
            return text
        commits = "commit" if self.changes == 1 else "commits"
        return f"{text}, {self.changes or 'no'} {commits} to the transport since"


def recorded(results: Path, experiments: Sequence[str]) -> Iterator[Recorded]:
    """Of those that have a result in `results/EXPERIMENT`."""
    for name in experiments:
        path = results / name / "manifest.json"
        if path.is_file():
            yield _recorded(name, path)


@cache
def _recorded(name: str, manifest: Path) -> Recorded:
    of = json.loads(manifest.read_text(encoding="utf-8"))
    commit = str(of["commit"])
    changes = changes_since(commit) if _is_ours(of) else None
    return Recorded(name, str(of["started"])[:10], commit, changes)


def _is_ours(manifest: Mapping[str, Any]) -> bool:
    return any(str(run.get("scheme", "")).startswith(OURS) for run in manifest["runs"])


@cache
def changes_since(commit: str, root: Path = REPOSITORY) -> int | None:
    """How many commits changed the transport since then; None if git does not know that commit."""
    argv = ["git", "-C", str(root), "rev-list", "--count", f"{commit}..HEAD", "--", *TRANSPORT]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return int(done.stdout) if done.returncode == 0 else None
