"""Checks of parameters; each error names the parameter, the value and the range."""

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
"""An array of 64-bit floats."""
Integers = NDArray[np.int64]
"""An array of 64-bit integers."""
Booleans = NDArray[np.bool_]
"""An array of truth values."""


class ParameterError(ValueError):
    """A parameter is out of range."""

    def __init__(self, name: str, given: object, allowed: str) -> None:
        """Takes the parameter's name, the value, and the allowed values in words."""
        super().__init__(f"{name} is {given}: allowed is {allowed}")
        self.name = name
        self.given = given
        self.allowed = allowed


def finite(name: str, values: ArrayLike) -> Floats:
    """The values as floats, any shape.

    Raises:
        ParameterError: a value is not a finite number.

    """
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(name, repr(values), "a number or an array of numbers") from None
    wrong = ~np.isfinite(found)
    if wrong.any():
        raise ParameterError(name, found[wrong].flat[0], "a finite number")
    return found


def within(
    name: str,
    values: ArrayLike,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    open_low: bool = False,
) -> Floats:
    """The values as floats, any shape, none below `low` or above `high`.

    Args:
        name: of the parameter, with its unit, such as `distance_m`.
        values: to check.
        low: least value allowed.
        high: largest value allowed.
        open_low: exclude `low` itself.

    Raises:
        ParameterError: a value is out of range, or not a finite number.

    """
    found = finite(name, values)
    wrong = (found <= low if open_low else found < low) | (found > high)
    if wrong.any():
        above = f"{'more than' if open_low else 'at least'} {low:g}" if low > -np.inf else ""
        below = f"at most {high:g}" if high < np.inf else ""
        allowed = " and ".join(part for part in (above, below) if part)
        raise ParameterError(name, found[wrong].flat[0], allowed)
    return found


def positive(name: str, values: ArrayLike) -> Floats:
    """The values as floats, any shape, all above 0.

    Raises:
        ParameterError: a value is 0 or negative.

    """
    return within(name, values, 0.0, open_low=True)


def angle(name: str, values: ArrayLike) -> Floats:
    """Angles in radians, any shape, within two turns; larger values are probably degrees.

    Raises:
        ParameterError: an angle is beyond two turns.

    """
    found = finite(name, values)
    wrong = np.abs(found) > 4 * np.pi
    if wrong.any():
        raise ParameterError(
            name, found[wrong].flat[0], "radians between -4 pi and 4 pi (are these degrees?)"
        )
    return found


def whole(name: str, value: object, low: int = 1, high: int | None = None) -> int:
    """A whole number from `low` to `high`.

    Raises:
        ParameterError: it is not whole, or out of range.

    """
    allowed = f"a whole number from {low}" + (f" to {high}" if high is not None else "")
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterError(name, repr(value), allowed)
    if value < low or (high is not None and value > high):
        raise ParameterError(name, value, allowed)
    return int(value)


def one_of(name: str, value: str, allowed: Collection[str]) -> str:
    """A known name.

    Raises:
        ParameterError: the name is unknown.

    """
    if value not in allowed:
        raise ParameterError(name, repr(value), ", ".join(sorted(allowed)))
    return value
