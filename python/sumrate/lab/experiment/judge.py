"""Decides from measured values whether claims and goals hold."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from msgspec.structs import replace

from sumrate.intervals import half_width
from sumrate.lab.experiment.metrics import hardly_any, is_pooled, pooled_with
from sumrate.lab.experiment.model import EVERY, Check, Experiment, Selection
from sumrate.lab.experiment.record import Run, percentile

MOST = 1e6
"""What anything is over nothing."""
HOLDS, FAILS, DEPENDS, NOT_RUN = "holds", "fails", "depends", "not-run"
REPORTED = "reported"
"""The verdict on figures that have no limit."""

JUDGED = "sumrate"
"""The scheme whose values other schemes are compared with."""
BESIDE = ("sumrate-two-ended", "sumrate-thesis", "mptcp", "aggligator", "tquic")
"""Schemes that are shown beside it, in this order."""

MODES = ("sumrate-two-ended", "sumrate-thesis")
"""Those of them that are Sumrate in another mode."""


def is_peer(scheme: str) -> bool:
    """Whether a scheme, by its name in results, is another project's program or the kernel's.

    What it cannot do here must not cost the result of all others: the report names it.
    """
    return scheme.startswith(tuple(name for name in BESIDE if name not in MODES))


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
UNITS = {
    "_mbps": "Mbit/s",
    "_dbm": "dBm",
    "_db": "dB",
    "_ms": "ms",
    "_s": "s",
    "_bits": "bit",
}
"""Of values that were kept without a unit, by the end of their name."""


@dataclass(frozen=True)
class Finding:
    """One check in one condition, congestion control and buffers."""

    statement: str
    condition: str
    congestion_control: str
    buffers: str
    measured: float | None
    expected: str
    holds: bool | None
    """None if it was not measured."""
    unit: str = ""
    """Of the measured value; empty if it is a ratio or a number."""
    counted: int = 0
    """Repetitions that the measured value rests on: void runs do not count."""
    repetitions: int = 0
    """That the experiment has."""
    beside: Mapping[str, float] = field(default_factory=dict)
    """The same of other schemes of the experiment: not judged, for comparison."""
    beside_counted: Mapping[str, int] = field(default_factory=dict)
    """Repetitions that each of those rests on."""
    cause: str = ""
    """Why it does not hold, where that was seen."""


@dataclass(frozen=True)
class Verdict:
    """What the findings say about one claim or goal."""

    id: str
    kind: str
    """`claim` or `goal`."""
    verdict: str
    measured: str
    expected: str
    statement: str
    cause: str
    findings: tuple[Finding, ...]

    def document(self) -> dict[str, Any]:
        """As kept in verdicts.json: the id is under `claim` or `goal`."""
        return {
            self.kind: self.id,
            **{k: v for k, v in asdict(self).items() if k not in ("id", "kind")},
        }


def judge(experiment: Experiment, runs: Sequence[Run]) -> list[Verdict]:
    """Verdicts of every claim and goal that the experiment's checks name, in their order."""
    findings: dict[tuple[str, str], list[tuple[Check, Finding]]] = defaultdict(list)
    for check in experiment.checks:
        for kind in ("claim", "goal"):
            if identity := getattr(check, kind):
                findings[identity, kind] += [(check, f) for f in _findings(experiment, runs, check)]
    return [_verdict(identity, kind, found) for (identity, kind), found in findings.items()]


def _findings(experiment: Experiment, runs: Sequence[Run], check: Check) -> Iterable[Finding]:
    every: dict[str, list[str]] = {
        "condition": [c.name for c in experiment.conditions if c.name not in check.without],
        "congestion_control": list(experiment.congestion_control),
        "buffers": list(experiment.buffers),
    }
    unit = _unit(runs, check)
    repetitions = {c.name: c.repetitions or experiment.repetitions for c in experiment.conditions}

    def choices(key: str) -> list[str]:
        chosen = getattr(check.value, key)
        return every[key] if chosen == EVERY else [chosen or every[key][0]]

    for buffers in choices("buffers"):
        for congestion_control in choices("congestion_control"):
            for condition in choices("condition"):
                at = (condition, congestion_control, buffers)
                measured, counted = _measured(runs, check.value, check.over, at, check.slack)
                holds = _holds(check, measured)
                beside = dict(_beside(runs, check, at))
                yield Finding(
                    check.statement,
                    *at,
                    measured,
                    limits(check),
                    holds,
                    unit,
                    counted,
                    repetitions[condition],
                    {scheme: value for scheme, (value, _) in beside.items()},
                    {scheme: number for scheme, (_, number) in beside.items()},
                    check.causes.get(condition, check.cause) if holds is False else "",
                )


