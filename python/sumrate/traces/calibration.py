"""Measured statistics of real links, and their distance from generated traces."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sumrate.traces.generate import generate
from sumrate.traces.kinds import KINDS
from sumrate.traces.measure import Statistics, percentile, pooled, statistics

MEASURED: dict[str, Statistics] = {
    "wigig-los": Statistics(1394, 401, 111, 1543, 1587, 0.96, 0.87),
    "wigig-nlos": Statistics(752, 218, 497, 725, 1132, 0.58, -0.03),
    "wigig-mobility": Statistics(1056, 432, 272, 1119, 1565, 0.67, -0.33),
    "wifi-los": Statistics(476, 25, 440, 483, 495, 0.63, 0.23),
}
"""TCP goodput of the thesis's own links over windows of 1 s, about 370 of each."""

RELATIVE_TOLERANCE = 0.05
"""Tolerance of mean, standard deviation and percentiles."""
CORRELATION_TOLERANCE = 0.05
"""Tolerance of the autocorrelations, absolute."""
SEEDS = 100
SECONDS = 370.0
"""Number and length of the traces of each kind in a calibration; the length is the measured one."""


class Finding(NamedTuple):
    """One statistic of one kind."""

    kind: str
    statistic: str
    generated: float
    measured: float

    @property
    def within(self) -> bool:
        """True if the statistic is within its tolerance."""
        off = abs(self.generated - self.measured)
        if self.statistic.startswith("autocorrelation"):
            return off <= CORRELATION_TOLERANCE
        return off <= RELATIVE_TOLERANCE * self.measured


@dataclass(frozen=True)
class Calibration:
    """Statistics of many traces of a kind."""

    kind: str
    generated: Statistics
    """Statistics over all traces."""
    mean_range: tuple[float, float]
    """5th and 95th percentile of the means of single traces."""

    def findings(self) -> Iterator[Finding]:
        """Each statistic with its measured value."""
        measured = MEASURED[self.kind].values()
        for name, value in self.generated.values().items():
            yield Finding(self.kind, name, value, measured[name])


def calibrate(
    kind: str, seeds: int = SEEDS, seconds: float = SECONDS, first: int = 1
) -> Calibration:
    """Statistics of `seeds` generated traces of a kind, from seed `first` on."""
    traces = [generate(kind, seed, seconds) for seed in range(first, first + seeds)]
    means = sorted(statistics(trace).mean for trace in traces)
    return Calibration(kind, pooled(traces), (percentile(means, 0.05), percentile(means, 0.95)))


def number(name: str, value: float) -> str:
    """A statistic as text."""
    if math.isnan(value):
        return "-"
    return f"{value:.2f}" if name.startswith("autocorrelation") else f"{value:.0f}"


def table(calibrations: list[Calibration]) -> str:
    """Markdown: generated / measured; bold beyond the tolerance."""
    lines = [
        "| kind | mean | std | p5 | p50 | p95 | autocorrelation 1 s | 5 s | means of single ones |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in calibrations:
        cells = [f"{KINDS[one.kind].title} (`{one.kind}`)"]
        for found in one.findings():
            pair = (number(found.statistic, v) for v in (found.generated, found.measured))
            cell = " / ".join(pair)
            cells.append(cell if found.within else f"**{cell}**")
        cells.append(" to ".join(f"{mean:.0f}" for mean in one.mean_range))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
