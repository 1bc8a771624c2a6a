"""Words for numbers, links and conditions in tables, captions and axes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup, escape

from sumrate.verdict.metrics import SUFFIXES, Metric

CODE = re.compile(r"`([^`]+)`")
NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
DARK = {"both": "dark", "a_to_b": "dark towards the server", "b_to_a": "dark towards the client"}
"""Words for a blackout's direction; `a` is the client."""


def scaled(unit: str) -> tuple[float, str]:
    """Factor and name of the unit that is shown instead of one."""
    return (1e-6, "MB") if unit == "B" else (1.0, unit)


def heading(metric: Metric) -> str:
    """Title and unit."""
    unit = scaled(metric.unit)[1]
    return f"{metric.title}, {unit}" if unit not in ("", "ratio") else metric.title


def shown(metric: Metric, value: float) -> str:
    """A measured value with the digits that mean something."""
    factor, unit = scaled(metric.unit)
    return number(value * factor, unit)


def number(value: float, unit: str = "") -> str:
    """A number with the digits that mean something; ratios with three decimals."""
    if unit == "ratio":
        return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.4f}"
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def plain(value: object) -> str:
    """A value of a result file for a reader: numbers short, nothing as a dash."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, "ratio" if abs(value) < 10 else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(part) for part in value)
    return str(value)


def quantity(key: str, value: object) -> str:
    """A key such as `rtt_ms` and its value as words: `RTT 8 ms`."""
    if key == "blackouts":
        return "; ".join(_blackouts(value))
    if key == "unplugged":
        spans = (f"{start:g} to {end:g} s" for start, end, _ in intervals(value))
        return f"interface down {', '.join(spans)}"
    if isinstance(value, Mapping):
        return f"{_words(key)} ({quantities(value)})"
    for suffix, unit in SUFFIXES.items():
        if key.endswith(suffix) and isinstance(value, int | float):
            return f"{_words(key.removesuffix(suffix))} {value:g} {unit}"
    return f"{_words(key)} {f'{value:g}' if isinstance(value, float) else plain(value)}"


def _words(key: str) -> str:
    words = key.replace("_", " ").replace("rtt", "RTT").replace("cpu", "CPU")
    return words.replace("mtu", "MTU").replace("ack delay", "ACKs held")


def quantities(entry: Mapping[str, Any]) -> str:
    """Everything in an entry but its name; zero and empty values are left out."""
    return ", ".join(
        quantity(key, value)
        for key, value in entry.items()
        if key not in ("name", "title") and value
    )


def _blackouts(value: object) -> Iterator[str]:
    """The intervals of each kind; of many only the first and the last."""
    found: dict[str, list[str]] = {}
    for start, end, where in intervals(value):
        found.setdefault(where, []).append(f"{start:g} to {end:g} s")
    for where, spans in found.items():
        if len(spans) > 4:
            yield f"{where} {spans[0]}, {spans[1]} … {spans[-1]} ({len(spans)} times)"
        else:
            yield f"{where} {', '.join(spans)}"


def intervals(value: object) -> Iterator[tuple[float, float, str]]:
    """Blackouts as `[start, end]` or `[start, end, direction]`, the direction in words."""
    for part in value if isinstance(value, list | tuple) else ():
        start, end, direction = (*part, "both")[:3]
        yield float(start), float(end), DARK.get(direction, f"dark {direction}")


def prose(text: str) -> Markup:
    """A sentence of an experiment file as HTML, with names of commands and files as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped before)
