"""Real-time priority for the sampler, where the machine grants it (the emulator asks for none).

The instruments stand for hardware that does not compete for the processor with the hosts under
test. Without the privilege they run at normal priority, and a run in which they were late says so.
"""

import os

SAMPLER_PRIORITY = 2


def raise_own() -> bool:
    """Gives this process real-time priority (children start at normal); False if refused."""
    try:
        os.sched_setscheduler(
            0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(SAMPLER_PRIORITY)
        )
    except OSError:
        return False
    return True


def granted() -> bool:
    """Whether this process has real-time priority."""
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
