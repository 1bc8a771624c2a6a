"""Confidence intervals of means over repetitions."""

import math
import statistics
from collections.abc import Sequence

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056),
    *(2.052, 2.048, 2.045, 2.042),
)
"""Student's t of 97.5 % for 1 to 30 degrees of freedom; beyond, the normal's 1.96."""


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of the mean; None for fewer than two values.

    Student's: repetitions are independent, their spread is not known.
    """
    n = len(values)
    if n < 2:
        return None
    t = T_975[n - 2] if n - 1 <= len(T_975) else 1.96
    return t * statistics.stdev(values) / math.sqrt(n)
