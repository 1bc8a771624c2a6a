"""A scheduler's place at a point is the one that the simulated tournament would give it."""

import pytest

from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.ranks import RANKED, add_ranks
from sumrate.lab.experiment.record import Run
from sumrate.report.tournament.table import Condition, ranked


def ran(scheme: str, goodput: float, stall: float, delay: float) -> Run:
    run = Run(scheme, "even", "cubic", "default", 0, 1)
    run.add("goodput_mbps", goodput, "Mbit/s")
    run.add("longest_stall_ms", stall, "ms")
    run.add("in_order_delay_p99_ms", delay, "ms")
    return run


VALUES = {
    "just-in-time": (58.0, 10.0, 2.0),
    "minrtt": (59.0, 8.9, 40.0),
    "blest": (57.0, 9.2, 2.9),
    "round-robin": (60.0, 200.0, 0.9),
    "ecf": (30.0, 1.0, 0.1),
}


def test_ranks_are_those_of_the_simulated_tournament() -> None:
    experiment = load("tournament-sample")
    runs = [ran(scheme, *values) for scheme, values in VALUES.items()]
    link = Run("fast", "even", "cubic", "default", 0, 1)
    link.add("goodput_mbps", 100.0, "Mbit/s")
    add_ranks(experiment, [link, *runs])
    goodput, stall, delay = (
        {name: values[place] for name, values in VALUES.items()} for place in range(3)
    )
    draws = {name: (value,) for name, value in goodput.items()}
    condition = Condition("rate-rtt", "even", (0.0,), goodput, goodput, stall, delay, draws=draws)
    # Who does not count is neither best nor second in the tournament's standings; here it is last.
    for run in runs[:4]:
        for metric, values in (("stall_rank", stall), ("in_order_rank", delay)):
            assert run.value(metric) == ranked(condition, values, run.scheme), (run.scheme, metric)
    assert [run.value("stall_rank") for run in runs] == [2, 1, 1, 4, 5]
    assert [run.value("in_order_rank") for run in runs] == [2, 4, 2, 1, 5]
    assert not {metric.name for metric in link.metrics} & RANKED.keys()


def test_who_was_void_ranks_nowhere_and_against_nobody() -> None:
    runs = [ran(scheme, *values) for scheme, values in VALUES.items()]
    runs[3].void = True
    add_ranks(load("tournament-sample"), runs)
    assert runs[3].value("in_order_rank") is None
    assert runs[0].value("in_order_rank") == 1


@pytest.mark.parametrize("name", ["five-conditions", "rfc6356"])
def test_where_no_check_asks_for_ranks_there_are_none(name: str) -> None:
    runs = [ran(scheme, *values) for scheme, values in VALUES.items()]
    add_ranks(load(name), runs)
    assert runs[0].value("stall_rank") is None