def _unit(runs: Sequence[Run], check: Check) -> str:
    """What a check's values are in; a quotient, a count and a ratio are plain numbers."""
    if check.over is not None or check.value.statistic == "count":
        return ""
    name = check.value.metric
    kept = next((m.unit for run in runs for m in run.metrics if m.name == name), "")
    if kept == "ratio" or name.startswith("share"):  # such as the share at or above 0 dB
        return ""
    return kept or next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def _measured(
    runs: Sequence[Run],
    value: Selection,
    over: Selection | None,
    at: tuple[str, str, str],
    slack: float = 0.0,
) -> tuple[float | None, int]:
    """The statistic, or its ratio to that of another selection, and of how many repetitions it is.

    Repetitions differ in their seed, and so in their traces and losses: a ratio is of those that
    count on both sides, and one of two medians is the median of the ratios of each repetition. Two
    values that differ by at most the slack are equal: their ratio is 1.
    """
    above = _selected(runs, value, at)
    counted = _rests_on(runs, value, at, above)
    if over is None:
        return _statistic(value, above), len(counted)
    below = _selected(runs, over, at)
    counted &= _rests_on(runs, over, at, below)
    if is_pooled(value.metric) and is_pooled(over.metric):  # each stands where its first run is
        above, below = ({0: [v for of in side.values() for v in of]} for side in (above, below))
        above, below = ({n: v for n, v in side.items() if v} for side in (above, below))
    both = sorted(above.keys() & below.keys())
    pairs = [(statistics.median(above[n]), statistics.median(below[n])) for n in both]
    if value.statistic == over.statistic == "median":
        ratios = [_quotient(own, other, slack) for own, other in pairs]
        return (statistics.median(ratios) if ratios else None), len(counted)
    divisor = _statistic(over, {n: below[n] for n in both})
    measured = _statistic(value, {n: above[n] for n in both})
    if measured is not None and divisor is not None and 0 < slack >= abs(measured - divisor):
        return 1.0, len(counted)
    if measured is None or not divisor:
        return None, 0
    return measured / divisor, len(counted)


def _quotient(own: float, other: float, slack: float) -> float:
    """Two values that differ by at most the slack are equal; what is over nothing is very much."""
    if own == other or 0 < slack >= abs(own - other):
        return 1.0
    return own / other if other else math.copysign(MOST, own)


def _rests_on(
    runs: Sequence[Run],
    selection: Selection,
    at: tuple[str, str, str],
    found: Mapping[int, Sequence[float]],
) -> set[int]:
    """The repetitions that values are of.

    What is pooled over all repetitions stands at one of them: it is of all that count on both
    sides.
    """
    if not found or not is_pooled(selection.metric):
        return set(found)
    own = {run.repetition for run in _counting(runs, selection, at)}
    schemes = dict.fromkeys(run.scheme for run in runs)
    peers = [replace(selection, scheme=s) for s in pooled_with(selection.metric, schemes)]
    counted = [{run.repetition for run in _counting(runs, peer, at)} for peer in peers]
    most = max((len(theirs) for theirs in counted), default=0)
    for theirs in counted:
        own &= own if hardly_any(len(theirs), most) else theirs or own
    return own


def _statistic(selection: Selection, values: Mapping[int, Sequence[float]]) -> float | None:
    every = [value for _, of in sorted(values.items()) for value in of]
    return STATISTICS[selection.statistic](every) if every else None


def _beside(
    runs: Sequence[Run], check: Check, at: tuple[str, str, str]
) -> Iterable[tuple[str, tuple[float, int]]]:
    """What the check would measure of other schemes, and of how many repetitions that is."""
    own = check.value.scheme
    names = {run.scheme for run in runs}
    if own != JUDGED and not any(_variant(own, scheme) in names for scheme in MODES):
        return
    for title in BESIDE:
        # Other modes of what is judged, such as of Sumrate without encryption, stand as its modes.
        scheme = _variant(own, title) if title in MODES else title
        over = check.over
        if over is not None and over.scheme == scheme:
            continue  # what it is compared with is not compared with itself
        if over is not None and over.scheme == own:
            over = replace(over, scheme=scheme)
        value = replace(check.value, scheme=scheme)
        found, counted = _measured(runs, value, over, at, check.slack)
        if found is not None:
            yield title, (found, counted)


