"""Decides from measured values whether claims and goals hold."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from msgspec.structs import replace

from sumrate.intervals import half_width
from sumrate.lab.experiment.model import EVERY, Check, Experiment, Selection
from sumrate.lab.experiment.record import Run, percentile
from sumrate.verdict.metrics import find, hardly_any, is_pooled, pooled_with
from sumrate.verdict.model import BESIDE, JUDGED, MODES, REPORTED, Finding, Verdict, outcome
from sumrate.verdict.words import MOST, few, limits, said

STATISTICS: dict[str, Callable[[Sequence[float]], float | None]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "p5": lambda values: percentile(values, 0.05) or 0.0,
    "p99": lambda values: percentile(values, 0.99) or 0.0,
    "count": lambda values: float(len(values)),
    "band": half_width,
}
Place = tuple[str, str, str]
"""Condition, congestion control and buffers."""
KEPT_COLUMNS = ("scheme", "condition", "congestion_control", "buffers", "repetition", "void",
                "metric", "value", "unit")  # fmt: skip
ByRepetition = Mapping[int, Sequence[float]]


class Values:
    """The values of the runs that neither were void nor failed."""

    def __init__(self) -> None:
        """Has no value yet."""
        self.schemes: dict[str, None] = {}
        self.units: dict[str, str] = {}
        self._counting: dict[tuple[str, Place], set[int]] = defaultdict(set)
        self._found: dict[tuple[str, Place, str], dict[int, list[float]]] = {}

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> Self:
        """The values of measured runs."""
        found = cls()
        for run in runs:
            counts = not run.void and "error" not in run.detail
            place = (run.condition, run.congestion_control, run.buffers)
            found.add_run(run.scheme, place, run.repetition, counts=counts)
            for metric in run.metrics:
                at = (run.scheme, place, metric.name)
                found.add(at, run.repetition, metric.value, metric.unit, counts=counts)
        return found

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[Any, ...]]) -> Self:
        """The values of a kept table, whose columns are those of `KEPT_COLUMNS`."""
        found = cls()
        for scheme, condition, control, buffers, repetition, void, metric, value, unit in rows:
            place = (condition, control, buffers)
            found.add_run(scheme, place, repetition, counts=not void)
            found.add((scheme, place, metric), repetition, value, unit, counts=not void)
        return found

    def add_run(self, scheme: str, place: Place, repetition: int, *, counts: bool) -> None:
        """Adds a run, which may have no value."""
        self.schemes[scheme] = None
        if counts:
            self._counting[scheme, place].add(repetition)

    def add(
        self, at: tuple[str, Place, str], repetition: int, value: float, unit: str, *, counts: bool
    ) -> None:
        """Adds a value of a scheme, place and metric."""
        self.units.setdefault(at[2], unit)
        if counts:
            self._found.setdefault(at, {}).setdefault(repetition, []).append(value)

    def of(self, selection: Selection, at: Place) -> dict[int, list[float]]:
        """The selected values by repetition."""
        return self._found.get((selection.scheme, _place(selection, at), selection.metric), {})

    def rests_on(self, selection: Selection, at: Place) -> set[int]:
        """The repetitions that the selected values are of.

        A value that is pooled over all repetitions stands at one of them: it is of all that count
        on both sides.
        """
        found = set(self.of(selection, at))
        if not found or not is_pooled(selection.metric):
            return found
        place = _place(selection, at)
        own = set(self._counting[selection.scheme, place])
        counted = [self._counting[scheme, place]
                   for scheme in pooled_with(selection.metric, self.schemes)]  # fmt: skip
        most = max((len(theirs) for theirs in counted), default=0)
        for theirs in counted:
            own &= own if hardly_any(len(theirs), most) else theirs or own
        return own


def _place(selection: Selection, at: Place) -> Place:
    chosen = (selection.condition, selection.congestion_control, selection.buffers)
    own = [here if key in ("", EVERY) else key for key, here in zip(chosen, at, strict=True)]
    return own[0], own[1], own[2]


def judge(experiment: Experiment, runs: Sequence[Run]) -> list[Verdict]:
    """Verdicts of every claim and goal that the experiment's checks name, in their order."""
    return judge_values(experiment, Values.of_runs(runs))


def judge_values(experiment: Experiment, values: Values) -> list[Verdict]:
    """The verdicts that follow from these values."""
    findings: dict[tuple[str, str], list[tuple[Check, Finding]]] = defaultdict(list)
    for check in experiment.checks:
        for kind in ("claim", "goal"):
            if identity := getattr(check, kind):
                found = _findings(experiment, values, check)
                findings[identity, kind] += [(check, finding) for finding in found]
    return [_verdict(identity, kind, found) for (identity, kind), found in findings.items()]


def _findings(experiment: Experiment, values: Values, check: Check) -> Iterable[Finding]:
    every: dict[str, list[str]] = {
        "condition": [c.name for c in experiment.conditions if c.name not in check.without],
        "congestion_control": list(experiment.congestion_control),
        "buffers": list(experiment.buffers),
    }
    repetitions = {c.name: c.repetitions or experiment.repetitions for c in experiment.conditions}

    def choices(key: str) -> list[str]:
        chosen = getattr(check.value, key)
        return every[key] if chosen == EVERY else [chosen or every[key][0]]

    for buffers in choices("buffers"):
        for congestion_control in choices("congestion_control"):
            for condition in choices("condition"):
                at = (condition, congestion_control, buffers)
                measured, counted = _measured(values, check.value, check.over, at, check.slack)
                holds = _holds(check, measured)
                beside = dict(_beside(values, check, at))
                yield Finding(
                    check.statement,
                    *at,
                    measured,
                    limits(check.at_least, check.at_most),
                    holds,
                    _unit(values, check),
                    counted,
                    repetitions[condition],
                    {scheme: value for scheme, (value, _) in beside.items()},
                    {scheme: number for scheme, (_, number) in beside.items()},
                    check.causes.get(condition, check.cause) if holds is False else "",
                )


