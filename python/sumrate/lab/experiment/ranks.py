"""Which place a scheduler has at one point, ranked as the simulated tournament ranks them."""

from collections.abc import Sequence

from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.record import Run
from sumrate.ranking import ENOUGH, place

RANKED = {"stall_rank": "longest_stall_ms", "in_order_rank": "in_order_delay_p99_ms"}
"""Metrics of ranks, with the ranked metric; the least is the best."""
TOLD = RANKED["in_order_rank"]
"""A metric that only schedulers have: no peer and no link alone."""


def add_ranks(experiment: Experiment, runs: Sequence[Run]) -> None:
    """The place of each scheduler among all of this point, where a check asks for it.

    1 is the best. Who delivers much less than the best one is counted against nobody, and comes
    behind all who do not: it waits for little because it sends little.
    """
    asked = {check.value.metric for check in experiment.checks}
    schedulers = [run for run in runs if not run.void and run.value(TOLD) is not None]
    rates = {run.scheme: run.value("goodput_mbps") or 0.0 for run in schedulers}
    for name, metric in RANKED.items():
        if name not in asked or len(schedulers) < 2:
            continue
        values = {run.scheme: run.value(metric) for run in schedulers}
        serious = [
            value
            for scheme, value in values.items()
            if value is not None and rates[scheme] >= ENOUGH * max(rates.values())
        ]
        for run in schedulers:
            own = values[run.scheme]
            if own is not None:
                counts = rates[run.scheme] >= ENOUGH * max(rates.values())
                run.add(name, place(own, serious) if counts else len(serious) + 1, "")
