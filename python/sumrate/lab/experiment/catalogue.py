"""The claims of the five papers, and what this repository's results say about each."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.judge import DEPENDS, FAILS, HOLDS, NOT_RUN
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
    """The experiments that decide about a claim or goal, and what they ask of it."""

    experiments: tuple[str, ...] = ()
    statement: str = ""


NOBODY = Judge()


def judges(folder: Path = FOLDER) -> dict[str, Judge]:
    """Which experiments judge each claim or goal."""
    found: dict[str, Judge] = {}
    for name in names(folder):
        statements: dict[str, list[str]] = {}
        for check in load(name, folder).checks:
            for identity in filter(None, (check.claim, check.goal)):
                statements.setdefault(identity, []).append(check.statement)
        for identity, said in statements.items():
            known = found.get(identity, NOBODY)
            parts = [part for part in (known.statement, *dict.fromkeys(said)) if part]
            found[identity] = Judge((*known.experiments, name), "; ".join(parts))
    return found


def entries(results: Path, folder: Path = FOLDER) -> list[Entry]:
    """Every claim, then every goal, with the verdict of the results in `results/EXPERIMENT`."""
    judged_by = judges(folder)
    verdicts: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name in names(folder):
        for verdict in read_verdicts(results / name):
            verdicts.setdefault(_id(verdict), {})[name] = verdict
    known = claims(folder)
    goals: dict[str, Mapping[str, Any]] = {
        i: {} for i in sorted(judged_by, key=goal_order) if i not in known
    }
    return [
        _entry(identity, text, judged_by.get(identity, NOBODY), verdicts.get(identity, {}), results)
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


def goal_order(identity: str) -> tuple[bool, int, str]:
    """P goals first, by number."""
    digits = "".join(c for c in identity if c.isdigit())
    return (not identity.startswith("P"), int(digits or 0), identity)


def _entry(
    identity: str,
    text: Mapping[str, Any],
    judge: Judge,
    found: Mapping[str, Mapping[str, Any]],
    results: Path,
) -> Entry:
    said = [found[name] for name in judge.experiments if name in found]
    verdict = together([v["verdict"] for v in said], of=len(judge.experiments))
    # What no experiment measures of a claim keeps it from holding as a whole.
    missing = text.get("unmeasured", "") if verdict != NOT_RUN else ""
    expected = "; ".join(str(v.get("expected", "")) for v in said)
    return Entry(
        id=identity,
        document=text.get("document", "goal"),
        figure=text.get("figure", ""),
        published=text.get("published", expected),
        claim=text.get("claim", judge.statement),
        experiment=", ".join(judge.experiments),
        command=f"sumrate-lab run {' '.join(judge.experiments)}" if judge.experiments else "",
        verdict=DEPENDS if missing and verdict == HOLDS else verdict,
        measured="; ".join(filter(None, (v.get("measured", "") for v in said))),
        cause=" ".join(dict.fromkeys(filter(None, (*(v.get("cause") for v in said), missing)))),
        results=", ".join(
            str(results / n / "verdicts.json") for n in judge.experiments if n in found
        ),
    )


def together(verdicts: Sequence[str], *, of: int) -> str:
    """One verdict of several experiments about one claim; `of` is how many there should be."""
    if not verdicts or set(verdicts) == {NOT_RUN}:
        return NOT_RUN
    if {FAILS, DEPENDS} & set(verdicts):
        return FAILS if set(verdicts) == {FAILS} and len(verdicts) == of else DEPENDS
    return NOT_RUN if NOT_RUN in verdicts or len(verdicts) < of else HOLDS
