"""One fault, made while everybody is busy, and what came of it."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sumrate.lab.faults.confinement import descriptors
from sumrate.lab.faults.fault import BYSTANDER, FEW_DESCRIPTORS, VICTIM, Fault
from sumrate.lab.faults.timeline import Timeline
from sumrate.lab.faults.world import PATIENCE_S, World
from sumrate.lab.process import Process

BEFORE_S = 1.5
"""How long goodput is measured before a fault; a shorter fault is measured as long, too."""
FLOWING = 1 << 20
"""Bytes that everybody is delivered before a fault is made, and after it."""
LEFT_OPEN = 4
"""Descriptors more than before that may be open in the end: the runtime opens some for good."""


@dataclass(frozen=True)
class Trial:
    """What one fault did."""

    fault: str
    counts: Mapping[str, int]
    lasted_s: float
    stall_s: float
    """Longest time in which the victim was delivered nothing, from the fault until recovery."""
    recovery_s: float
    """From the end of the fault until the victim is delivered bytes and all its paths are
    active."""
    others_ratio: float
    """Goodput of the other client while the fault lasted, over that before."""


def attempt(world: World, timeline: Timeline, fault: Fault, hold_s: float) -> Trial:
    """Makes one fault and waits until everything is well again.

    What was delivered before, and how many descriptors were open, is forgotten: `timeline` then is
    of this fault alone.

    Raises FaultNotMadeError: it had no effect. Raises ProcessFailedError: a process ended, or
    something did not recover.
    """
    for name in world.clients:
        world.wait_whole(name)
        world.wait_delivered(name, FLOWING)
    _wait_few_descriptors(world)
    timeline.forget()
    began = time.monotonic()
    time.sleep(BEFORE_S)
    made = time.monotonic()
    counts = fault.inject(world, hold_s)
    ended = time.monotonic()
    for name in (VICTIM, BYSTANDER):
        world.clients[name].daemon.wait_until(
            partial(_delivered_after, timeline, name, ended),
            f"{name} is delivered something after {fault.name}",
            PATIENCE_S,
        )
        world.wait_whole(name)
    recovered = time.monotonic()
    until = max(ended, made + BEFORE_S)
    time.sleep(max(0.0, until - recovered))
    before = timeline.goodput_mbps(BYSTANDER, began, made)
    meanwhile = timeline.goodput_mbps(BYSTANDER, made, until)
    return Trial(
        fault.name,
        counts,
        ended - made,
        timeline.longest_stall(VICTIM, made, recovered),
        recovered - ended,
        meanwhile / before if before else 0.0,
    )


def _delivered_after(timeline: Timeline, name: str, at: float) -> bool:
    return timeline.first_after(name, at) is not None


def _wait_few_descriptors(world: World) -> None:
    """Waits until each process has closed what an earlier fault had it open."""
    for name, process in world.daemons().items():
        process.wait_until(
            partial(_at_most, process, FEW_DESCRIPTORS),
            f"{name} has at most {FEW_DESCRIPTORS} descriptors open without a fault",
            PATIENCE_S,
        )


def _at_most(process: Process, most: int) -> bool:
    return descriptors(process) <= most


@dataclass
class Books:
    """What became of all transfers of a world."""

    outcomes: Counter[str] = field(default_factory=Counter)
    delivered: int = 0
    """Bytes of transfers that were right, and of those that failed as far as they were checked."""
    lost: int = 0
    """Bytes that were wrong, or missing behind a clean end."""
    bad: list[dict[str, Any]] = field(default_factory=list)
    """The transfers that must not be: wrong, cut or stuck."""
    failed: Counter[str] = field(default_factory=Counter)
    """By client: transfers that failed, and whose program was told."""
    broken: Counter[str] = field(default_factory=Counter)
    """Those of them that had begun."""

    def add(self, other: "Books") -> None:
        """Adds what became of another world's transfers."""
        self.outcomes += other.outcomes
        self.failed += other.failed
        self.broken += other.broken
        self.delivered += other.delivered
        self.lost += other.lost
        self.bad += other.bad

    def enter(self, name: str, results: list[dict[str, Any]]) -> None:
        """Adds a client's transfers."""
        for result in results:
            self.outcomes[result["outcome"]] += 1
            self.delivered += result["done"]
            self.lost += result["lost"]
            if result["outcome"] in ("wrong", "cut", "stuck"):
                self.bad.append({"client": name, **result})
            if result["outcome"] in ("refused", "broken"):
                self.failed[name] += 1
            if result["outcome"] == "broken":
                self.broken[name] += 1


class Idle:
    """Descriptors of the processes while nobody does anything."""

    def __init__(self, world: World) -> None:
        """Counts them now, before the programs begin."""
        self.before = {name: descriptors(p) for name, p in world.daemons().items()}

    def wait(self, world: World) -> None:
        """Waits until each process has no more open than before.

        Raises ProcessFailedError: some stay open; the message says how many there were.
        """
        for name, process in world.daemons().items():
            most = self.before[name] + LEFT_OPEN
            process.wait_until(
                partial(_at_most, process, most),
                f"{name} has at most {most} descriptors open",
                PATIENCE_S,
            )


SETTLE_S = 0.2
"""Time in which a program that was told of a failure has written it down."""


def settled() -> None:
    """Waits until what failed is written down, so that it counts for the fault that was made."""
    time.sleep(SETTLE_S)


LONG = 256 << 20
"""A transfer of so many bytes is not waited for."""


def newly_ended(world: World) -> Books:
    """What became of the transfers that ended since this was asked last."""
    books = Books()
    for name, client in world.clients.items():
        if client.pump is not None:
            books.enter(name, client.pump.results())
    return books


def close(world: World) -> Books:
    """Has all programs finish what they began, and gives what became of what was not told yet.

    Those whose transfers are long give them up; what they were delivered is checked, too.
    """
    for client in world.clients.values():
        if client.pump is not None:
            if client.member.load.largest > LONG:
                client.pump.stop()
            else:
                client.pump.finish()
    return newly_ended(world)
