"""Waiting until the machine keeps time: a virtual one is stopped by its host now and then.

While it is stopped nothing in it runs, and the emulator is late with whatever is due: a run that
begins in such a spell is void. Spells of it come and go within minutes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sumrate.lab.lateness import LATE_SHARE, ON_TIME_MS

LOOK_S = 0.5
"""How long is looked at once."""
STEP_S = 0.0005
PUNCTUAL_SHARE = LATE_SHARE / 5
"""Late wake-ups in a machine that keeps time: far below the share that makes a run void."""
PATIENCE_S = 120.0
"""After so long a run begins nevertheless; whether it counts is judged by its own lateness."""


def late_wake_ups(
    seconds: float = LOOK_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> float:
    """The share of this process's wake-ups that were late by more than `ON_TIME_MS`."""
    begin = clock()
    due, late, wake_ups = begin, 0, 0
    while due - begin < seconds:
        due += STEP_S
        while (ahead := due - clock()) > 0.0:
            sleep(ahead)
        wake_ups += 1
        late += -ahead * 1e3 > ON_TIME_MS
    return late / wake_ups


@dataclass
class Patience:
    """For how long runs wait for a machine that does not keep time."""

    each_s: float
    """One of them, at most; at 0 the machine is not looked at."""
    left_s: float
    """All that follow together, at most: an experiment ends on a machine that never keeps time."""

    def wait(
        self,
        told: Callable[[], object],
        look: Callable[[], float] = late_wake_ups,
        clock: Callable[[], float] = time.monotonic,
    ) -> float:
        """Waits until the machine keeps time, and says for how many seconds it did not.

        Args:
            told: is called once if there is anything to wait for.
            look: measures for a moment and gives the share of late wake-ups.
            clock: seconds since some moment.

        """
        begin, waited = clock(), 0.0
        while waited < min(self.each_s, self.left_s) and look() > PUNCTUAL_SHARE:
            if not waited:
                told()
            waited = clock() - begin
        self.left_s -= waited
        return waited
