"""What tables and plots show of a run: medians with their range, orders and titles."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sumrate.report.lab.read import Run, RunKey, Scheme, Setting
from sumrate.report.lab.words import METRICS, Column, column

SETTLE_S = 0.5
"""Samples this close to the start or the end of a run are left out of distributions."""


@dataclass(frozen=True)
class Spread:
    """Median, least and largest of a metric, and how many values there were."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def apart(self, other: "Spread") -> bool:
        """Whether the two ranges have no value in common."""
        return self.high < other.low or other.high < self.low


@dataclass(frozen=True)
class Summary:
    """A run and what is counted from it."""

    run: Run
    schemes: tuple[Scheme, ...]
    """In the manifest's order; schemes that only the tables have at the end."""
    settings: tuple[Setting, ...]
    columns: tuple[Column, ...]
    spreads: Mapping[tuple[str, Setting, str], Spread]
    """By metric, setting and scheme."""
    sampled: Mapping[tuple[Setting, str], Sequence[float]]
    """All 100 ms samples of a setting and scheme, ranked."""
    drawn: Mapping[tuple[Setting, str], RunKey]
    """The repetition of a setting and scheme that stands for the others."""

    def spread(self, metric: str, setting: Setting, scheme: str) -> Spread | None:
        """The spread of a metric; None where nothing was measured."""
        return self.spreads.get((metric, setting, scheme))

    def setting_title(self, setting: Setting) -> str:
        """The condition's title, with congestion control and buffers where those differ."""
        return " · ".join([self.condition_title(setting), *self.variant(setting)])

    def condition_title(self, setting: Setting) -> str:
        """The condition's title."""
        titles = {c.name: c.title for c in self.run.conditions}
        return titles.get(setting.condition, setting.condition)

    def link_title(self, name: str) -> str:
        """A link's title; its name where it has none."""
        links = (c.links[name] for c in self.run.conditions if name in c.links)
        return str(next(links, {}).get("title") or name)

    def variant(self, setting: Setting) -> list[str]:
        """Congestion control and buffers, each only where the run has more than one."""
        parts = []
        if len({s.congestion_control for s in self.settings}) > 1:
            parts.append(setting.congestion_control)
        if len({s.buffers for s in self.settings}) > 1:
            parts.append(f"{setting.buffers} buffers")
        return parts

    def variants(self) -> list[tuple[str, list[Setting]]]:
        """The settings of each congestion control and buffers, with words for the two."""
        found: dict[tuple[str, str], list[Setting]] = defaultdict(list)
        for setting in self.settings:
            found[setting.congestion_control, setting.buffers].append(setting)
        return [(", ".join(self.variant(group[0])), group) for group in found.values()]

    def leads(self, metrics: Sequence[str], settings: Sequence[Setting]) -> str:
        """A sentence on how often Sumrate has the best median of these; empty without a rival.

        Its own variants are no rivals.
        """
        own = next((n for n in self.schemes if n.name == JUDGED), None)
        best = total = 0
        for shown in (c for c in self.columns if c.metric in metrics and c.better):
            for setting in settings:
                found = {n.name: spread.median * shown.better for n in self.schemes
                         if n.name == JUDGED or not n.name.startswith(JUDGED)
                         if (spread := self.spread(shown.metric, setting, n.name))}  # fmt: skip
                if JUDGED in found and len(found) > 1:
                    total += 1
                    best += found[JUDGED] >= max(found.values())
        if own is None or not total:
            return ""
        what = "case" if total == 1 else "cases"
        return f"{own.title} has the best median in {best} of {total} {what}."

    def counted(self, setting: Setting, scheme: str) -> tuple[int, int]:
        """How many repetitions count, and how many are left out as void or failed."""
        run = self.run
        keys = {key for key in run.ran if key.setting == setting and key.scheme == scheme}
        keys |= {v.key for v in run.metrics if v.key.setting == setting and v.key.scheme == scheme}
        out = {key for key in keys if key in run.void or key in run.failed}
        return len(keys - out), len(out)

    def samples(self, setting: Setting, scheme: str) -> Sequence[float]:
        """The 100 ms samples of all repetitions, without the first and last half second, ranked."""
        return self.sampled.get((setting, scheme), ())

    def median_run(self, setting: Setting, scheme: str) -> RunKey | None:
        """The repetition that is drawn; None without series.

        That of Sumrate's median goodput (the lower of two), or where a scheme has no such one, or
        there is no Sumrate, that of its own.
        """
        return self.drawn.get((setting, scheme))


