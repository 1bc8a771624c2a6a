"""Confidence intervals of means over repetitions."""

import math
import statistics
from collections.abc import Sequence
from functools import cache


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of the mean; None for fewer than two values.

    Student's: repetitions are independent, their spread is not known.
    """
    n = len(values)
    return student(n - 1) * statistics.stdev(values) / math.sqrt(n) if n > 1 else None


@cache
def student(freedom: int, confidence: float = 0.95) -> float:
    """Student's t that this share of the distribution does not exceed in amount."""
    from scipy.special import stdtrit  # noqa: PLC0415 (loads slowly, and few need it)

    return float(stdtrit(freedom, (1 + confidence) / 2))
