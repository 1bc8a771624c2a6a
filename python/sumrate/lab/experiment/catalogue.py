"""The claims of the five papers, and what this repository's results say about each."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.demands import Demand, demands
from sumrate.lab.experiment.judge import DEPENDS, FAILS, HOLDS, NOT_RUN, REPORTED
from sumrate.lab.experiment.load import CATALOGUE, FOLDER, ExperimentError, names
from sumrate.lab.experiment.recorded import Recorded, recorded
from sumrate.lab.experiment.sources import Verdicts, place_of, verdicts_of

PAPERS = {
    "thesis": "D4",
    "evolving-wifi": "D0",
    "mptcp-wireless": "D1",
    "dual-band": "D2",
    "wlan": "D3",
}
"""The papers by their short names, with their document in the catalogue."""
UNMEASURED = "unmeasured"
"""The verdict on a claim that no experiment is about; its cause says why none is."""


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
    unmeasured: str
    """What no experiment measures of it, and why."""
    fitted: str
    """What of the model was set so that it comes out: it shows that the model is calibrated."""
    checks: tuple[Demand, ...]
    """What decides, one by one, with what was measured."""
    recorded: tuple[Recorded, ...] = ()
    """Of which day and code its results are."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "checks": [check.as_dict() for check in self.checks]}


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
    verdicts: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name in names(folder):
        for verdict in _verdicts_or_none(results, name, folder):
            verdicts.setdefault(_id(verdict), {})[name] = verdict
    checks: dict[str, list[Demand]] = {}
    for demand in demands(results, folder, broken):
        checks.setdefault(demand.id, []).append(demand)
    known = claims(folder)
    goals: dict[str, Mapping[str, Any]] = {
        i: {} for i in sorted(checks, key=goal_order) if i not in known
    }
    found = (
        _entry(identity, text, checks.get(identity, ()), verdicts.get(identity, {}), results)
        for identity, text in {**known, **goals}.items()
    )
    return [replace(entry, recorded=_recorded(entry, results, folder)) for entry in found]


def _verdicts_or_none(results: Path, name: str, folder: Path) -> Verdicts:
    """None of an experiment whose file is wrong, of which `demands` complains."""
    try:
        return verdicts_of(results, name, folder)
    except ExperimentError:
        return []


def _recorded(entry: Entry, results: Path, folder: Path) -> tuple[Recorded, ...]:
    experiments = dict.fromkeys(check.experiment for check in entry.checks)
    return tuple(recorded(results, [*experiments], folder))


def _id(verdict: Mapping[str, Any]) -> str:
    return str(verdict.get("claim") or verdict.get("goal"))


def goal_order(identity: str) -> tuple[bool, int, str]:
    """P goals first, by number."""
    digits = "".join(c for c in identity if c.isdigit())
    return (not identity.startswith("P"), int(digits or 0), identity)


def _entry(
    identity: str,
    text: Mapping[str, Any],
    checks: Sequence[Demand],
    found: Mapping[str, Mapping[str, Any]],
    results: Path,
) -> Entry:
    experiments = [*dict.fromkeys(check.experiment for check in checks)]
    said = [found[name] for name in experiments if name in found]
    unmeasured = text.get("unmeasured", "")
    deciding = {check.experiment for check in checks if check.limit}
    verdict = together([v["verdict"] for v in said], of=len(deciding))
    if unmeasured and (not experiments or verdict == REPORTED):
        verdict = UNMEASURED  # figures beside it decide nothing
    # What no experiment measures of a claim keeps it from holding as a whole.
    missing = unmeasured if verdict not in (NOT_RUN, REPORTED) else ""
    expected = "; ".join(str(v.get("expected", "")) for v in said)
    return Entry(
        id=identity,
        document=text.get("document", "goal"),
        figure=text.get("figure", ""),
        published=text.get("published", expected),
        claim=text.get("claim", "; ".join(check.statement for check in checks)),
        experiment=", ".join(experiments),
        command=f"sumrate-lab run {' '.join(experiments)}" if experiments else "",
        verdict=DEPENDS if missing and verdict == HOLDS else verdict,
        measured="; ".join(filter(None, (v.get("measured", "") for v in said))),
        cause=" ".join(dict.fromkeys(filter(None, (*_causes(said), missing)))),
        results=", ".join(str(place_of(results, n)) for n in experiments if n in found),
        unmeasured=unmeasured,
        fitted=text.get("fitted", ""),
        checks=tuple(checks),
    )


def _causes(said: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What keeps each verdict from holding, check by check: several may say the same."""
    for verdict in said:
        of_checks = [f["cause"] for f in verdict.get("findings", ()) if f.get("cause")]
        yield from of_checks or [verdict.get("cause", "")]


def together(verdicts: Sequence[str], *, of: int) -> str:
    """One verdict of several experiments about one claim.

    Args:
        verdicts: of each that was run; those that only report a figure decide nothing.
        of: how many should decide.

    """
    if not of:
        return REPORTED if REPORTED in verdicts else NOT_RUN
    verdicts = [verdict for verdict in verdicts if verdict != REPORTED]
    if not verdicts or set(verdicts) == {NOT_RUN}:
        return NOT_RUN
    if {FAILS, DEPENDS} & set(verdicts):
        return DEPENDS if {HOLDS, DEPENDS} & set(verdicts) else FAILS
    return NOT_RUN if NOT_RUN in verdicts or len(verdicts) < of else HOLDS
