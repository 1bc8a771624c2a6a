"""One measured run, and the numbers in it."""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from sumrate.lab.links import Blackout

STEP_S = 0.1
"""Length of the samples whose percentiles are reported."""
RECOVERED = 0.95
"""A rate has returned when 100 ms reach this share of what it was before."""
SETTLE_S = 0.5
"""Rate before a blackout: the mean of this long before it."""
RETURN_S = 0.3
"""A silence that begins this long after a radio is back still belongs to its blackout."""

Silence = tuple[float, float]
"""A time without a byte: when it began (seconds after the first byte), how long it was (ms)."""


@dataclass(frozen=True)
class Metric:
    """A value with its unit."""

    name: str
    value: float
    unit: str


@dataclass
class Run:
    """One scheme once in one condition."""

    scheme: str
    condition: str
    congestion_control: str
    buffers: str
    repetition: int
    seed: int
    void: bool = False
    metrics: list[Metric] = field(default_factory=list)
    series: list[tuple[float, float]] = field(default_factory=list)
    """Middle of each 100 ms in seconds, and its goodput in Mbit/s."""
    subflows: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """The same by link, where a capture tells it."""
    detail: dict[str, Any] = field(default_factory=dict)
    """Commands, lateness, settings, an error or the reason why the scheme is missing."""

    def value(self, metric: str) -> float | None:
        """The first value of a metric."""
        return next((m.value for m in self.metrics if m.name == metric), None)

    def add(self, name: str, value: float | None, unit: str) -> None:
        """Adds a value, if there is one."""
        if value is not None and math.isfinite(value):
            self.metrics.append(Metric(name, float(value), unit))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which this share of the values lies (nearest rank)."""
    if not values:
        return None
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, math.ceil(share * len(ranked)) - 1))]


def add_samples(run: Run) -> None:
    """Percentiles of the 100 ms samples; the first and last half second are left out."""
    steady = steady_samples(run)
    for name, share in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95)):
        run.add(f"sample_{name}_mbps", percentile(steady, share), "Mbit/s")
    low, high = run.value("sample_p5_mbps"), run.value("sample_p95_mbps")
    if low is not None and high:
        run.add("sample_spread", low / high, "ratio")


def add_carried(run: Run, stats: Mapping[str, Any]) -> None:
    """What each link of the emulator delivered to the client, in 10^6 bytes of IP."""
    for link in stats.get("links", ()):
        carried = link["b_to_a"]["counters"]["bytes_out"]
        run.add(f"carried_{link['name']}_mbytes", carried / 1e6, "MB")


def add_sleep(run: Run, stats: Mapping[str, Any], sleepers: Collection[str]) -> None:
    """How often each radio that sleeps was woken, and its share of the time asleep."""
    uptime_ns = float(stats.get("uptime_s", 0.0)) * 1e9
    for link in stats.get("links", ()):
        if link["name"] in sleepers and uptime_ns > 0:
            radio = link["radio"]
            run.add(f"wakes_{link['name']}", radio["wakes"], "")
            asleep = radio["asleep_ns"] / uptime_ns
            run.add(f"asleep_{link['name']}_share", asleep, "ratio")


def unused_link(stats: Mapping[str, Any]) -> str:
    """A link that delivered nothing to the client while another one did; empty if there is none."""
    links = stats.get("links", ())
    came = {link["name"]: int(link["b_to_a"]["counters"]["bytes_out"]) for link in links}
    silent = [name for name, count in came.items() if count == 0]
    return silent[0] if silent and any(came.values()) else ""


def add_phases(run: Run, bins: "Bins", phases: Iterable[tuple[float, float]]) -> None:
    """Mean goodput of each interval (seconds after the first byte), numbered from 1."""
    for number, (start, end) in enumerate(phases, start=1):
        run.add(f"phase_{number}_mbps", bins.mbps(start, end), "Mbit/s")


def _add_processor_time(run: Run, details: Mapping[str, Any]) -> None:
    received = details.get("bytes")
    if received is None and run.value("goodput_mbps"):
        received = (run.value("goodput_mbps") or 0.0) * 125e3 * float(details.get("seconds", 0))
    for name in ("cpu_seconds", "kernel_cpu_seconds"):
        spent = details.get(name)
        if isinstance(spent, Mapping) and received:
            used = sum(value for value in spent.values() if value is not None)
            metric = name.replace("seconds", "s_per_gb")
            run.add(metric, used / (received / 1e9), "s/GB")


def add_benchmark(run: Run, details: Mapping[str, Any]) -> None:
    """What `sumrate bench` and iperf3 say beside the goodput."""
    _add_processor_time(run, details)
    delay = details.get("in_order_delay_ms")
    if isinstance(delay, Mapping):
        for name in ("p50", "p99"):
            run.add(f"in_order_delay_{name}_ms", delay.get(name), "ms")
    run.add("longest_stall_ms", details.get("longest_stall_ms"), "ms")
    run.add("reassembly_peak_bytes", details.get("receive_buffer_peak_bytes"), "B")
    if details.get("redundant_bytes") is not None and details.get("bytes"):
        run.add("redundant_share", details["redundant_bytes"] / details["bytes"], "ratio")
    shares = [p["coupled_share"] for p in details.get("paths", ()) if "coupled_share" in p]
    if shares:
        run.add("coupled_share", max(shares), "ratio")
    for path in details.get("paths", ()):
        if "redials" in path:
            run.add(f"path_{path['name']}_redials", path["redials"], "")
    if "intervals" in details:
        run.series = [
            ((i["start_s"] + i["end_s"]) / 2, i["goodput_mbps"]) for i in details["intervals"]
        ]


def steady_series(run: Run) -> list[tuple[float, float]]:
    """The 100 ms samples, with their middles, without the first and the last half second."""
    end = run.series[-1][0] - 0.5 if run.series else 0.0
    return [(at, value) for at, value in run.series if 0.5 < at < end]


def steady_samples(run: Run) -> list[float]:
    """The 100 ms samples in Mbit/s without the first and the last half second."""
    return [value for _, value in steady_series(run)]


class Bins:
    """Bytes received in each 5 ms of a run, counted from its first byte."""

    def __init__(self, step_s: float, received: Sequence[int]) -> None:
        """Takes the length of a bin in seconds and the bytes of each."""
        self.step_s = step_s
        self.received = received

    @classmethod
    def of_totals(cls, step_s: float, totals: Sequence[int]) -> Self:
        """From the bytes received by the end of each bin."""
        before = [0, *totals[:-1]]
        return cls(step_s, [b - a for a, b in zip(before, totals, strict=True)])

    def mbps(self, start_s: float, end_s: float) -> float:
        """Mean goodput between two times, to the next bin."""
        first, last = round(start_s / self.step_s), round(end_s / self.step_s)
        last = min(max(last, first + 1), len(self.received))
        length = (last - first) * self.step_s
        return sum(self.received[first:last]) * 8e-6 / length if length > 0 else 0.0

    def series(self) -> list[tuple[float, float]]:
        """The 100 ms samples: middle in seconds, Mbit/s."""
        count = int(len(self.received) * self.step_s / STEP_S + 1e-9)
        return [
            (round((i + 0.5) * STEP_S, 3), self.mbps(i * STEP_S, (i + 1) * STEP_S))
            for i in range(count)
        ]

    def recovery_ms(self, dark: Blackout) -> float | None:
        """From the end of a blackout until 100 ms carry again what was carried before it."""
        before = self.mbps(max(0.0, dark.start_s - SETTLE_S), dark.start_s)
        first = math.ceil(dark.end_s / self.step_s)
        width = round(STEP_S / self.step_s)
        for index in range(first, len(self.received) - width):
            if self.mbps(index * self.step_s, index * self.step_s + STEP_S) >= RECOVERED * before:
                return (index * self.step_s - dark.end_s) * 1000
        return None


def longest_silence_ms(silences: Iterable[Silence], start_s: float, end_s: float) -> float:
    """The longest silence that touches an interval, all of it; 0 if there is none."""
    touching = [ms for at, ms in silences if at < end_s and at + ms / 1e3 > start_s]
    return max(touching, default=0.0)


def add_blackouts(
    run: Run,
    bins: Bins,
    dark: Iterable[Blackout],
    silences: Sequence[Silence],
    of: str = "",
) -> None:
    """One value for each blackout: longest silence, goodput meanwhile, time until it is back.

    Those shorter than a sample of 100 ms say nothing about rates and are left out.

    Args:
        run: gets the values.
        bins: what was received.
        dark: the blackouts.
        silences: times without a byte; those of a blackout touch it, or begin as the radio returns.
        of: name of the link, where more than one goes dark: it becomes part of the metrics' names.

    """
    part = f"_{of}" if of else ""
    for blackout in dark:
        if blackout.end_s + STEP_S > len(bins.received) * bins.step_s:
            continue
        if blackout.end_s - blackout.start_s < STEP_S:
            continue
        silence = longest_silence_ms(silences, blackout.start_s, blackout.end_s + RETURN_S)
        run.add(f"blackout_stall{part}_ms", silence, "ms")
        rate = bins.mbps(blackout.start_s, blackout.end_s)
        run.add(f"blackout_goodput{part}_mbps", rate, "Mbit/s")
        back = bins.recovery_ms(blackout)
        if back is None:  # it took at least until the end
            back = (len(bins.received) * bins.step_s - blackout.end_s) * 1000
        run.add(f"recovery{part}_ms", back, "ms")


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, least and largest."""
    return statistics.median(values), min(values), max(values)
