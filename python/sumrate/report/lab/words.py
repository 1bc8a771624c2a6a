"""How metrics, numbers, links and conditions are said in tables, captions and axes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from sumrate.verdict.metrics import SUFFIXES, find, registry

CODE = re.compile(r"`([^`]+)`")
NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
GROUPS: dict[str, dict[str, str]] = {
    group: {metric.name: metric.title for metric in metrics}
    for group, metrics in groupby(
        (metric for metric in registry().values() if metric.title and metric.group),
        key=lambda metric: metric.group,
    )
}
"""Titles of the metrics, in the tables and in the order that they are shown in."""
METRICS = {metric: title for metrics in GROUPS.values() for metric, title in metrics.items()}
UNITS = {"B": (1e-6, "MB")}
"""Units that are shown as another: factor and name."""
DARK = {"both": "dark", "a_to_b": "dark towards the server", "b_to_a": "dark towards the client"}
"""What a blackout's direction means; `a` is the client."""


@dataclass(frozen=True)
class Column:
    """A metric as it is shown: title, factor from the measured value, unit."""

    metric: str
    title: str
    factor: float
    unit: str

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit != "ratio" else self.title

    @property
    def better(self) -> int:
        """1 where more is better, -1 where less is, 0 where neither is."""
        return find(self.metric).sign

    @property
    def ratio_to_another(self) -> bool:
        """Whether it is a value over another scheme's, of which 1 is as good."""
        return "_over_" in self.metric

    def number(self, value: float) -> str:
        """A measured value as it is shown."""
        return number(value * self.factor, self.unit)


def column(metric: str, unit: str) -> Column:
    """How a metric is shown; one that has no title here by its name."""
    factor, shown = UNITS.get(unit, (1.0, unit))
    return Column(metric, find(metric).title, factor, shown)


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
    """A key such as `rtt_ms` and its value as words: `rtt 8 ms`."""
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
    shown = f"{value:g}" if isinstance(value, float) else plain(value)
    return f"{_words(key)} {shown}"


def _words(key: str) -> str:
    words = key.replace("_", " ").replace("rtt", "RTT").replace("cpu", "CPU")
    return words.replace("mtu", "MTU").replace("ack delay", "ACKs held")


def quantities(entry: Mapping[str, Any]) -> str:
    """Everything in an entry but its name; what is zero or empty is left out."""
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
    """Blackouts as `[start, end]` or `[start, end, direction]`: when, and what is dark in words."""
    for part in value if isinstance(value, list | tuple) else ():
        start, end, direction = (*part, "both")[:3]
        yield float(start), float(end), DARK.get(direction, f"dark {direction}")


def prose(text: str) -> str:
    """A sentence of an experiment file, in which names of commands and files stand apart."""
    return CODE.sub(r"<code>\1</code>", escape(text))
