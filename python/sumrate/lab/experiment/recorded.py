"""Of which code a kept result is, and how often the transport has changed since."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sumrate.history import commits_since
from sumrate.lab.experiment.load import FOLDER, load
from sumrate.lab.experiment.sources import origin_of
from sumrate.lab.programs import REPOSITORY
from sumrate.verdict.model import Recorded

TRANSPORT = tuple(
    f"crates/{name}/src"
    for name in ("fbdt-units", "fbdt-wire", "fbdt-coupling", "fbdt-proto", "fbdt", "fbdt-baselines")
)
"""What moves the bytes of a scheme of one of KINDS."""
KINDS = ("sumrate", "messages")


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
