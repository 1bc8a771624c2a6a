"""The error of bad input to initial access, and the checks that raise it."""

import math


class AccessError(ValueError):
    """A parameter is out of range; the message names it, the value and the range."""


def whole(name: str, value: float, least: int, most: int | None = None) -> int:
    """The value as a whole number within `least` to `most`.

    Raises:
        AccessError: it is a fraction, or out of range.

    """
    limits = f"at least {least}" if most is None else f"{least} to {most}"
    if not math.isfinite(value) or value != int(value):
        raise AccessError(f"{name} must be a whole number, {limits}, not {value:g}")
    if value < least or (most is not None and value > most):
        raise AccessError(f"{name} must be {limits}, not {value:g}")
    return int(value)


def share(name: str, value: float) -> float:
    """The value, strictly between 0 and 1.

    Raises:
        AccessError: it is not.

    """
    if not 0.0 < value < 1.0:
        raise AccessError(f"{name} must lie between 0 and 1, both excluded, not {value:g}")
    return float(value)


def within(name: str, value: float, least: float, most: float, unit: str = "") -> float:
    """The value, finite and within `least` to `most`.

    Raises:
        AccessError: it is not.

    """
    if not least <= value <= most:
        unit = f" {unit}" if unit else ""
        raise AccessError(f"{name} must be {least:g} to {most:g}{unit}, not {value:g}")
    return float(value)
