"""Aggregation benefit of several links over the best one, over all repetitions.

Source: measurements of an 802.11ad link in an evolving Wi-Fi network, section 4.2 (aggregation
benefit, which takes the largest of ten runs as a link's capacity); the poster on MPTCP for 60 GHz
and 5 GHz clients (ideal behaviour: close to the sum of the two TCPs).
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import links_of

ADDITIVE = 0.95
"""A run is additive from this share of the sum of the links alone on: "close to" in numbers."""

Capacities = dict[str, float]
Place = tuple[str, str, str]


def aggregation_benefit(goodput: float, capacities: Sequence[float]) -> float:
    """-1: nothing arrives, 0: as good as the best link alone, 1: the sum of all.

    (g - Cmax) / (sum of C - Cmax) from Cmax on, (g - Cmax) / Cmax below it.

    Args:
        goodput: g, in the unit of the capacities.
        capacities: C of every link, at least two of them above 0.

    Raises:
        ValueError: there is nothing to aggregate.

    """
    best = max(capacities, default=0.0)
    others = sum(capacities) - best
    if best <= 0 or others <= 0 or min(capacities) < 0:
        raise ValueError(f"capacities of two links at least are above 0, not {list(capacities)}")
    return (goodput - best) / (others if goodput >= best else best)


def add_benefits(experiment: Experiment, runs: Sequence[Run]) -> None:
    """Compares every scheme with the links alone, where the experiment asks for it.

    A link alone that runs with the first congestion control only stands for all of them.
    """
    if not experiment.benefit:
        return
    alone = _alone(experiment, runs)
    for run in runs:
        links = {link.name for link in links_of(experiment, _condition(experiment, run))}
        if run.scheme in links or run.void:
            continue
        largest = _capacities(experiment, alone, run, max)
        mean = _capacities(experiment, alone, run, statistics.fmean)
        goodput = run.value("goodput_mbps")
        if goodput is None or largest.keys() != links or len(links) < 2:
            continue
        run.add("aggregation_benefit", aggregation_benefit(goodput, [*largest.values()]), "ratio")
        over_mean = aggregation_benefit(goodput, [*mean.values()])
        run.add("aggregation_benefit_mean", over_mean, "ratio")
        run.add("over_best_link", goodput / max(mean.values()), "ratio")
        run.add("additive_run", float(goodput >= ADDITIVE * sum(mean.values())), "ratio")
        _add_subflow_shares(run, mean)


def _add_subflow_shares(run: Run, alone: Mapping[str, float]) -> None:
    """Each path's goodput over that of its link alone, where the scheme tells it."""
    for name, capacity in alone.items():
        rate = run.value(f"path_{name}_mbps")
        if rate is not None and capacity > 0:
            run.add(f"path_{name}_ratio", rate / capacity, "ratio")


def _alone(experiment: Experiment, runs: Sequence[Run]) -> Mapping[tuple[Place, str], list[float]]:
    """Goodputs of each link alone that are not void, by place and link."""
    found: dict[tuple[Place, str], list[float]] = defaultdict(list)
    for run in runs:
        links = {link.name for link in links_of(experiment, _condition(experiment, run))}
        goodput = run.value("goodput_mbps")
        if run.scheme in links and not run.void and goodput is not None:
            found[_place(run), run.scheme].append(goodput)
    return found


def _capacities(
    experiment: Experiment,
    alone: Mapping[tuple[Place, str], list[float]],
    run: Run,
    statistic: Callable[[Sequence[float]], float],
) -> Capacities:
    condition, control, buffers = _place(run)
    found: Capacities = {}
    for link in links_of(experiment, _condition(experiment, run)):
        for chosen in (control, experiment.congestion_control[0]):
            if values := alone.get(((condition, chosen, buffers), link.name)):
                found[link.name] = statistic(values)
                break
    return found


def _place(run: Run) -> Place:
    return run.condition, run.congestion_control, run.buffers


def _condition(experiment: Experiment, run: Run) -> ConditionSetting:
    return next(c for c in experiment.conditions if c.name == run.condition)
