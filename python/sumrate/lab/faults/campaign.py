"""All faults, several times, and what they cost: `sumrate-lab faults`."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.faults.account import Account
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.clock import environment, library
from sumrate.lab.faults.fault import BYSTANDER, VICTIM, FaultNotMadeError
from sumrate.lab.faults.timeline import Timeline
from sumrate.lab.faults.trial import Books, Idle, Trial, attempt, close, newly_ended, settled
from sumrate.lab.faults.world import (
    ATTACK,
    ETHERNET,
    MEMORY_LIMIT,
    WIFI,
    WIGIG,
    Load,
    Member,
    World,
    world,
)
from sumrate.lab.results import Progress

CLOCK = "clock-stepped"
HOLD_S = (0.5, 3.0)
"""How long a fault lasts, drawn evenly."""
EXPECTED_S = 9.0
"""What one fault takes, for the progress line."""
MEMBERS = (
    Member(VICTIM, (WIFI, WIGIG), Load(4, 1 << 16, 24 << 20, "alternate")),
    Member(BYSTANDER, (ETHERNET,), Load(1, 1 << 30, (1 << 30) + 1)),
)
"""The other client has one long transfer, whose goodput is steady."""


@dataclass
class Findings:
    """What was seen over all worlds."""

    accounts: dict[str, Account] = field(default_factory=dict)
    books: Books = field(default_factory=Books)
    steady: bool = True
    """Whether the other client's load is steady, so that its goodput says something."""
    unasked: Counter[str] = field(default_factory=Counter)
    """By client: transfers that failed when no fault was made any more."""
    panics: list[str] = field(default_factory=list)
    peaks: dict[str, tuple[int, str]] = field(default_factory=dict)

    def make(
        self,
        built: World,
        timeline: Timeline,
        name: str,
        hold_s: float,
        *,
        quiet_s: float = 0.0,
        must_work: bool = True,
    ) -> Trial | None:
        """One fault, and a quiet time after it; what fails until the next counts as this one's.

        Gives None if it had no effect and need not have one. Raises FaultNotMadeError: it had none.
        """
        account = self.accounts.setdefault(name, Account())
        before = sum(built.delivered(client) for client in built.clients)
        trial = None
        try:
            trial = attempt(built, timeline, FAULTS[name], hold_s)
        except FaultNotMadeError:
            if must_work:
                raise
        account.enter_descriptors(dict(timeline.most_descriptors))
        delivered = sum(built.delivered(client) for client in built.clients) - before
        time.sleep(quiet_s)
        settled()
        books = newly_ended(built)
        self.books.add(books)
        if trial is None:
            account.enter_failures(books)
        else:
            account.enter(trial, delivered, books)
        return trial

    def leave(self, built: World, idle: Idle) -> None:
        """Notes what a world came to; raises ProcessFailedError if descriptors stay open."""
        rest = close(built)
        self.books.add(rest)
        self.unasked += rest.failed
        self.panics += built.panics()
        idle.wait(built)
        for name, peak in built.peaks().items():
            self.peaks[name] = max(peak, self.peaks.get(name, peak))

    def descriptors(self) -> dict[str, int]:
        """By process: the most descriptors that were open under any fault."""
        most: Counter[str] = Counter()
        for account in self.accounts.values():
            most |= Counter(account.descriptors)
        return dict(most)

    def problems(self) -> list[str]:
        """What must not be, a line for each; empty if all is well."""
        found = []
        if self.books.lost:
            found.append(f"{self.books.lost} bytes were lost")
        if self.books.bad:
            found.append(f"{len(self.books.bad)} transfers were wrong, cut or stuck")
        if self.panics:
            found.append(f"{len(self.panics)} lines of logs tell of a panic")
        found += [
            f"{count} transfers of {name} failed when no fault was made any more"
            for name, count in sorted(self.unasked.items())
        ]
        for name, account in self.accounts.items():
            found += account.harmed(FAULTS[name]) + account.beyond(FAULTS[name])
            found += account.slowed(FAULTS[name]) if self.steady else []
        return found + self.beyond()

    def beyond(self) -> list[str]:
        """Processes that took more memory than they may."""
        return [
            f"{name} took {peak} bytes of memory ({known_by}), at most {MEMORY_LIMIT} are expected"
            for name, (peak, known_by) in self.peaks.items()
            if peak > MEMORY_LIMIT
        ]

    def sound(self) -> bool:
        """Whether nothing was lost, nothing crashed, and nobody was harmed beyond the fault."""
        return not self.problems()

    def report(self) -> dict[str, Any]:
        """What all worlds came to; `bytes_lost` are wrong, or missing behind a clean end."""
        return {
            "transfers": dict(self.books.outcomes),
            "bytes": self.books.delivered,
            "bytes_lost": self.books.lost,
            "bad_transfers": self.books.bad,
            "panics": self.panics,
            "memory": {
                name: {"peak_bytes": peak, "known_by": known_by}
                for name, (peak, known_by) in self.peaks.items()
            },
            "most_descriptors": self.descriptors(),
            "problems": self.problems(),
        }


def campaign(
    folder: Path, names: Sequence[str], rounds: int, seed: int, progress: Progress
) -> Findings:
    """Makes every named fault `rounds` times, in an order that is drawn anew for each round.

    Raises FaultNotMadeError: a fault had no effect. Raises ProcessFailedError: a process ended,
    or something did not recover.
    """
    found = Findings(accounts={name: Account() for name in names})
    for number in range(rounds):
        generator = random.Random(seed * 1000 + number)
        order = [name for name in names if name != CLOCK]
        generator.shuffle(order)
        place = folder / f"round-{number}"
        if order:
            _round(place, order, {}, generator, found=found, progress=progress)
        if CLOCK in names and library() is not None:
            _round(
                place / "clock", [CLOCK], environment(), generator, found=found, progress=progress
            )
    return found


def _round(
    folder: Path,
    order: Sequence[str],
    env: dict[str, str],
    generator: random.Random,
    *,
    found: Findings,
    progress: Progress,
) -> None:
    """One world, and these faults in it one after the other."""
    folder.mkdir(parents=True)
    seed = generator.getrandbits(31)
    with world(folder, MEMBERS, seed=seed, spare=(ATTACK,), env=env) as built:
        idle = Idle(built)
        built.start_pumps()
        with Timeline(built) as timeline:
            for name in order:
                made = sum(len(account.trials) for account in found.accounts.values())
                progress.show(f"{name}: {made} faults made")
                began = time.monotonic()
                found.make(built, timeline, name, generator.uniform(*HOLD_S))
                progress.left_s -= min(EXPECTED_S, time.monotonic() - began)
            found.leave(built, idle)
