"""The registry of metrics: name, title, unit, group, direction and pooling, from metrics.csv."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, cast

TABLE = Path(__file__).with_name("metrics.csv")
"""A `*` in a name stands for a link, the number of a phase, or a peer."""
SUFFIXES = {
    "_mbps": "Mbit/s",
    "_dbm": "dBm",
    "_db": "dB",
    "_ms": "ms",
    "_s": "s",
    "_bits": "bit",
    "_bytes": "B",
}
"""Units of values that the table does not have, by the end of their name."""
WORKLOADS = {"Pages and daily programs", "Files", "Calls", "Copies", "Video", "A real player",
             "Tiles"}  # fmt: skip
"""Groups of which no metric is measured by the methods bench, stream and crowd."""
PUBLISHED_BIN = (0.72, 0.84)
"""The bin of a link's share that figure 4.6b of the thesis found to be the fullest."""
IN_BIN = "_share_in_72_84"
"""End of the name of the share of downloads in that bin."""
POOLED = "pooled_percentiles_over_"
POOLED_ABOVE = "pooled_percentiles_above_"
"""Begin of the names of values over the repetitions of a scheme and a peer; the peer follows."""

Pooling = Literal["", "scheme", "peer", "all"]
Direction = Literal["", "more", "less"]


class Metric(NamedTuple):
    """One measured or derived quantity."""

    group: str
    name: str
    title: str
    unit: str
    better: Direction = ""
    pooled: Pooling = ""
    """Over all repetitions of its scheme, of the scheme and a peer, or of all schemes."""

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is, 0 where neither is."""
        return {"more": 1, "less": -1}.get(self.better, 0)


@cache
def registry() -> dict[str, Metric]:
    """All metrics by name, in the order in which tables show them."""
    with TABLE.open(encoding="utf-8", newline="") as text:
        rows = list(csv.reader(text))[1:]
    return {row[1]: Metric(*cast("tuple[str, str, str, str, Direction, Pooling]", row))
            for row in rows}  # fmt: skip


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Metric], ...]:
    return tuple(
        (re.compile(re.escape(name).replace(r"\*", "(.+)")), metric)
        for name, metric in registry().items()
        if "*" in name
    )


@cache
def find(name: str) -> Metric:
    """The metric of this name; of an unknown name, what its suffix tells."""
    if name in registry():
        known = registry()[name]
    else:
        fitting = (metric for pattern, metric in _patterns() if pattern.fullmatch(name))
        unit = next((unit for end, unit in SUFFIXES.items() if name.endswith(end)), "")
        known = next(fitting, Metric("", name, "", unit, "less" if unit == "ms" else ""))
    return known._replace(name=name, title=known.title or _title(name))


def _title(name: str) -> str:
    for end in SUFFIXES:
        name = name.removesuffix(end)
    return name.replace("_", " ")


def names(links: Iterable[str], phases: int) -> Iterator[str]:
    """All names that a value can have in an experiment with these links and phases."""
    numbers = [str(number) for number in range(1, phases + 1)]
    places = [*links]
    for name, metric in registry().items():
        if metric.group in WORKLOADS:
            continue
        parts = name.split("*")
        options = [numbers if part.endswith("phase_") else places for part in parts[:-1]]
        for chosen in product(*options):
            yield "".join(a + b for a, b in zip(parts, (*chosen, ""), strict=True))


def is_pooled(metric: str) -> bool:
    """True if a value of this name is of all repetitions and stands at one of them."""
    return find(metric).pooled != ""


def pooled_with(metric: str, schemes: Collection[str]) -> list[str]:
    """The other schemes whose repetitions are in a pooled value."""
    if find(metric).pooled == "peer":
        return [metric.removeprefix(POOLED).removeprefix(POOLED_ABOVE)]
    return list(schemes) if find(metric).pooled == "all" else []


def hardly_any(repetitions: int, most: int) -> bool:
    """True if so few of a scheme's repetitions count that others are not cut down to them."""
    return 2 * repetitions < most
