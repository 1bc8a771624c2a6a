"""Of which code a kept result is, and how often the transport has changed since."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sumrate.history import commits_since
from sumrate.lab.experiment.load import FOLDER, load
from sumrate.lab.programs import REPOSITORY

TRANSPORT = ("crates/fbdt-proto/src", "crates/fbdt/src")
"""What moves the bytes of a scheme of one of KINDS."""
KINDS = ("sumrate", "messages")


@dataclass(frozen=True)
class Recorded:
    """When and of which commit an experiment's result is."""

    experiment: str
    day: str
    commit: str
    changes: int | None
    """Commits to the transport since; None where no scheme is of it, or git does not know."""

    def words(self) -> str:
        """For a list of results."""
        text = f"{self.experiment} {self.day} at {self.commit[:10]}"
        if self.changes is None:
            return text
        commits = "commit" if self.changes == 1 else "commits"
        return f"{text}, {self.changes or 'no'} {commits} to the transport since"


def recorded(
    results: Path, experiments: Sequence[str], folder: Path = FOLDER
) -> Iterator[Recorded]:
    """Of those that have a result in `results/EXPERIMENT`.

    Raises:
        ExperimentError: an experiment of `folder` is wrong.

    """
    for name in experiments:
        path = results / name / "manifest.json"
        if path.is_file():
            yield _recorded(name, path, folder)


@cache
def _recorded(name: str, manifest: Path, folder: Path) -> Recorded:
    of = json.loads(manifest.read_text(encoding="utf-8"))
    commit = str(of["commit"])
    is_ours = any(scheme.kind in KINDS for scheme in load(name, folder).schemes)
    return Recorded(
        name, str(of["started"])[:10], commit, changes_since(commit) if is_ours else None
    )


@cache
def changes_since(commit: str, root: Path = REPOSITORY) -> int | None:
    """How many commits changed the transport since then; None if git does not know that commit."""
    return commits_since(commit, TRANSPORT, root)
