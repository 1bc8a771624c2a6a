"""Of which code a kept result is, and how often the transport has changed since."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sumrate.history import commits_since
from sumrate.lab.experiment.load import FOLDER, load
from sumrate.lab.experiment.sources import origin_of
from sumrate.lab.programs import REPOSITORY

TRANSPORT = tuple(
    f"crates/{name}/src"
    for name in ("fbdt-units", "fbdt-wire", "fbdt-coupling", "fbdt-proto", "fbdt", "fbdt-baselines")
)
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
        return text if self.changes is None else f"{text}, {self.since()} to the transport since"

    def since(self) -> str:
        """How many commits changed the transport, for people."""
        if self.changes is None:
            return "-"
        return f"{self.changes or 'no'} {'commit' if self.changes == 1 else 'commits'}"


def recorded(
    results: Path, experiments: Sequence[str], folder: Path = FOLDER
) -> Iterator[Recorded]:
    """Of those that have a result in the folder.

    Raises ExperimentError: an experiment of `folder` is wrong.
    """
    for name in experiments:
        if origin := origin_of(results, name):
            yield _recorded(name, origin, folder)


def _recorded(name: str, of: Mapping[str, Any], folder: Path) -> Recorded:
    commit = str(of["commit"])
    is_ours = _is_ours(name, folder)
    return Recorded(
        name, str(of["started"])[:10], commit, changes_since(commit) if is_ours else None
    )


@cache
def _is_ours(name: str, folder: Path) -> bool:
    return any(scheme.kind in KINDS for scheme in load(name, folder).schemes)


@cache
def changes_since(commit: str, root: Path = REPOSITORY) -> int | None:
    """How many commits changed the transport since then; None if git does not know that commit."""
    return commits_since(commit, TRANSPORT, root)
