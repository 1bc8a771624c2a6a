"""Statistics of TCP goodput over traces, comparable with those of the real links."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from sumrate.traces.trace import Trace

GOODPUT_SHARE = 1448 / 1500
"""TCP goodput over link rate: 1448 bytes of payload in 1500 of IP, headers and timestamps off."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of means over windows of 1 s, in Mbit/s; autocorrelations at 1 s and 5 s."""

    mean: float
    std: float
    p5: float
    p50: float
    p95: float
    autocorrelation_1s: float
    autocorrelation_5s: float

    def values(self) -> dict[str, float]:
        """The statistics by name."""
        return asdict(self)


def goodputs(trace: Trace, window_s: float = 1.0) -> list[float]:
    """Mean goodput of each whole window, Mbit/s.

    Raises:
        ValueError: the window is no multiple of the trace's step.

    """
    steps = round(window_s * 1e3 / trace.step_ms)
    if steps < 1 or not math.isclose(steps * trace.step_ms, window_s * 1e3):
        raise ValueError(f"a window of {window_s} s is no multiple of steps of {trace.step_ms} ms")
    edges = range(0, len(trace.rates_mbps) + 1, steps)
    return [
        GOODPUT_SHARE * math.fsum(trace.rates_mbps[begin:end]) / steps
        for begin, end in pairwise(edges)
    ]


def statistics(trace: Trace, window_s: float = 1.0) -> Statistics:
    """Statistics of the TCP goodput that a trace allows."""
    return pooled([trace], window_s)


def pooled(traces: Sequence[Trace], window_s: float = 1.0) -> Statistics:
    """Statistics of the windows of all traces together.

    An autocorrelation takes pairs within a trace, about the mean of all traces. It is NaN if all
    windows are equal or every trace is too short.

    Raises:
        ValueError: no trace holds a whole window.

    """
    series = [goodputs(trace, window_s) for trace in traces]
    values = sorted(value for one in series for value in one)
    if not values:
        raise ValueError(f"no trace is as long as a window of {window_s} s")
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)

    def correlation(lag_s: float) -> float:
        lag = max(1, round(lag_s / window_s))
        products = [
            (a - mean) * (b - mean) for one in series for a, b in zip(one, one[lag:], strict=False)
        ]
        if not products or variance == 0:
            return math.nan
        return math.fsum(products) / len(products) / variance

    return Statistics(
        mean=mean,
        std=math.sqrt(variance),
        p5=percentile(values, 0.05),
        p50=percentile(values, 0.50),
        p95=percentile(values, 0.95),
        autocorrelation_1s=correlation(1.0),
        autocorrelation_5s=correlation(5.0),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Interpolated percentile of ordered values."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
