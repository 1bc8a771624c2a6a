"""Goodput over the rates that the emulator lets through, and spreads of samples.

All follow from what is kept, so results of before they were asked for have them too.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sumrate.lab.experiment.padhye import HEADER_BYTES
from sumrate.lab.experiment.record import Run, percentile, steady_samples
from sumrate.lab.links import DEFAULT_MTU

SECOND = 10
"""Samples of 100 ms in one of a second."""
SPREADS = (
    ("pooled_sample_p5_over_p50", 0.05, 0.5, 1),
    ("pooled_sample_p5_over_p95", 0.05, 0.95, 1),
    ("pooled_second_p5_over_p95", 0.05, 0.95, SECOND),
    ("pooled_second_p20_over_p95", 0.2, 0.95, SECOND),
)
"""Metrics of the samples of all repetitions, the two percentiles that they divide, and how many
samples of 100 ms are one: of those that are left at a run's end, and are fewer, there is none."""
UNSTEADY = (
    "trace",
    "rate_steps",
    "blackouts",
    "unplugged",
    "medium",
    "shares",
    "returns",
    "beside",
)
"""Keys of a link's entry in the manifest that make its rate no measure of its goodput."""


def _place(run: Run) -> tuple[str, str, str, str, int]:
    return run.scheme, run.condition, run.congestion_control, run.buffers, run.repetition


def add_shaped(links: Sequence[Mapping[str, Any]], runs: Sequence[Run]) -> None:
    """Goodput over what the emulator lets through, of all links, or of the one that is alone.

    That is a link's rate less the headers of full segments (IP, TCP, timestamps) and less what it
    loses. Not subtracted are a transport's own bytes (TLS, frames, copies) and the time that its
    start takes: of a radio half a second late a TCP alone has much less, and then no sum of the
    links alone is what they could carry. Nothing is added where a rate says too little.

    Args:
        links: of each condition, as the manifest has them (`links_shown`).
        runs: of all conditions.

    """
    shaped = _let_through(links)
    for run in runs:
        rates = shaped.get(run.condition, {})
        own = {run.scheme: rates[run.scheme]} if run.scheme in rates else rates
        goodput = run.value("goodput_mbps")
        if own and goodput is not None and run.value("shaped_ratio") is None:
            run.add("shaped_ratio", goodput / sum(own.values()), "ratio")
        for name, rate in own.items() if len(own) > 1 else ():
            carried, metric = run.value(f"path_{name}_mbps"), f"path_{name}_shaped_ratio"
            if carried is not None and run.value(metric) is None:
                run.add(metric, carried / rate, "ratio")


def _let_through(links: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """TCP payload in Mbit/s by condition and link, of conditions in which every link is steady."""
    unsteady = {link["condition"] for link in links if any(link.get(key) for key in UNSTEADY)}
    found: dict[str, dict[str, float]] = {}
    for link in links:
        payload = 1 - HEADER_BYTES / link.get("mtu", DEFAULT_MTU)
        rate = link["rate_mbps"] * payload * (1 - link["loss"])
        if link["condition"] not in unsteady and rate > 0:
            found.setdefault(link["condition"], {})[link["name"]] = rate
    return found


def add_spreads(runs: Sequence[Run]) -> None:
    """Two percentiles of the samples of all repetitions, one over the other.

    The value stands at the first repetition that counts.
    """
    for of in _alike(runs):
        for name, low, high, length in SPREADS:
            samples = [sample for run in of for sample in _means(steady_samples(run), length)]
            below, above = percentile(samples, low), percentile(samples, high)
            if below is not None and above and of[0].value(name) is None:
                of[0].add(name, below / above, "ratio")


def _means(samples: Sequence[float], length: int) -> Iterator[float]:
    """The mean of every so many in a row."""
    for first in range(0, len(samples) - length + 1, length):
        yield statistics.fmean(samples[first : first + length])


def _alike(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """The runs of one scheme at one point that count and have samples, by repetition."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.repetition):
        if run.series and not run.void:
            found.setdefault(_place(run)[:4], []).append(run)
    yield from found.values()
