"""Waiting until the machine keeps time: a virtual one is stopped by its host now and then.

While it is stopped nothing in it runs, and the emulator is late with whatever is due: a run that
begins in such a spell is void. Spells of it come and go within minutes.
"""

import time
from collections.abc import Callable

from sumrate.lab.lateness import ON_TIME_MS

LOOK_S = 1.5
"""How long is looked at once."""
STEP_S = 0.0005
LATE_SHARE = 0.002
"""Of wake-ups in a machine that keeps time; a fifth of what makes a run void."""
PATIENCE_S = 120.0
"""After so long a run begins nevertheless; whether it counts is judged by its own lateness."""


def late_wake_ups(
    seconds: float = LOOK_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> float:
    """The share of this process's wake-ups that were late by more than `ON_TIME_MS`."""
    begin = clock()
    due, late, all_ = begin, 0, 0
    while due - begin < seconds:
        due += STEP_S
        while (ahead := due - clock()) > 0.0:
            sleep(ahead)
        all_ += 1
        late += -ahead * 1e3 > ON_TIME_MS
    return late / all_


def wait_until_punctual(
    told: Callable[[], object],
    patience_s: float = PATIENCE_S,
    look: Callable[[], float] = late_wake_ups,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Waits until the machine keeps time, and says for how many seconds it did not.

    Args:
        told: is called once if there is anything to wait for.
        patience_s: after so many seconds it returns in any case.
        look: measures for a moment and gives the share of late wake-ups.
        clock: seconds since some moment.

    """
    begin = clock()
    waited = 0.0
    while look() > LATE_SHARE:
        if not waited:
            told()
        waited = clock() - begin
        if waited >= patience_s:
            break
    return waited