def summarise(run: Run) -> Summary:
    """Counts a run's medians and ranges."""
    values: dict[tuple[str, Setting, str], list[float]] = defaultdict(list)
    units: dict[str, str] = {}
    for measured in run.metrics:
        key = measured.key
        values[measured.metric, key.setting, key.scheme].append(measured.value)
        units.setdefault(measured.metric, measured.unit)
    order = [name for name in METRICS if name in units]
    order += sorted(units.keys() - METRICS.keys())
    keys = [*run.ran, *(value.key for value in run.metrics)]
    return Summary(
        run=run,
        schemes=_schemes(run, keys),
        settings=_settings(run, keys),
        columns=tuple(column(name, units[name]) for name in order),
        spreads={key: Spread.of(found) for key, found in values.items()},
        sampled=_samples(run),
        drawn=_median_runs(run),
    )


def _samples(run: Run) -> dict[tuple[Setting, str], list[float]]:
    found: dict[tuple[Setting, str], list[float]] = defaultdict(list)
    for key, points in run.series.items():
        end = points[-1][0] - SETTLE_S
        found[key.setting, key.scheme] += [rate for at, rate in points if SETTLE_S < at < end]
    return {where: sorted(samples) for where, samples in found.items() if samples}


JUDGED = "sumrate"
"""The scheme whose median repetition is drawn, and that repetition of the others."""


def _median_runs(run: Run) -> dict[tuple[Setting, str], RunKey]:
    """Which repetition of each scheme is drawn.

    In a repetition all have the same seed and traces: strips of one figure can be compared.
    """
    rates = {key: statistics.fmean(rate for _, rate in run.series[key]) for key in run.series}
    for value in run.metrics:
        if value.metric == "goodput_mbps" and value.key in rates:
            rates[value.key] = value.value
    found: dict[tuple[Setting, str], list[RunKey]] = defaultdict(list)
    for key in sorted(rates, key=lambda key: (rates[key], key)):
        found[key.setting, key.scheme].append(key)
    medians = {where: keys[(len(keys) - 1) // 2] for where, keys in found.items()}
    leading = {s: k.repetition for (s, scheme), k in medians.items() if scheme == JUDGED}
    same = {
        where: key
        for where, keys in found.items()
        for key in keys
        if key.repetition == leading.get(where[0])
    }
    return medians | same


def _schemes(run: Run, keys: Iterable[RunKey]) -> tuple[Scheme, ...]:
    """The links alone, in their order, then the others in the order in which they ran."""
    known = {scheme.name for scheme in run.schemes}
    others = dict.fromkeys(key.scheme for key in keys if key.scheme not in known)
    found = (*run.schemes, *(Scheme(name, name) for name in others))
    links = list(dict.fromkeys(name for condition in run.conditions for name in condition.links))
    places = {name: place for place, name in enumerate(links)}
    return tuple(sorted(found, key=lambda scheme: places.get(scheme.name, len(places))))


def _settings(run: Run, keys: Iterable[RunKey]) -> tuple[Setting, ...]:
    found = list(dict.fromkeys(key.setting for key in keys))
    conditions = [condition.name for condition in run.conditions]
    controls = list(dict.fromkeys(setting.congestion_control for setting in found))
    buffers = list(dict.fromkeys(setting.buffers for setting in found))

    def place(setting: Setting) -> tuple[int, int, int]:
        name = setting.condition
        return (
            controls.index(setting.congestion_control),
            buffers.index(setting.buffers),
            conditions.index(name) if name in conditions else len(conditions),
        )

    return tuple(sorted(found, key=place))
