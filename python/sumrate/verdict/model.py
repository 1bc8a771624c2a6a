"""Findings, verdicts, and the claims and goals that they decide."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from sumrate.verdict.words import few, figure, said

HOLDS, FAILS, DEPENDS, NOT_RUN = "holds", "fails", "depends", "not-run"
REPORTED = "reported"
"""The verdict on figures that have no limit."""
UNMEASURED = "unmeasured"
"""The verdict on a claim that no experiment is about; its cause says why none is."""
MISSED = (FAILS, DEPENDS)
USUAL = {"cubic", "default"}
"""Congestion control and buffers that need no mention."""

JUDGED = "sumrate"
"""The scheme whose values other schemes are compared with."""
BESIDE = ("sumrate-two-ended", "sumrate-thesis", "mptcp", "aggligator", "tquic")
"""Schemes that are shown beside it, in this order."""
MODES = ("sumrate-two-ended", "sumrate-thesis")
"""Those of them that are Sumrate in another mode."""
PEERS = tuple(scheme for scheme in BESIDE if scheme not in MODES)


def is_peer(scheme: str) -> bool:
    """True if a scheme, by its name in results, is another project's program or the kernel's.

    Its failures do not void the result of the other schemes: the report names them.
    """
    return scheme.startswith(PEERS)


def outcome(held: Sequence[bool | None]) -> str:
    """One verdict of checks that hold, fail, or were not measured (None).

    A failure counts before a missing value: a claim of which one part fails cannot hold any more.
    """
    if False in held:
        return DEPENDS if True in held else FAILS
    return HOLDS if held and None not in held else NOT_RUN


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


def is_performance(goal: str) -> bool:
    """True if it is one of P1 to P10."""
    return goal.startswith("P") and goal[1:2].isdigit()


def goal_order(identity: str) -> tuple[bool, int, str]:
    """Sorting key of goals: P goals first, by number."""
    digits = "".join(c for c in identity if c.isdigit())
    return (not identity.startswith("P"), int(digits or 0), identity)


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
    """Planned by the experiment."""
    beside: Mapping[str, float] = field(default_factory=dict)
    """Values of other schemes of the experiment, for comparison."""
    beside_counted: Mapping[str, int] = field(default_factory=dict)
    """Repetitions that each of those rests on."""
    cause: str = ""
    """Why it does not hold, where that was seen."""

    def place(self) -> str:
        """The condition, with congestion control and buffers where they are not the usual ones."""
        parts = (self.condition, self.congestion_control, self.buffers)
        return ", ".join(part for part in parts if part not in USUAL)

    def missed(self) -> str:
        """The place and what was measured there, with how many repetitions if they are few."""
        note = few([self.counted], self.repetitions)
        return f"{self.place()}: {figure(self.measured or 0.0)}" + (f" ({note})" if note else "")


@dataclass(frozen=True)
class Verdict:
    """The verdict of one experiment on one claim or goal, with its findings."""

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

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "Verdict":
        """The verdict that `document` described.

        Raises:
            ValueError: a field is missing or of another type.

        """
        kind = "claim" if document.get("claim") else "goal"
        return msgspec.convert({"kind": kind, "id": document.get(kind), **document}, cls)


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
    """The judged scheme; in the tables below it stands as Sumrate, in JSON by its name."""
    verdict: str = NOT_RUN
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By scheme; Sumrate as it is by default (just-in-time), or the judged scheme, first."""
    unit: str = ""
    """Of the measured values; empty if they are ratios or numbers."""
    points: Mapping[str, int] = field(default_factory=dict)
    """By scheme: conditions (with their congestion control and buffers) that were measured."""
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By scheme: least and largest number of repetitions that a condition's value rests on."""
    repetitions: int = 0
    """Planned by the experiment."""
    missed_in: tuple[str, ...] = ()
    """Conditions in which it is missed, with what was measured there."""
    furthest: str = ""
    """The one of them that is furthest from the limit."""
    factor: float = 1.0
    """By which that is missed: limit over value of what is too small, value over limit else."""
    cause: str = ""
    """Why it is missed, where that was seen in a measurement."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without the furthest condition, which `missed_in` has."""
        entry = {k: v for k, v in asdict(self).items() if k not in ("furthest", "factor")}
        for table in ("measured", "points", "counted"):
            own = {self.scheme if s == JUDGED else s: v for s, v in entry[table].items()}
            entry[table] = own
        return entry

    def few(self, scheme: str = JUDGED) -> str:
        """How many repetitions its values rest on, where they are fewer than there should be."""
        return few(self.counted.get(scheme, ()), self.repetitions)

    def found(self) -> str:
        """Measured value, with its unit and how many repetitions it rests on; `-` if nothing."""
        if JUDGED not in self.measured:
            return "-"
        return said(self.measured[JUDGED], self.unit, self.few())


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
    """The part of it that no experiment measures, and why."""
    fitted: str
    """Part of the model that was set to make it hold, so that it shows a calibration only."""
    checks: tuple[Demand, ...]
    """Its demands, one by one, with what was measured."""
    recorded: tuple[Recorded, ...] = ()
    """Of which day and code its results are."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "checks": [check.as_dict() for check in self.checks]}
