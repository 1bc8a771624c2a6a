"""How long the links alone would have taken for a file together, over the traces that it met.

A trace is hardly ever as fast in the first half of a download as in all of it. What a link carried
alone in a download of twice the length says nothing of that half; what its trace lets through does.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from sumrate.lab.experiment.by_method import FilesExperiment, expect
from sumrate.lab.experiment.model import Change, ConditionSetting, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import next_trace, on_wires
from sumrate.lab.links import Link
from sumrate.qoe.files import order
from sumrate.qoe.settings import FilesSetting
from sumrate.traces import Trace

STEPS = 50
"""Halvings of an interval: more than a time in ms has digits."""


@dataclass(frozen=True)
class Course:
    """Bytes that a link lets through from the start of a download on; none while it wakes up."""

    step_ms: float
    totals: tuple[float, ...]
    """Bytes of IP from the trace's start until the end of each of its steps, from 0 on."""
    start_ms: float
    """Where in the trace the download starts."""
    wake_ms: float

    @classmethod
    def of_trace(cls, trace: Trace, start_ms: float, wake_ms: float) -> "Course":
        """Of a link that follows a trace, which repeats."""
        steps = (rate * 125.0 * trace.step_ms for rate in trace.rates_mbps)
        return cls(trace.step_ms, tuple(accumulate(steps, initial=0.0)), start_ms, wake_ms)

    def bytes_until(self, at_ms: float) -> float:
        """Bytes let through this long after the download began."""
        begin = self.start_ms + self.wake_ms
        return max(0.0, self._total(self.start_ms + at_ms) - self._total(begin))

    def _total(self, at_ms: float) -> float:
        rounds, inside = divmod(at_ms / self.step_ms, len(self.totals) - 1)
        index = int(inside)
        before, after = self.totals[index], self.totals[index + 1]
        return rounds * self.totals[-1] + before + (inside - index) * (after - before)


def course(
    experiment: Experiment, condition: ConditionSetting, link: Link, seed: int, number: int
) -> Course:
    """The course of a link in the download of this number."""
    pause_ms = expect(experiment, FilesExperiment).files.pause_s * 1e3
    asleep = link.sleep is not None and pause_ms > link.sleep.after_ms
    wake_ms = link.sleep.wake_ms if asleep and link.sleep else 0.0
    change = condition.links.get(link.name, Change())
    steady = Trace(1e3, (link.down.rate_mbps,))
    followed = next_trace(experiment, change, link, seed, number) if change.trace else steady
    return Course.of_trace(followed, pause_ms, wake_ms)


def add_together(
    experiment: Experiment, condition: ConditionSetting, runs: Sequence[Run], links: Sequence[Link]
) -> None:
    """Divides the time of each download by when the links alone would have had it together.

    `time_SIZE_over_together`, once for each download: a link alone has delivered so many bytes when
    its trace has let so much through, as its own downloads of all sizes say (`Alone`); the links
    follow the traces of the download that is judged.
    """
    if not isinstance(experiment, FilesExperiment) or on_wires(experiment, condition):
        return
    timed = {run.scheme: downloads(run, experiment.files) for run in runs if not run.void}
    if any(not timed.get(link.name) for link in links):
        return
    seed = runs[0].seed  # the same for all of a repetition
    numbers = timed[links[0].name].keys()
    courses = {
        link.name: {n: course(experiment, condition, link, seed, n) for n in numbers}
        for link in links
    }
    alone = {
        link.name: Alone.of(
            (size, courses[link.name][number].bytes_until(ms))
            for number, (_, size, ms) in timed[link.name].items()
        )
        for link in links
    }
    for run in runs:
        for number, (name, size, ms) in timed.get(run.scheme, {}).items():
            pairs = [(alone[link.name], courses[link.name][number]) for link in links]
            run.add(f"{name}_over_together", ms / together_ms(pairs, size), "ratio")


def downloads(run: Run, setting: FilesSetting) -> dict[int, tuple[str, int, float]]:
    """Name, bytes and ms of each download by its number; empty if one is not there."""
    times: Mapping[str, Iterator[float]] = {
        size.name: iter([m.value for m in run.metrics if m.name == f"time_{size.name}_ms"])
        for size in setting.sizes
    }
    found = {
        number: (f"time_{size.name}", size.bytes, next(times[size.name], 0.0))
        for number, size in enumerate(order(setting))
    }
    return found if all(ms > 0 for *_, ms in found.values()) else {}


@dataclass(frozen=True)
class Alone:
    """How many bytes of a file a link has delivered when it has let so many bytes of IP through."""

    let_through: tuple[float, ...]
    """Ascending, from 0 on."""
    delivered: tuple[float, ...]

    @classmethod
    def of(cls, found: Iterator[tuple[int, float]]) -> "Alone":
        """From sizes and what was let through in each download: the median of each size counts."""
        by_size: dict[int, list[float]] = defaultdict(list)
        for size, count in found:
            by_size[size].append(count)
        places, sizes = [0.0], [0.0]
        for size, counts in sorted(by_size.items()):
            places.append(max(places[-1] + 1.0, median(counts)))
            sizes.append(float(size))
        return cls(tuple(places), tuple(sizes))

    def bytes_of(self, let_through: float) -> float:
        """On straight lines between the sizes; behind the largest at its mean rate."""
        index = bisect_left(self.let_through, let_through)
        if index == 0:
            return 0.0
        if index == len(self.let_through):
            return self.delivered[-1] * let_through / self.let_through[-1]
        low, high = self.let_through[index - 1 : index + 1]
        before, after = self.delivered[index - 1 : index + 1]
        return before + (after - before) * (let_through - low) / (high - low)


def together_ms(links: Sequence[tuple[Alone, Course]], size: int) -> float:
    """When the links' deliveries add up to this many bytes, in ms."""

    def enough(at_ms: float) -> bool:
        return sum(alone.bytes_of(of.bytes_until(at_ms)) for alone, of in links) >= size

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
