"""Refuses checks that ask for a metric that nothing measures."""

import difflib
from collections.abc import Iterator

from sumrate.lab.experiment.by_method import StreamCondition
from sumrate.lab.experiment.model import Experiment
from sumrate.verdict.metrics import names

CLOSED = ("bench", "stream", "crowd")
"""Methods whose metrics are all in the registry; those of others depend on what they load."""


def problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """The name of each metric that nothing measures, and a sentence about it."""
    if experiment.method not in CLOSED:
        return
    streams = [c for c in experiment.conditions if isinstance(c, StreamCondition)]
    phases = max((len(condition.phases) for condition in streams), default=0)
    known = set(names((link.name for link in experiment.links), phases))
    for check in experiment.checks:
        for selection in (check.value, check.over):
            if selection is not None and selection.metric not in known:
                near = difflib.get_close_matches(selection.metric, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield selection.metric, f"nothing measures `{selection.metric}`{hint}"
