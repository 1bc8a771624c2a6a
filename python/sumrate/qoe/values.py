"""One timed value, and what may happen before each thing that is timed."""

from collections.abc import Callable
from typing import NamedTuple

Renew = Callable[[int], None]
"""Called before each download or page with its number: the links go on with another trace.

All schemes get the same trace for the same number, so each meets the same channel."""


class Value(NamedTuple):
    """A metric with its unit."""

    metric: str
    value: float
    unit: str


def nothing(_number: int) -> None:
    """The links stay as they are."""
