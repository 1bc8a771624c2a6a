"""Every real fault, once: nothing is lost, nothing crashes, nobody else is harmed.

What the faults are and what is measured is in `sumrate.lab.faults`; recovery times and goodput are
measured by `sumrate-lab faults`, not here.
"""

from pathlib import Path

import pytest

from sumrate.lab.faults import clock
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.fault import BYSTANDER, VICTIM, Fault
from sumrate.lab.faults.timeline import Timeline
from sumrate.lab.faults.trial import Idle, attempt, close
from sumrate.lab.faults.world import (
    ATTACK,
    ETHERNET,
    MEMORY_LIMIT,
    WIFI,
    WIGIG,
    Load,
    Member,
    world,
)
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

MEMBERS = (
    Member(VICTIM, (WIFI, WIGIG), Load(4, 1 << 16, 24 << 20, "alternate")),
    Member(BYSTANDER, (ETHERNET,), Load(1, 4 << 20, 8 << 20)),
)
HOLD_S = 1.5


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_loses_nothing_and_harms_nobody_else(fault: Fault) -> None:
    def scenario(scratch: Path) -> None:
        env = clock.environment() if fault.name == "clock-stepped" else {}
        with world(scratch, MEMBERS, seed=1, spare=(ATTACK,), env=env) as built:
            idle = Idle(built)
            built.start_pumps()
            with Timeline(built) as timeline:
                trial = attempt(built, timeline, fault, HOLD_S)
                books = close(built)
            print(trial, books, timeline.most_descriptors, built.peaks(), sep="\n")
            assert books.lost == 0, books.bad
            assert not books.bad
            assert books.outcomes["right"] > 0
            harmed = {name for name, count in books.failed.items() if count}
            assert {name for name in harmed if not fault.permits(name)} == set(), books
            assert not (fault.only_refuses and books.broken), books
            assert not built.panics()
            for name, process in built.daemons().items():
                assert process.poll() is None, f"{name}: {process.tail()}"
            for name, (peak, known_by) in built.peaks().items():
                assert peak < MEMORY_LIMIT, f"{name} took {peak} bytes ({known_by})"
            assert set(timeline.most_descriptors) == set(built.daemons())
            for name, most in timeline.most_descriptors.items():
                assert most <= fault.most_descriptors(name), (name, most)
            idle.wait(built)

    if fault.name == "clock-stepped" and clock.library() is None:
        assert not clock.required(), clock.MISSING
        pytest.skip(clock.MISSING)
    isolated(scenario)
