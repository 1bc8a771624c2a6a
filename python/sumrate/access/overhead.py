"""The least number of slots or mini-slots that meets a failure probability (Fig. 3.7b)."""

from dataclasses import replace

import numpy as np

from sumrate.access.interval import SlottedAbft
from sumrate.access.pool import Pool
from sumrate.access.simulation import MOST_MINI_SLOTS, Setting, simulate

MOST_SLOTS = 1024
LONG_INTERVAL_US = 1_024_000.0
"""Beacon interval with room for any number of slots; it does not change the failures."""


def failure_at(
    pool: Pool, setting: Setting, size: int, *, clients: int, realisations: int, seed: int
) -> float:
    """Failure probability with `size` slots (802.11) or mini-slots (JPOC, not adapted)."""
    if setting.protocol == "dot11ad":
        abft = SlottedAbft(size, setting.abft.frames_per_slot)
        sized = replace(setting, abft=abft, interval_us=LONG_INTERVAL_US)
    else:
        slots = replace(setting.mini_slots, adapt=False, initial=size, minimum=1, two_k=False)
        sized = replace(setting, mini_slots=slots)
    found = simulate(pool, sized, clients=clients, realisations=realisations, seed=seed)
    known = found.failure_probability[np.isfinite(found.failure_probability)]
    return float(known.mean()) if known.size else 0.0


def least_size(
    pool: Pool,
    setting: Setting,
    *,
    clients: int,
    realisations: int,
    seed: int,
    target_failure: float = 0.1,
    least: int = 1,
) -> int | None:
    """The least number of slots or mini-slots that meets the target, or None.

    A bisection: the failure probability falls as the number grows, up to the noise of the
    realisations, which are the same at every number.
    """
    most = MOST_SLOTS if setting.protocol == "dot11ad" else MOST_MINI_SLOTS

    def meets(size: int) -> bool:
        failure = failure_at(
            pool, setting, size, clients=clients, realisations=realisations, seed=seed
        )
        return failure <= target_failure

    high = least
    while not meets(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    low = max(high // 2, least - 1)
    while high - low > 1:
        middle = (low + high) // 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high
