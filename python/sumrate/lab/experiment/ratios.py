"""Ratios of samples: start-up, percentiles over those of peers, goodput over the ideal."""

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from sumrate.lab.experiment.model import Change, ConditionSetting, Experiment
from sumrate.lab.experiment.record import STEP_S, Run, percentile, steady_samples, steady_series
from sumrate.lab.experiment.topology import dark_share, links_of, seconds_of
from sumrate.lab.links import Link
from sumrate.verdict.metrics import POOLED, POOLED_ABOVE

PEERS = ("mptcp", "aggligator")
"""Schemes that the distribution of samples is compared with."""
STARTED = 0.9
"""Of what the links carry together: from then on a transport has started."""
START_SAMPLES = 5
"""Samples in a row whose median counts: a burst at the start fills one or two of them."""


def add_start_up(runs: Sequence[Run], links: Sequence[Link]) -> None:
    """How long it takes until nine tenths of what the links carry together arrive.

    Until the first of those samples that have them within five of 100 ms in a row whose median has
    them, after the last that has less; or to the end of a run in which there are no such five. A
    link carries the median of its steady samples, alone, in the same repetition; of a link alone
    its own counts.
    """
    names = {link.name for link in links}
    steady = {
        run.scheme: percentile(steady_samples(run), 0.5)
        for run in runs
        if run.scheme in names and not run.void
    }
    for run in runs:
        wanted = [steady.get(name) for name in ({run.scheme} & names or names)]
        if run.series and all(wanted):
            whole = sum(rate or 0.0 for rate in wanted)
            run.add("start_up_s", _reached_s(run.series, STARTED * whole), "s")


def _reached_s(series: Sequence[tuple[float, float]], rate: float) -> float:
    rates = [value for _, value in series]
    for index in range(len(rates) - START_SAMPLES + 1):
        window = rates[index : index + START_SAMPLES]
        if median(window) >= rate:
            reached = [value >= rate for value in window]
            less = [place for place, has in enumerate(reached) if not has]
            first = less[-1] + 1 if less and reached[-1] else reached.index(True)
            return round((index + first) * STEP_S, 3)
    return round(len(rates) * STEP_S, 3)


def add_percentiles(runs: Sequence[Run], links: Sequence[Link]) -> None:
    """The worst percentile of 100 ms samples over that of each peer in the same repetition."""
    samples = {run.scheme: steady_samples(run) for run in runs if run.series and not run.void}
    without = {*PEERS, *(link.name for link in links)}
    for run in runs:
        for peer in PEERS:
            own, other = samples.get(run.scheme), samples.get(peer)
            if own and other and run.scheme not in without:
                run.add(f"percentiles_over_{peer}", _worst_over(own, other), "ratio")


def add_pooled_percentiles(experiment: Experiment, runs: Sequence[Run]) -> None:
    """The worst percentile of the 100 ms samples of all repetitions over that of each peer.

    Beside it at how many of the nineteen percentiles the scheme has more than the peer.

    Of the repetitions that count on both sides, as seeds and so traces differ between them. The
    value stands at the first of them.
    """
    alone = {link.name for link in experiment.links}
    by_scheme: dict[tuple[tuple[str, str, str], str], dict[int, Run]] = {}
    for run in runs:
        if run.series and not run.void and run.scheme not in alone:
            place = (run.condition, run.congestion_control, run.buffers)
            by_scheme.setdefault((place, run.scheme), {})[run.repetition] = run
    for (place, scheme), own in by_scheme.items():
        for peer in PEERS:
            other = by_scheme.get((place, peer), {})
            both = sorted(own.keys() & other.keys())
            if scheme not in PEERS and both:
                mine, theirs = (
                    [s for n in both for s in steady_samples(of[n])] for of in (own, other)
                )
                first = own[both[0]]
                if first.value(f"{POOLED}{peer}") is None:
                    first.add(f"{POOLED}{peer}", _worst_over(mine, theirs), "ratio")
                if first.value(f"{POOLED_ABOVE}{peer}") is None:
                    above = sum(ratio > 1.0 for ratio in _over_percentiles(mine, theirs))
                    first.add(f"{POOLED_ABOVE}{peer}", above, "of 19")


