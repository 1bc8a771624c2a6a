"""Words for measured values and limits."""

from collections.abc import Collection

MOST = 1e6
"""Stands for a value divided by nothing."""


def figure(value: float) -> str:
    """A number with four significant digits, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def said(values: tuple[float, float], unit: str = "", note: str = "") -> str:
    """The least and the largest value, or the one that both are, the unit, and a note."""
    over_nothing = not unit and values[1] == MOST
    low, high = figure(values[0]), "∞" if over_nothing else figure(values[1])
    low = high if values[0] == values[1] else low
    whole = f"{low if low == high else f'{low} to {high}'} {unit}".rstrip()
    return f"{whole} ({note})" if note else whole


def few(counted: Collection[int], of: int) -> str:
    """How many repetitions count, where they are fewer than the experiment has; else nothing."""
    least, most = min(counted, default=of), min(max(counted, default=of), of)
    if least >= of:
        return ""
    return f"{least if least == most else f'{least} to {most}'} of {of} repetitions"


def limits(at_least: float | None, at_most: float | None) -> str:
    """The limits of a check; nothing if it has none."""
    parts = [f"at least {figure(at_least)}"] if at_least is not None else []
    parts += [f"at most {figure(at_most)}"] if at_most is not None else []
    return " and ".join(parts)
