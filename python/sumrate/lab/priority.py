"""Real-time priority for the sampler, where the machine grants it.

The emulator asks for none, but gets it where a browser on the same processors would hold it up.

The instruments stand for hardware that does not compete for the processor with the hosts under
test. Without the privilege they run at normal priority, and a run in which they were late says so.
"""

import os
from pathlib import Path

SAMPLER_PRIORITY = 3


def raise_own() -> bool:
    """Gives this process real-time priority (children start at normal); False if refused."""
    try:
        os.sched_setscheduler(
            0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(SAMPLER_PRIORITY)
        )
    except OSError:
        return False
    return True


def raise_threads(pid: int, below: int = 1) -> bool:
    """Gives every thread of a program real-time priority; False if refused.

    Args:
        pid: of the program.
        below: by how much it is less than the sampler's.

    """
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(
                int(task.name), os.SCHED_FIFO, os.sched_param(SAMPLER_PRIORITY - below)
            )
    except OSError:
        return False
    return True


def granted() -> bool:
    """Whether this process has real-time priority."""
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
