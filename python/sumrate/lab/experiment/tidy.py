"""Adds the values that follow from the measured ones, so that judging needs one tidy table."""

from collections.abc import Mapping, Sequence
from typing import Any

from sumrate.lab.experiment.derived import (
    SPREADS,
    add_shaped,
    add_spreads,
    add_stalled_bytes,
    add_unimpaired,
)
from sumrate.lab.experiment.metrics import POOLED_ABOVE
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.ratios import add_baseline_bounds, add_pooled_percentiles
from sumrate.lab.experiment.record import Run


def add_derived(
    experiment: Experiment, links: Sequence[Mapping[str, Any]], runs: list[Run]
) -> None:
    """Adds every derived metric that the runs do not have yet.

    Args:
        experiment: of which the runs are.
        links: the links of each condition as they were during the runs.
        runs: with their 100 ms samples, from which pooled percentiles are computed.

    """
    add_baseline_bounds(experiment, runs)
    add_unimpaired(experiment, runs)
    add_shaped(links, runs)
    add_stalled_bytes(runs)
    pooled = (*(name for name, *_ in SPREADS), POOLED_ABOVE)
    if any(check.value.metric.startswith(pooled) for check in experiment.checks):
        add_pooled_percentiles(experiment, runs)
        add_spreads(runs)
