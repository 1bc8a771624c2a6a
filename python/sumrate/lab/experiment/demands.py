"""Demands of claims and goals, with their measured values over all conditions."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from sumrate.lab.experiment.load import FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.model import Check
from sumrate.lab.experiment.sources import verdicts_of
from sumrate.verdict.model import JUDGED, REPORTED, Demand, Finding, outcome
from sumrate.verdict.words import limits

KINDS = ("claim", "goal")


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
        findings: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
        for verdict in verdicts_of(results, name, folder):
            for finding in verdict.findings:
                findings[verdict.kind, verdict.id, finding.statement].append(finding)
        for kind in KINDS:
            asked = {(getattr(c, kind), c.statement): c for c in checks if getattr(c, kind)}
            found += [_demand(kind, name, check, findings[kind, *key])
                      for key, check in asked.items()]  # fmt: skip
    return found


def _demand(kind: str, experiment: str, check: Check, findings: Sequence[Finding]) -> Demand:
    values: dict[str, list[float]] = defaultdict(list)
    counted: dict[str, list[int]] = defaultdict(list)
    for finding in findings:
        own = {} if finding.measured is None else {JUDGED: finding.measured}
        numbers = {JUDGED: finding.counted, **finding.beside_counted}
        for scheme, value in {**own, **finding.beside}.items():
            values[scheme].append(value)
            if scheme in numbers:
                counted[scheme].append(numbers[scheme])
    missed = [f for f in findings if f.holds is False]
    factors = [_factor(check, f.measured or 0.0) for f in missed]
    factor = max(factors, default=1.0)
    return Demand(
        kind=kind,
        id=getattr(check, kind),
        statement=check.statement,
        limit=limits(check.at_least, check.at_most),
        experiment=experiment,
        scheme=check.value.scheme,
        verdict=REPORTED if check.reported and values else outcome([f.holds for f in findings]),
        measured={scheme: (min(v), max(v)) for scheme, v in values.items()},
        unit=next((f.unit for f in findings if f.unit), ""),
        points={scheme: len(v) for scheme, v in values.items()},
        counted={scheme: (min(n), max(n)) for scheme, n in counted.items()},
        repetitions=max((f.repetitions for f in findings), default=0),
        missed_in=tuple(dict.fromkeys(f.missed() for f in missed)),
        furthest=missed[factors.index(factor)].missed() if missed else "",
        factor=factor,
        cause=" ".join(dict.fromkeys(f.cause for f in missed if f.cause)),
    )


def _factor(check: Check, measured: float) -> float:
    """By which a limit is missed; infinite where one of them is not above zero."""
    lowest, highest = check.at_least, check.at_most
    if lowest is not None and measured < lowest:
        return lowest / measured if measured > 0 else math.inf
    if highest is not None and measured > highest:
        return measured / highest if highest > 0 else math.inf
    return 1.0
