"""A machine that its host stops is waited for, and not for ever."""

from collections.abc import Iterator

import pytest

from sumrate.lab.host_pauses import Patience, late_wake_ups


class Clock:
    """A clock that only sleeping moves on."""

    def __init__(self, stops: dict[int, float]) -> None:
        self.now = 0.0
        self.naps = 0
        self.stops = stops
        """For how long the machine stands still in which nap."""

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.stops.get(self.naps, 0.0)
        self.naps += 1


def test_wake_ups_within_a_pause_are_late() -> None:
    quiet = Clock({})
    assert late_wake_ups(1.0, quiet, quiet.sleep) == 0.0
    # Due every half millisecond: of 10 ms the wake-ups of the first 8 are late by more than 2.
    stopped = Clock({100: 0.010})
    share = late_wake_ups(1.0, stopped, stopped.sleep)
    assert share == pytest.approx(16 / 2000, abs=1 / 2000)


def test_a_machine_that_keeps_time_is_not_waited_for() -> None:
    told: list[str] = []
    assert Patience(60.0, 600.0).wait(lambda: told.append("waits"), look=lambda: 0.0) == 0.0
    assert not told


def test_without_patience_it_is_not_looked_at() -> None:
    def look() -> float:
        raise AssertionError("it was looked at")

    assert Patience(0.0, 600.0).wait(lambda: None, look=look) == 0.0


def test_it_is_waited_for_until_it_keeps_time_and_said_once() -> None:
    clock = Clock({})
    shares: Iterator[float] = iter([0.02, 0.02, 0.0])

    def look() -> float:
        clock.sleep(1.5)
        return next(shares)

    told: list[str] = []
    waited = Patience(60.0, 600.0).wait(lambda: told.append("waits"), look=look, clock=clock)
    assert waited == pytest.approx(3.0)
    assert told == ["waits"]


def test_patience_ends() -> None:
    clock = Clock({})

    def look() -> float:
        clock.sleep(1.5)
        return 1.0

    waited = Patience(6.0, 600.0).wait(lambda: None, look=look, clock=clock)
    assert waited == pytest.approx(6.0)


def test_all_runs_together_wait_for_so_long() -> None:
    clock = Clock({})

    def look() -> float:
        clock.sleep(1.5)
        return 1.0

    patience = Patience(6.0, 9.0)
    waits = [patience.wait(lambda: None, look=look, clock=clock) for _ in range(4)]
    assert waits == pytest.approx([6.0, 3.0, 0.0, 0.0])
