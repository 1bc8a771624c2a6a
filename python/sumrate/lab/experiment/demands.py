"""What a check demands of a goal or claim, with what was measured of it over its conditions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.judge import (
    JUDGED,
    NOT_RUN,
    REPORTED,
    few,
    figure,
    limits,
    outcome,
    said,
)
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.model import Check
from sumrate.lab.experiment.sources import verdicts_of

KINDS = ("claim", "goal")


@dataclass(frozen=True)
class Demand:
    """One statement about a goal or claim, and what each scheme has of it.

    Several checks of an experiment with one statement are one demand: values are the least and
    largest over their conditions.
    """

    kind: str
    """`claim` or `goal`."""
    id: str
    statement: str
    limit: str
    experiment: str
    scheme: str = JUDGED
    """What is judged; in the tables below it stands as Sumrate, in JSON by its name."""
    verdict: str = NOT_RUN
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By scheme; Sumrate as it is by default (just-in-time), or what is judged, first."""
    unit: str = ""
    """Of what is measured; empty if it is a ratio or a number."""
    points: Mapping[str, int] = field(default_factory=dict)
    """By scheme: conditions (with their congestion control and buffers) that were measured."""
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By scheme: least and largest number of repetitions that a condition's value rests on."""
    repetitions: int = 0
    """That the experiment has."""
    missed_in: tuple[str, ...] = ()
    """Conditions in which it is missed, with what was measured there."""
    furthest: str = ""
    """The one of them that is furthest from the limit."""
    factor: float = 1.0
    """By which that is missed: limit over value of what is too small, value over limit else."""
    cause: str = ""
    """Why it is missed, where that was seen in a measurement."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what `missed_in` has of the furthest is not said twice."""
        entry = {k: v for k, v in asdict(self).items() if k not in ("furthest", "factor")}
        for table in ("measured", "points", "counted"):
            own = {self.scheme if s == JUDGED else s: v for s, v in entry[table].items()}
            entry[table] = own
        return entry

    def few(self, scheme: str = JUDGED) -> str:
        """How many repetitions its values rest on, where they are fewer than there should be."""
        return few(self.counted.get(scheme, ()), self.repetitions)

    def found(self) -> str:
        """What was measured, with its unit and how many repetitions it rests on; `-` if nothing."""
        if JUDGED not in self.measured:
            return "-"
        return said(self.measured[JUDGED], self.unit, self.few())


def demands(
    results: Path, folder: Path = FOLDER, broken: list[ExperimentError] | None = None
) -> list[Demand]:
    """Every demand of claims and goals, by experiment, with what its result has of it.

    Raises:
        ExperimentError: a file is wrong, and there is no `broken` to which that is added.

    """
    found = []
    for name in names(folder):
        try:
            checks = load(name, folder).checks
        except ExperimentError as error:
            if broken is None:
                raise
            broken.append(error)
            continue
        verdicts = verdicts_of(results, name, folder)
        for kind in KINDS:
            findings = _findings(verdicts, kind)
            asked = {(getattr(c, kind), c.statement): c for c in checks if getattr(c, kind)}
            found += [_demand(kind, name, c, findings.get(k, [])) for k, c in asked.items()]
    return found


def _findings(
    verdicts: Sequence[Mapping[str, Any]], kind: str
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """By id and statement."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for verdict in verdicts:
        for finding in verdict.get("findings", ()):
            key = (str(verdict.get(kind, "")), finding["statement"])
            found.setdefault(key, []).append(finding)
    return found


def _demand(
    kind: str, experiment: str, check: Check, findings: Sequence[Mapping[str, Any]]
) -> Demand:
    values: dict[str, list[float]] = {}
    counted: dict[str, list[int]] = {}
    for finding in findings:
        own = {} if finding["measured"] is None else {JUDGED: finding["measured"]}
        numbers = {JUDGED: finding.get("counted"), **finding.get("beside_counted", {})}
        for scheme, value in {**own, **finding.get("beside", {})}.items():
            values.setdefault(scheme, []).append(value)
            if numbers.get(scheme) is not None:
                counted.setdefault(scheme, []).append(numbers[scheme])
    missed = [f for f in findings if f["holds"] is False]
    factors = [_factor(check, float(f["measured"])) for f in missed]
    factor = max(factors, default=1.0)
    verdict = outcome([f["holds"] for f in findings])
    if check.reported and values:
        verdict = REPORTED
    return Demand(
        kind=kind,
        id=getattr(check, kind),
        statement=check.statement,
        limit=limits(check),
        experiment=experiment,
        scheme=check.value.scheme,
        verdict=verdict,
        measured={scheme: (min(v), max(v)) for scheme, v in values.items()},
        unit=next((f["unit"] for f in findings if f.get("unit")), ""),
        points={scheme: len(v) for scheme, v in values.items()},
        counted={scheme: (min(n), max(n)) for scheme, n in counted.items()},
        repetitions=max((f.get("repetitions", 0) for f in findings), default=0),
        missed_in=tuple(dict.fromkeys(_where(f) for f in missed)),
        furthest=_where(missed[factors.index(factor)]) if missed else "",
        factor=factor,
        cause=" ".join(dict.fromkeys(f["cause"] for f in missed if f.get("cause"))),
    )


def _factor(check: Check, measured: float) -> float:
    """By which a limit is missed; infinite where one of them is not above zero."""
    lowest, highest = check.at_least, check.at_most
    if lowest is not None and measured < lowest:
        return lowest / measured if measured > 0 else math.inf
    if highest is not None and measured > highest:
        return measured / highest if highest > 0 else math.inf
    return 1.0


def _where(finding: Mapping[str, Any]) -> str:
    """A condition and what was measured in it, with how many repetitions if they are few."""
    usual = {"cubic", "default"}
    parts = [finding["condition"], finding["congestion_control"], finding["buffers"]]
    where = ", ".join(part for part in parts if part not in usual)
    of = finding.get("repetitions", 0)
    note = few([finding.get("counted", of)], of)
    return f"{where}: {figure(finding['measured'])}" + (f" ({note})" if note else "")
