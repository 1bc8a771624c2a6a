"""Jain's index over air time, and the competition fairness index over beams."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumrate.access.errors import AccessError


def jain_index(shares: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """Jain's index (sum x)^2 / (n sum x^2) along an axis: 1 if all shares are equal, 1/n if one.

    Thesis, Sec. 3.3.2, with x the air time of a client. The index is 1 if all shares are 0.

    Args:
        shares: any shape, not negative, any unit.
        axis: the axis of the clients; the result lacks it.

    Raises:
        AccessError: a share is negative or not a number.

    """
    x = np.asarray(shares, dtype=np.float64)
    if x.size and not (np.min(x) >= 0.0):
        raise AccessError(f"shares must not be negative, and the least is {np.min(x):g}")
    squares = np.sum(x * x, axis=axis) * x.shape[axis]
    total = np.sum(x, axis=axis) ** 2
    return np.asarray(np.divide(total, squares, out=np.ones_like(total), where=squares > 0))


def competition_index(
    near_db: ArrayLike,
    other_db: ArrayLike,
    *,
    capture_db: float = 3.0,
    decode_db: float | None = None,
) -> NDArray[np.float64]:
    """The competition fairness index of two clients that sweep their beams in the same order.

    Thesis, Sec. 3.1: the number of beams on which the other client beats the near one by the
    capture margin, over the number on which the near one beats the other. 1 is fair, 0 means that
    the other never wins. It has no upper bound: infinity means that the near client never wins, and
    NaN that neither does.

    Args:
        near_db: SNR at the AP of the near client's beams, dB, shape [..., beams].
        other_db: the same of the other client, dB, shape [..., beams].
        capture_db: the margin.
        decode_db: if given, a beam counts only if its SNR is at least this as well.

    Returns:
        The index, shape [...].

    """
    near = np.asarray(near_db, dtype=np.float64)
    other = np.asarray(other_db, dtype=np.float64)
    if near.shape[-1] != other.shape[-1]:
        raise AccessError(
            f"both clients must have the same number of beams, not {near.shape[-1]} and "
            f"{other.shape[-1]}"
        )
    other_wins = other - near >= capture_db
    near_wins = near - other >= capture_db
    if decode_db is not None:
        other_wins &= other >= decode_db
        near_wins &= near >= decode_db
    above = np.sum(other_wins, axis=-1).astype(np.float64)
    below = np.sum(near_wins, axis=-1).astype(np.float64)
    alone = np.where(above > 0, np.inf, np.nan)
    return np.asarray(np.divide(above, below, out=alone, where=below > 0))


def balance(index: ArrayLike) -> NDArray[np.float64]:
    """Evenness of a contest, 0 to 1: the competition index or its inverse, the smaller one.

    1 where neither client ever wins (index NaN).
    """
    value = np.asarray(index, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(np.isnan(value), 1.0, np.minimum(value, 1.0 / value)))