def _unit(values: Values, check: Check) -> str:
    """Unit of a check's values; a quotient, a count and a ratio are plain numbers."""
    if check.over is not None or check.value.statistic == "count":
        return ""
    name = check.value.metric
    unit = values.units.get(name) or find(name).unit
    return "" if unit == "ratio" else unit


def _measured(
    values: Values, value: Selection, over: Selection | None, at: Place, slack: float
) -> tuple[float | None, int]:
    """The statistic, or its ratio to that of another selection, and of how many repetitions it is.

    Repetitions differ in their seed, and so in their traces and losses: a ratio is of those that
    count on both sides, and one of two medians is the median of the ratios of each repetition. Two
    values that differ by at most the slack are equal: their ratio is 1.
    """
    above = values.of(value, at)
    counted = values.rests_on(value, at)
    if over is None:
        return _statistic(value, above), len(counted)
    below = values.of(over, at)
    counted &= values.rests_on(over, at)
    if is_pooled(value.metric) and is_pooled(over.metric):  # each stands where its first run is
        above, below = _at_one(above), _at_one(below)
    both = sorted(above.keys() & below.keys())
    if value.statistic == over.statistic == "median":
        pairs = [(statistics.median(above[n]), statistics.median(below[n])) for n in both]
        ratios = [_quotient(own, other, slack) for own, other in pairs]
        return (statistics.median(ratios) if ratios else None), len(counted)
    divisor = _statistic(over, {n: below[n] for n in both})
    measured = _statistic(value, {n: above[n] for n in both})
    if measured is not None and divisor is not None and 0 < slack >= abs(measured - divisor):
        return 1.0, len(counted)
    if measured is None or not divisor:
        return None, 0
    return measured / divisor, len(counted)


def _at_one(values: ByRepetition) -> dict[int, list[float]]:
    every = [value for of in values.values() for value in of]
    return {0: every} if every else {}


def _quotient(own: float, other: float, slack: float) -> float:
    if own == other or 0 < slack >= abs(own - other):
        return 1.0
    return own / other if other else math.copysign(MOST, own)


def _statistic(selection: Selection, values: ByRepetition) -> float | None:
    every = [value for _, of in sorted(values.items()) for value in of]
    return STATISTICS[selection.statistic](every) if every else None


def _beside(values: Values, check: Check, at: Place) -> Iterable[tuple[str, tuple[float, int]]]:
    """The check's value for other schemes, and of how many repetitions that is."""
    own = check.value.scheme
    if own != JUDGED and not any(_variant(own, scheme) in values.schemes for scheme in MODES):
        return
    for title in BESIDE:
        # Modes of a judged variant, such as Sumrate without encryption, stand as Sumrate's modes.
        scheme = _variant(own, title) if title in MODES else title
        over = check.over
        if over is not None and over.scheme == scheme:
            continue  # the divisor is not compared with itself
        if over is not None and over.scheme == own:
            over = replace(over, scheme=scheme)
        value = replace(check.value, scheme=scheme)
        found, counted = _measured(values, value, over, at, check.slack)
        if found is not None:
            yield title, (found, counted)


def _variant(own: str, mode: str) -> str:
    """The name that a mode of Sumrate has as a mode of this scheme."""
    return own + mode.removeprefix(JUDGED)


def _holds(check: Check, measured: float | None) -> bool | None:
    if measured is None or check.reported:
        return None
    above = check.at_least is None or measured >= check.at_least
    return above and (check.at_most is None or measured <= check.at_most)


def _verdict(identity: str, kind: str, found: Sequence[tuple[Check, Finding]]) -> Verdict:
    decisive = [f for check, f in found if not check.reported]
    verdict = outcome([f.holds for f in decisive])
    if not decisive and any(f.measured is not None for _, f in found):
        verdict = REPORTED
    by_statement: dict[str, list[Finding]] = defaultdict(list)
    for check, finding in found:
        by_statement[check.statement].append(finding)
    groups = by_statement.values()
    return Verdict(
        id=identity,
        kind=kind,
        verdict=verdict,
        measured="; ".join(filter(None, map(measured_range, groups))),
        expected="; ".join(filter(None, (group[0].expected for group in groups))),
        statement="; ".join(by_statement),
        cause=" ".join(dict.fromkeys(f.cause for f in decisive if f.cause)),
        findings=tuple(f for _, f in found),
    )


def measured_range(found: Sequence[Finding]) -> str:
    """One value, or the least and largest of several, and of how many repetitions if of few."""
    measured = [(f.measured, f.counted) for f in found if f.measured is not None]
    if not measured:
        return ""
    values, counted = zip(*measured, strict=True)
    note = few(counted, found[0].repetitions)
    return said((min(values), max(values)), found[0].unit, note)
