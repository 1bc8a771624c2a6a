"""Rate adaptation of a radio: ideal, by a late SNR, or by trial and error.

The firmware of the modelled radios is closed. Two controllers span the plausible range: one sees
the SNR late and with an error, the other sees only lost frames. Both choose wrong rates now and
then, which makes rates in the middle of their range unstable.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.mcs import NONE, McsTable
from sumrate.phy.parameters import (
    Booleans,
    Floats,
    Integers,
    ParameterError,
    finite,
    positive,
    whole,
    within,
)


class RateAdaptation(Protocol):
    """Chooses a scheme for every interval from earlier observations."""

    def choose(
        self, table: McsTable, snr_db: ArrayLike, step_s: float, generator: np.random.Generator
    ) -> Integers:
        """Places in the table, or `NONE`, for a course of SNRs in dB: both of shape (n,)."""
        ...


def _course(snr_db: ArrayLike) -> Floats:
    course = finite("snr_db", snr_db)
    if course.ndim != 1:
        raise ParameterError("shape of snr_db", course.shape, "(n,)")
    return course


@dataclass(frozen=True)
class Ideal:
    """Knows the SNR of the interval to come."""

    margin_db: float = 0.0

    def choose(
        self, table: McsTable, snr_db: ArrayLike, step_s: float, generator: np.random.Generator
    ) -> Integers:
        """The fastest scheme that works at every time: shape (n,)."""
        return table.best(_course(snr_db), margin_db=self.margin_db)


@dataclass(frozen=True)
class Informed:
    """Knows an earlier SNR with an error, and raises the rate only with a margin.

    Raises:
        ParameterError: a delay, error or margin is negative.

    """

    delay_s: float = 0.05
    error_db: float = 0.5
    """Standard deviation of the estimate, drawn for every report."""
    up_margin_db: float = 1.0
    report_s: float = 0.1
    """Time between reports of the receiver."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("delay_s", self.delay_s, 0.0)
        within("error_db", self.error_db, 0.0)
        within("up_margin_db", self.up_margin_db, 0.0)
        positive("report_s", self.report_s)

    def choose(
        self, table: McsTable, snr_db: ArrayLike, step_s: float, generator: np.random.Generator
    ) -> Integers:
        """A scheme for every time from reports before it: shape (n,)."""
        course = _course(snr_db)
        late = round(self.delay_s / step_s)
        every = max(1, round(self.report_s / step_s))
        reports = course[np.maximum(np.arange(0, course.size, every) - late, 0)]
        reports = reports + generator.normal(0.0, self.error_db, reports.size)
        keeps, allows = table.best(reports), table.best(reports, margin_db=self.up_margin_db)
        chosen = np.empty(reports.size, dtype=np.int64)
        current = int(keeps[0])
        for i in range(reports.size):
            current = min(max(current, int(allows[i])), int(keeps[i]))
            chosen[i] = current
        return np.repeat(chosen, every)[: course.size]


@dataclass(frozen=True)
class TrialAndError:
    """Lowers the rate after lost frames, and tries a faster rate after a time without losses.

    A failed trial doubles the time to the next one, up to `longest_s`.

    Raises:
        ParameterError: a share is out of range, or a time is not positive.

    """

    down_errors: float = 0.3
    """Share of lost frames in an interval that lowers the rate."""
    up_s: float = 0.2
    longest_s: float = 3.2
    frame_bytes: int = 1500
    frames: int = 50
    """Number of frames in an interval."""
    haste: float = 0.0
    """Rate of reductions that the channel does not cause, per second."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("down_errors", self.down_errors, 0.0, 1.0)
        positive("up_s", self.up_s)
        within("longest_s", self.longest_s, self.up_s)
        whole("frames", self.frames)
        whole("frame_bytes", self.frame_bytes)
        within("haste", self.haste, 0.0)

    def choose(
        self, table: McsTable, snr_db: ArrayLike, step_s: float, generator: np.random.Generator
    ) -> Integers:
        """A scheme for every time, by the losses before it: shape (n,)."""
        course = _course(snr_db)
        works = course >= table.thresholds().min() - 2 * table.waterfall_db
        errors = np.stack(
            [table.frame_error_rate(p, course, self.frame_bytes) for p in range(len(table.schemes))]
        )
        lost = generator.binomial(self.frames, errors) / self.frames
        hasty = generator.random(course.size) < self.haste * step_s
        return _Trials(self, step_s, len(table.schemes) - 1).run(works, lost, hasty)


@dataclass
class _Trials:
    """The state of one course."""

    law: TrialAndError
    step_s: float
    top: int
    place: int = field(init=False)
    waited_s: float = 0.0
    patience_s: float = field(init=False)
    on_trial: bool = False

    def __post_init__(self) -> None:
        self.place, self.patience_s = self.top, self.law.up_s

    def run(self, works: Booleans, lost: Floats, hasty: Booleans) -> Integers:
        chosen = np.empty(works.size, dtype=np.int64)
        for i in range(works.size):
            chosen[i] = self.place if works[i] else NONE
            self._after(float(lost[self.place, i]), bool(hasty[i]))
        return chosen

    def _after(self, lost: float, hasty: bool) -> None:
        if lost > self.law.down_errors or hasty:
            if self.on_trial:
                self.patience_s = min(2 * self.patience_s, self.law.longest_s)
            self.place, self.waited_s, self.on_trial = max(self.place - 1, 0), 0.0, False
            return
        if self.on_trial:
            self.patience_s, self.on_trial = self.law.up_s, False
        self.waited_s += self.step_s
        if self.waited_s >= self.patience_s and self.place < self.top:
            self.place, self.waited_s, self.on_trial = self.place + 1, 0.0, True
