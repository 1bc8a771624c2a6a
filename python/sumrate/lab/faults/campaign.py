"""All faults, several times, and what they cost: `sumrate-lab faults`."""

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.clock import environment, library
from sumrate.lab.faults.fault import BYSTANDER, VICTIM, Fault
from sumrate.lab.faults.timeline import Timeline
from sumrate.lab.faults.trial import Books, Idle, Trial, attempt, close, newly_ended
from sumrate.lab.faults.world import ATTACK, ETHERNET, WIFI, WIGIG, Load, Member, World, world
from sumrate.lab.results import Progress, rounded

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
class Account:
    """What all trials of one fault came to."""

    trials: list[Trial] = field(default_factory=list)
    delivered: int = 0
    lost: int = 0
    failed: int = 0

    def enter(self, trial: Trial, delivered: int, books: Books) -> None:
        """Adds a trial, what was delivered meanwhile, and the transfers that ended."""
        self.trials.append(trial)
        self.delivered += delivered
        self.lost += books.lost
        self.failed += books.failed.total()

    def row(self, fault: Fault) -> dict[str, Any]:
        """The fault's entry in the report; times in milliseconds."""
        ratios = [t.others_ratio for t in self.trials]
        return {
            "what": fault.what,
            "injected": len(self.trials),
            "bytes": self.delivered,
            "bytes_lost": self.lost,
            "transfers_failed": self.failed,
            "longest_stall_ms": rounded(max(t.stall_s for t in self.trials) * 1e3, 0),
            "longest_recovery_ms": rounded(max(t.recovery_s for t in self.trials) * 1e3, 0),
            "others_ratio": None
            if fault.stops_everybody
            else {"median": rounded(statistics.median(ratios)), "least": rounded(min(ratios))},
            "trials": [asdict(t) for t in self.trials],
        }


@dataclass
class Findings:
    """What was seen over all worlds."""

    accounts: dict[str, Account] = field(default_factory=dict)
    books: Books = field(default_factory=Books)
    panics: list[str] = field(default_factory=list)
    peaks: dict[str, tuple[int, str]] = field(default_factory=dict)
    descriptors: dict[str, int] = field(default_factory=dict)

    def leave(self, built: World, timeline: Timeline, idle: Idle) -> None:
        """Notes what a world came to; raises ProcessFailedError if descriptors stay open."""
        self.books.add(close(built))
        self.panics += built.panics()
        idle.wait(built)
        for name, peak in built.peaks().items():
            self.peaks[name] = max(peak, self.peaks.get(name, peak))
        for name, most in timeline.most_descriptors.items():
            self.descriptors[name] = max(most, self.descriptors.get(name, 0))

    def sound(self) -> bool:
        """Whether nothing was lost and nothing crashed."""
        return not (self.books.lost or self.books.bad or self.panics)

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
            "most_descriptors": self.descriptors,
        }


def campaign(
    folder: Path, names: Sequence[str], rounds: int, seed: int, progress: Progress
) -> Findings:
    """Makes every named fault `rounds` times, in an order that is drawn anew for each round.

    Raises:
        FaultNotMadeError: a fault had no effect.
        ProcessFailedError: a process ended, or something did not recover.

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
                before = sum(built.delivered(client) for client in built.clients)
                trial = attempt(built, timeline, FAULTS[name], generator.uniform(*HOLD_S))
                books = newly_ended(built)
                found.books.add(books)
                delivered = sum(built.delivered(client) for client in built.clients) - before
                found.accounts[name].enter(trial, delivered, books)
                timeline.forget()
                progress.left_s -= min(EXPECTED_S, time.monotonic() - began)
            found.leave(built, timeline, idle)
