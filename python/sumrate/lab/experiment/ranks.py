"""Which place a scheduler has at one point, ranked as the simulated tournament ranks them."""

from collections.abc import Sequence

from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.record import Run

RANKED = {"stall_rank": "longest_stall_ms", "in_order_rank": "in_order_delay_p99_ms"}
"""What is ranked by what; the least is the best."""
TOLD = RANKED["in_order_rank"]
"""Who tells this is a scheduler: a peer or a link alone does not."""
TIE_MS = 1.0
TIE = 0.1
"""Values within this share of the own one, or this close, are a tie."""
SERIOUS = 0.9
"""Of the best goodput: who delivers less is counted against nobody, for it waits for little."""


def add_ranks(experiment: Experiment, runs: Sequence[Run]) -> None:
    """The place of each scheduler among all of this point, where a check asks for it.

    1 is the best. Others count as better only beyond a tie. The same rules are in
    sumrate.report.tournament_table (`rank`, `serious`).
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
            if value is not None and rates[scheme] >= SERIOUS * max(rates.values())
        ]
        for run in schedulers:
            own = values[run.scheme]
            if own is not None:
                better = own - max(TIE_MS, TIE * own)
                run.add(name, 1 + sum(value < better for value in serious), "")
