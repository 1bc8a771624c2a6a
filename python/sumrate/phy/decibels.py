"""Ratios and powers: linear and in decibels."""

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.parameters import Floats

FLOOR_DB = -300.0
"""Decibels of a ratio of zero, so that sums stay finite."""


def linear(db: ArrayLike) -> Floats:
    """Power ratio of decibels (or mW of dBm), any shape."""
    return np.asarray(np.power(10.0, np.asarray(db, dtype=np.float64) / 10.0))


def decibels(ratio: ArrayLike) -> Floats:
    """Decibels of a power ratio (or dBm of mW), any shape; 0 gives `FLOOR_DB`."""
    values = np.asarray(ratio, dtype=np.float64)
    return np.asarray(10.0 * np.log10(np.maximum(values, 10.0 ** (FLOOR_DB / 10.0))))


def power_sum(dbm: ArrayLike, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Sum of powers in dBm along an axis, or of all; in dBm, shape without these axes."""
    total = np.asarray(np.sum(linear(dbm), axis=axis), dtype=np.float64)
    return decibels(total)