def _variant(own: str, mode: str) -> str:
    """The name that a mode of Sumrate has as a mode of this scheme."""
    return own + mode.removeprefix(JUDGED)


def _selected(
    runs: Sequence[Run], selection: Selection, at: tuple[str, str, str]
) -> dict[int, list[float]]:
    """The values of a metric by repetition, of the runs that are not void."""
    found: dict[int, list[float]] = defaultdict(list)
    for run in _counting(runs, selection, at):
        values = [m.value for m in run.metrics if m.name == selection.metric]
        if values:
            found[run.repetition] += values
    return dict(found)


def _counting(runs: Sequence[Run], selection: Selection, at: tuple[str, str, str]) -> Iterable[Run]:
    """The runs of a selection that neither were void nor failed."""
    keys = ("condition", "congestion_control", "buffers")
    wanted = {
        key: here if getattr(selection, key) in ("", EVERY) else getattr(selection, key)
        for key, here in zip(keys, at, strict=True)
    }
    for run in runs:
        if run.scheme != selection.scheme or run.void or "error" in run.detail:
            continue
        if all(getattr(run, key) == value for key, value in wanted.items()):
            yield run


def figure(value: float) -> str:
    """A number as tables show it: four digits that mean something, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def said(values: tuple[float, float], unit: str = "", note: str = "") -> str:
    """The least and the largest value, or the one that both are, the unit, and a note."""
    over_nothing = not unit and values[1] == MOST
    low, high = figure(values[0]), "∞" if over_nothing else figure(values[1])
    low = high if values[0] == values[1] else low
    whole = f"{low if low == high else f'{low} to {high}'} {unit}".rstrip()
    return f"{whole} ({note})" if note else whole


def few(counted: Collection[int], of: int) -> str:
    """How many repetitions count, where they are fewer than the experiment has; else nothing."""
    least, most = min(counted, default=of), min(max(counted, default=of), of)
    if least >= of:
        return ""
    return f"{least if least == most else f'{least} to {most}'} of {of} repetitions"


def limits(check: Check) -> str:
    """What a check demands, in words; nothing if it only reports."""
    parts = []
    if check.at_least is not None:
        parts.append(f"at least {figure(check.at_least)}")
    if check.at_most is not None:
        parts.append(f"at most {figure(check.at_most)}")
    return " and ".join(parts)


def _holds(check: Check, measured: float | None) -> bool | None:
    if measured is None or check.reported:
        return None
    above = check.at_least is None or measured >= check.at_least
    return above and (check.at_most is None or measured <= check.at_most)


def _verdict(identity: str, kind: str, found: Sequence[tuple[Check, Finding]]) -> Verdict:
    decisive = [(check, f) for check, f in found if not check.reported]
    verdict = outcome([f.holds for _, f in decisive])
    if not decisive and any(f.measured is not None for _, f in found):
        verdict = REPORTED
    by_statement: dict[str, list[Finding]] = defaultdict(list)
    for check, finding in found:
        by_statement[check.statement].append(finding)
    causes = dict.fromkeys(f.cause for _, f in decisive if f.cause)
    return Verdict(
        id=identity,
        kind=kind,
        verdict=verdict,
        measured="; ".join(
            filter(None, (measured_range(group) for group in by_statement.values()))
        ),
        expected="; ".join(filter(None, (group[0].expected for group in by_statement.values()))),
        statement="; ".join(by_statement),
        cause=" ".join(causes),
        findings=tuple(f for _, f in found),
    )


def outcome(held: Sequence[bool | None]) -> str:
    """One verdict of what held, failed, or was not measured (None).

    What failed is said before what is missing: a claim of which one part fails cannot hold any
    more, whatever the rest will be; in part it holds only where a part was seen to hold.
    """
    if False in held:
        return DEPENDS if True in held else FAILS
    return HOLDS if held and None not in held else NOT_RUN


def measured_range(found: Sequence[Finding]) -> str:
    """One value, or the least and largest of several, and of how many repetitions if of few."""
    measured = [(f.measured, f.counted) for f in found if f.measured is not None]
    if not measured:
        return ""
    values, counted = zip(*measured, strict=True)
    note = few(counted, found[0].repetitions)
    return said((min(values), max(values)), found[0].unit, note)
