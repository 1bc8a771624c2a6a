"""Durations of workloads over those of the links alone, their sum, and other transports.

Values of one repetition are compared with those of the same repetition, seed and traces.
"""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from sumrate.lab.experiment.by_method import FilesExperiment
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.links import Link
from sumrate.verdict.metrics import IN_BIN, PUBLISHED_BIN

PEERS = ("mptcp", "aggligator")
STATES = ("cold", "warm")
"""Last words of durations that are gathered apart: a page that was loaded before or not."""
BIN_PERCENT = 12
"""Width of the bins of a link's share in downloads (figure 4.6b of the thesis)."""


def add_durations(runs: Sequence[Run], links: Sequence[Link]) -> None:
    """Divides every duration (metrics NAME_ms) by those of other schemes at the same point.

    `NAME_over_best`: by the shortest of the links alone, which is the lucky one of two where they
    are alike. `NAME_over_LINK`: by a link alone. `NAME_over_sum`: by what the links would take
    together if each carried as many bytes in a second as it did alone. `NAME_over_PEER`. Each also
    as `KIND_over_...`, KIND being the name's first word, which gathers all sizes and pages.
    A link alone or a peer that was void divides nothing. Ratios that a run has from another
    condition, in which it was made, are put aside.
    """
    for run in runs:
        run.metrics = [metric for metric in run.metrics if "_over_" not in metric.name]
    medians = {run.scheme: _durations(run) for run in runs if not run.void}
    alone = [medians[link.name] for link in links if link.name in medians]
    for run in runs:
        for name, own in _durations(run).items():
            for label, divisor in _divisors(name, alone, len(links), medians, run.scheme):
                for group in groups(name):
                    run.add(f"{group}_over_{label}", own / divisor, "ratio")
            for link in links:
                theirs = medians.get(link.name, {}).get(name, 0.0)
                if link.name != run.scheme and theirs > 0:
                    for group in groups(name):
                        run.add(f"{group}_over_{link.name}", own / theirs, "ratio")


def groups(name: str) -> tuple[str, ...]:
    """Under which names a duration's ratios stand: its own and its kind's.

    A page's (`KIND_PAGE_VERSION_STATE`), which is cold or warm, stands under its kind's, its kind
    and state's, and its kind, version and state's only; a percentile's under its own only: with its
    kind's medians it would be no value of one thing.
    """
    kind, *rest = name.split("_")
    if rest and re.fullmatch(r"p\d+", rest[-1]):
        return (name,)
    if len(rest) > 2 and rest[-1] in STATES:
        return (f"{kind}_{rest[-2]}_{rest[-1]}", f"{kind}_{rest[-1]}", kind)
    return tuple(dict.fromkeys((name, kind)))


def _divisors(
    name: str,
    alone: Sequence[Mapping[str, float]],
    links: int,
    medians: Mapping[str, Mapping[str, float]],
    scheme: str,
) -> Iterator[tuple[str, float]]:
    known = [found[name] for found in alone if found.get(name, 0.0) > 0]
    if len(known) == links > 1:
        yield "best", min(known)
        yield "sum", 1 / sum(1 / duration for duration in known)
    for peer in PEERS:
        if peer != scheme and medians.get(peer, {}).get(name, 0.0) > 0:
            yield peer, medians[peer][name]


def _durations(run: Run) -> dict[str, float]:
    """Medians of the run's durations, by name without the unit."""
    found: dict[str, list[float]] = defaultdict(list)
    for metric in run.metrics:
        if metric.unit == "ms" and metric.name.endswith("_ms"):
            found[metric.name.removesuffix("_ms")].append(metric.value)
    return {name: statistics.median(values) for name, values in found.items()}


def add_splits(experiment: Experiment, runs: Sequence[Run]) -> None:
    """In which bin of a link's share most downloads of a scheme lie, over all repetitions.

    `LINK_share_mode_percent` is the lower edge of the bin, `LINK_share_mode_share` how many of the
    downloads lie in it, `LINK_share_in_72_84` how many lie in the published bin; all stand in the
    first run that counts.
    """
    if not isinstance(experiment, FilesExperiment) or not experiment.files.share_link:
        return
    metric = f"{experiment.files.share_link}_share"
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if not run.void and not run.detail.keys() & {"error", "missing"}:
            key = (run.scheme, run.condition, run.congestion_control, run.buffers)
            groups[key].append(run)
    for found in groups.values():
        shares = [m.value for run in found for m in run.metrics if m.name == metric]
        if shares:
            low, count = mode(shares)
            found[0].add(f"{metric}_mode_percent", low, "percent")
            found[0].add(f"{metric}_mode_share", count / len(shares), "ratio")
            there = sum(PUBLISHED_BIN[0] <= share < PUBLISHED_BIN[1] for share in shares)
            name = metric.removesuffix("_share") + IN_BIN
            found[0].add(name, there / len(shares), "ratio")


def mode(shares: Sequence[float]) -> tuple[int, int]:
    """Lower edge in percent of the fullest bin (the lowest of equal ones), and what is in it.

    Bins are 12 percent wide from 0 on; the last one ends at 100.
    """
    counts = Counter(min(int(share * 100 / BIN_PERCENT), 8) for share in shares)
    place, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return place * BIN_PERCENT, count
