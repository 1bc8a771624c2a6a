"""The claims of the five papers, and what this repository's results say about each."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.demands import demands
from sumrate.lab.experiment.load import CATALOGUE, FOLDER, ExperimentError, names
from sumrate.lab.experiment.recorded import recorded
from sumrate.lab.experiment.sources import place_of, verdicts_of
from sumrate.verdict.model import (
    DEPENDS,
    HOLDS,
    NOT_RUN,
    REPORTED,
    UNMEASURED,
    Demand,
    Entry,
    Recorded,
    Verdict,
    goal_order,
    together,
)

PAPERS = {
    "thesis": "D4",
    "evolving-wifi": "D0",
    "mptcp-wireless": "D1",
    "dual-band": "D2",
    "wlan": "D3",
}
"""The papers by their short names, with their document in the catalogue."""


def claims(folder: Path = FOLDER) -> dict[str, Mapping[str, Any]]:
    """Every claim by its id, in the papers' order.

    Raises:
        ExperimentError: the catalogue cannot be read.

    """
    text = (folder / CATALOGUE).read_text(encoding="utf-8")
    try:
        found: dict[str, Mapping[str, Any]] = tomllib.loads(text)["claims"]
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        where = f"{CATALOGUE}:{at[1]}" if at else CATALOGUE
        raise ExperimentError(f"{where}: {error}") from error
    return found


def entries(
    results: Path, folder: Path = FOLDER, broken: list[ExperimentError] | None = None
) -> list[Entry]:
    """Every claim, then every goal, with the verdict of its results.

    Raises:
        ExperimentError: the catalogue is wrong, or an experiment and there is no `broken`, to
            which that is added.

    """
    checks: dict[str, list[Demand]] = {}
    for demand in demands(results, folder, broken):
        checks.setdefault(demand.id, []).append(demand)
    verdicts: dict[str, dict[str, Verdict]] = {}
    for name in names(folder):
        with suppress(ExperimentError):  # of which `demands` complained
            for verdict in verdicts_of(results, name, folder):
                verdicts.setdefault(verdict.id, {})[name] = verdict
    known = claims(folder)
    goals: dict[str, Mapping[str, Any]] = {
        i: {} for i in sorted(checks, key=goal_order) if i not in known
    }
    found = (
        _entry(identity, text, checks.get(identity, ()), verdicts.get(identity, {}), results)
        for identity, text in {**known, **goals}.items()
    )
    return [replace(entry, recorded=_recorded(entry, results, folder)) for entry in found]


def _recorded(entry: Entry, results: Path, folder: Path) -> tuple[Recorded, ...]:
    experiments = dict.fromkeys(check.experiment for check in entry.checks)
    return tuple(recorded(results, [*experiments], folder))


def _entry(
    identity: str,
    text: Mapping[str, Any],
    checks: Sequence[Demand],
    found: Mapping[str, Verdict],
    results: Path,
) -> Entry:
    experiments = [*dict.fromkeys(check.experiment for check in checks)]
    said = [found[name] for name in experiments if name in found]
    unmeasured = text.get("unmeasured", "")
    deciding = {check.experiment for check in checks if check.limit}
    verdict = together([v.verdict for v in said], of=len(deciding))
    if unmeasured and (not experiments or verdict == REPORTED):
        verdict = UNMEASURED  # figures beside it decide nothing
    # A part of a claim that no experiment measures keeps it from holding as a whole.
    missing = unmeasured if verdict not in (NOT_RUN, REPORTED) else ""
    return Entry(
        id=identity,
        document=text.get("document", "goal"),
        figure=text.get("figure", ""),
        published=text.get("published", "; ".join(v.expected for v in said)),
        claim=text.get("claim", "; ".join(check.statement for check in checks)),
        experiment=", ".join(experiments),
        command=f"sumrate-lab run {' '.join(experiments)}" if experiments else "",
        verdict=DEPENDS if missing and verdict == HOLDS else verdict,
        measured="; ".join(filter(None, (v.measured for v in said))),
        cause=" ".join(dict.fromkeys(filter(None, (*_causes(said), missing)))),
        results=", ".join(str(place_of(results, n)) for n in experiments if n in found),
        unmeasured=unmeasured,
        fitted=text.get("fitted", ""),
        checks=tuple(checks),
    )


def _causes(said: Sequence[Verdict]) -> Iterator[str]:
    """The causes of each check; of a verdict whose checks have none, its own."""
    for verdict in said:
        yield from [f.cause for f in verdict.findings if f.cause] or [verdict.cause]