def _over_percentiles(own: Sequence[float], other: Sequence[float]) -> Iterator[float]:
    """One over the other at the 5th, 10th, ... 95th percentile, where there is something."""
    for percent in range(5, 100, 5):
        mine, theirs = (percentile(s, percent / 100) or 0.0 for s in (own, other))
        if theirs > 0:
            yield mine / theirs


def _worst_over(own: Sequence[float], other: Sequence[float]) -> float | None:
    return min(_over_percentiles(own, other), default=None)


def add_ideals(experiment: Experiment, runs: Sequence[Run]) -> None:
    """Where links go dark: goodput over what the links carry alone in the baseline condition.

    Where 100 ms samples are there, all of it is of the steady ones: the baseline is shorter than
    the runs, and slow start would weigh more in it.
    """
    if not experiment.baseline:
        return
    conditions = {c.name: c for c in experiment.conditions}
    rates = {
        (r.scheme, r.congestion_control, r.buffers, r.repetition): _counted(experiment, r)[0]
        for r in runs
        if r.condition == experiment.baseline and not r.void
    }
    for run in runs:
        condition = conditions[run.condition]
        key = (run.congestion_control, run.buffers, run.repetition)
        links = links_of(experiment, condition)
        if run.scheme in {link.name for link in links}:
            continue
        known = [rates.get((link.name, *key)) for link in links]
        if not any(rate is None for rate in known):
            alone = [rate or 0.0 for rate in known]
            _add_ideal(experiment, condition, run, links, alone)


def _counted(experiment: Experiment, run: Run) -> tuple[float | None, tuple[float, float]]:
    """A run's rate in Mbit/s, and from when to when it is one."""
    steady = steady_series(run) if experiment.method == "stream" else []
    if not steady:
        condition = next(c for c in experiment.conditions if c.name == run.condition)
        return run.value("goodput_mbps"), (0.0, seconds_of(experiment, condition))
    edges = (steady[0][0] - STEP_S / 2, steady[-1][0] + STEP_S / 2)
    return fmean(value for _, value in steady), edges


def _add_ideal(
    experiment: Experiment,
    condition: ConditionSetting,
    run: Run,
    links: Sequence[Link],
    alone: Sequence[float],
) -> None:
    goodput, (start_s, end_s) = _counted(experiment, run)
    ideal = healthy = 0.0
    for link, rate in zip(links, alone, strict=True):
        unplugged = condition.links.get(link.name, Change()).unplugged
        dark = dark_share(link, unplugged, start_s, end_s)
        ideal += rate * (1 - dark)
        healthy += 0.0 if dark else rate
    if ideal <= 0 or goodput is None:
        return
    run.add("ideal_ratio", goodput / ideal, "ratio")
    for phase in [m for m in run.metrics if m.name.startswith("phase_") and m.unit == "Mbit/s"]:
        name = phase.name.replace("_mbps", "_sum_ratio")
        run.add(name, phase.value / sum(alone), "ratio")
    for link, rate in zip(links, alone, strict=True):
        others = sum(alone) - rate
        for metric in [m for m in run.metrics if m.name == f"blackout_goodput_{link.name}_mbps"]:
            if others > 0:
                run.add(f"blackout_ratio_{link.name}", metric.value / others, "ratio")
    if 0 < healthy < ideal:
        for value in [m.value for m in run.metrics if m.name == "blackout_goodput_mbps"]:
            run.add("blackout_ratio", value / healthy, "ratio")
        worst = run.value("sample_p5_mbps")
        run.add("p5_ratio", worst / healthy if worst is not None else None, "ratio")
