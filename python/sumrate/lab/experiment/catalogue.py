"""The claims of the five papers, and what this repository's results say about each."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.judge import NOT_RUN
from sumrate.lab.experiment.load import CATALOGUE, FOLDER, load, names


@dataclass(frozen=True)
class Entry:
    """One claim or goal with its verdict."""

    id: str
    document: str
    figure: str
    published: str
    claim: str
    experiment: str
    command: str
    verdict: str
    measured: str
    cause: str
    results: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def claims(folder: Path = FOLDER) -> dict[str, Mapping[str, Any]]:
    """Every claim by its id, in the papers' order."""
    text = (folder / CATALOGUE).read_text(encoding="utf-8")
    found: dict[str, Mapping[str, Any]] = tomllib.loads(text)["claims"]
    return found


@dataclass(frozen=True)
class Judge:
    """The experiment that decides about a claim or goal, and what it asks of it."""

    experiment: str
    statement: str


NOBODY = Judge("", "")


def judges(folder: Path = FOLDER) -> dict[str, Judge]:
    """Which experiment judges each claim or goal."""
    found: dict[str, Judge] = {}
    for name in names(folder):
        statements: dict[str, list[str]] = {}
        for check in load(name, folder).checks:
            for identity in filter(None, (check.claim, check.goal)):
                statements.setdefault(identity, []).append(check.statement)
        for identity, said in statements.items():
            found.setdefault(identity, Judge(name, "; ".join(dict.fromkeys(said))))
    return found


def entries(results: Path, folder: Path = FOLDER) -> list[Entry]:
    """Every claim, then every goal, with the verdict of the results in `results/EXPERIMENT`."""
    judged_by = judges(folder)
    verdicts = {
        _id(verdict): (name, verdict)
        for name in names(folder)
        for verdict in read_verdicts(results / name)
        if judged_by.get(_id(verdict), NOBODY).experiment == name
    }
    known = claims(folder)
    goals: dict[str, Mapping[str, Any]] = {
        i: {} for i in sorted(judged_by, key=_goal_order) if i not in known
    }
    return [
        _entry(identity, text, judged_by.get(identity, NOBODY), verdicts.get(identity), results)
        for identity, text in {**known, **goals}.items()
    ]


def read_verdicts(folder: Path) -> list[dict[str, Any]]:
    """The verdicts of a run; none if there is none."""
    path = folder / "verdicts.json"
    if not path.is_file():
        return []
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _id(verdict: Mapping[str, Any]) -> str:
    return str(verdict.get("claim") or verdict.get("goal"))


def _goal_order(identity: str) -> tuple[bool, int, str]:
    """P goals first, by number."""
    digits = "".join(c for c in identity if c.isdigit())
    return (not identity.startswith("P"), int(digits or 0), identity)


def _entry(
    identity: str,
    text: Mapping[str, Any],
    judge: Judge,
    found: tuple[str, Mapping[str, Any]] | None,
    results: Path,
) -> Entry:
    verdict: Mapping[str, Any] = found[1] if found else {}
    return Entry(
        id=identity,
        document=text.get("document", "goal"),
        figure=text.get("figure", ""),
        published=text.get("published", verdict.get("expected", "")),
        claim=text.get("claim", judge.statement),
        experiment=judge.experiment,
        command=f"sumrate-lab run {judge.experiment}" if judge.experiment else "",
        verdict=verdict.get("verdict", NOT_RUN),
        measured=verdict.get("measured", ""),
        cause=verdict.get("cause", ""),
        results=str(results / judge.experiment / "verdicts.json") if found else "",
    )
