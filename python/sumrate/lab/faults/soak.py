"""Random traffic under random faults for a long time: `sumrate-lab soak`."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.faults.bench import wire
from sumrate.lab.faults.campaign import CLOCK, Findings
from sumrate.lab.faults.catalogue import FAULTS
from sumrate.lab.faults.fault import BYSTANDER, VICTIM
from sumrate.lab.faults.growth import Growth
from sumrate.lab.faults.timeline import Timeline
from sumrate.lab.faults.trial import Idle
from sumrate.lab.faults.world import ATTACK, ETHERNET, WIFI, WIGIG, Load, Member, World, world
from sumrate.lab.links import Link
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.results import Progress

LTE: Link = wire("lte", 5, 30.0)
MEMBERS = (
    Member(VICTIM, (WIFI, WIGIG), Load(4, 1 << 10, 64 << 20, "both", pause=True)),
    Member(BYSTANDER, (ETHERNET,), Load(3, 1 << 10, 16 << 20, "both", pause=True)),
    Member("short-flows", (LTE,), Load(4, 200, 1 << 17, "both", pause=True)),
)
"""Long and short transfers, up and down, over two radios, one, and a slow one."""
HOLD_S = (0.2, 4.0)
QUIET_S = (0.0, 3.0)
"""Between two faults."""
WARM_UP = 0.25
"""Share of the time in which the server may be killed; growth is measured in the rest, in which
every process lives."""
JUDGED_S = 900.0
"""In a shorter run buffers still grow to what the traffic needs, which looks like a leak, and not
every fault has its turn."""
KEPT_EVERY_S = 600.0
KILLED = "server-killed"
DRAWN = tuple(name for name in FAULTS if name != CLOCK)
"""All but the clock's, which needs processes that were started for it."""


@dataclass
class Soak:
    """What a soak came to."""

    seed: int
    time_s: float
    without_effect: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=lambda: Findings(steady=False))
    slopes: dict[str, dict[str, Any]] = field(default_factory=dict)
    lasted_s: float = 0.0
    broken_off: str = ""
    """What ended it before its time."""

    def growing(self) -> list[str]:
        """Processes and quantities that grow; none where the run was too short to say."""
        if self.time_s < JUDGED_S:
            return []
        return [
            f"{name}: {quantity}"
            for name, quantities in self.slopes.items()
            for quantity, seen in quantities.items()
            if seen["grows"]
        ]

    def never_made(self) -> list[str]:
        """Faults that never had an effect; none where the run was too short for all."""
        if self.time_s < JUDGED_S or self.broken_off:
            return []
        accounts = self.findings.accounts
        return [name for name in DRAWN if name not in accounts or not accounts[name].trials]

    def problems(self) -> list[str]:
        """What must not be, a line for each; empty if all is well."""
        tried = self.without_effect
        return [
            *([f"broken off {self.broken_off}"] if self.broken_off else []),
            *self.findings.problems(),
            *(f"{grown} grows" for grown in self.growing()),
            *(f"{n} was never made: {tried[n]} attempts had no effect" for n in self.never_made()),
        ]

    def sound(self) -> bool:
        """Whether nothing was lost, crashed, was harmed or grows, and each fault was made."""
        return not self.problems()

    def report(self) -> dict[str, Any]:
        """For a file and for a table."""
        return {
            "seed": self.seed,
            "lasted_s": round(self.lasted_s),
            "faults": {
                # Everybody's traffic is random: how much of it there was says nothing.
                name: {**account.row(FAULTS[name]), "others_ratio": None}
                for name, account in sorted(self.findings.accounts.items())
                if account.trials
            },
            "without_effect": dict(self.without_effect),
            **self.findings.report(),
            "growth": self.slopes,
            "growing": self.growing(),
            "problems": self.problems(),
        }


def soak(
    folder: Path, time_s: float, seed: int, progress: Progress, keep: Callable[[Soak], None]
) -> Soak:
    """Runs for about `time_s` seconds, or until something ends that must not, or does not recover.

    Of a run that is broken off, what was found until then is told. `keep` is told it every ten
    minutes too: hours are not lost with this process.

    Raises ProcessFailedError: it could not start.
    """
    kept = Soak(seed, time_s)
    folder.mkdir(parents=True)
    with world(folder, MEMBERS, seed=seed, spare=(ATTACK,)) as built:
        idle = Idle(built)
        built.start_pumps()
        began = time.monotonic()
        processes = built.daemons()
        with Timeline(built) as timeline, Growth(processes) as growth:
            try:
                told = began
                for warm in _mixed(kept, built, timeline, progress):
                    kept.lasted_s = time.monotonic() - began
                    if time.monotonic() - told > KEPT_EVERY_S:
                        told = time.monotonic()
                        keep(kept)
                    if warm:
                        growth.begin()
                    processes.update(built.daemons())
                kept.slopes = growth.slopes()
                kept.findings.leave(built, idle)
            except ProcessFailedError as error:
                kept.broken_off = f"after {time.monotonic() - began:.0f} s: {error}"
                kept.findings.panics = built.panics()
        kept.lasted_s = time.monotonic() - began
    return kept


def _mixed(kept: Soak, built: World, timeline: Timeline, progress: Progress) -> Iterator[bool]:
    """Makes fault after fault until the time is over; says after which one everything is warm."""
    generator = random.Random(kept.seed)
    began = time.monotonic()
    warm = False
    names = dealt(generator, lambda: warm)
    while (elapsed := time.monotonic() - began) < kept.time_s:
        progress.left_s = kept.time_s - elapsed
        name = next(names)
        made = sum(len(account.trials) for account in kept.findings.accounts.values())
        gigabytes = sum(built.delivered(client) for client in built.clients) / 1e9
        progress.show(f"soak, fault {made + 1}, {name}: {gigabytes:.1f} GB transferred")
        try:
            _one(kept, built, timeline, name, generator)
        except ProcessFailedError as error:
            raise ProcessFailedError(f"in {name}: {error}") from error
        newly = not warm and elapsed > WARM_UP * kept.time_s
        warm = warm or newly
        yield newly


def dealt(generator: random.Random, warm: Callable[[], bool]) -> Iterator[str]:
    """Faults in random order, each once before any comes again; the server dies only at first.

    Args:
        generator: what draws.
        warm: whether the server may not be killed any more.

    """
    while True:
        for name in generator.sample(DRAWN, len(DRAWN)):
            if not (name == KILLED and warm()):
                yield name


def _one(
    kept: Soak,
    built: World,
    timeline: Timeline,
    name: str,
    generator: random.Random,
) -> None:
    """One fault, and a quiet time after it."""
    hold_s, quiet_s = generator.uniform(*HOLD_S), generator.uniform(*QUIET_S)
    trial = kept.findings.make(built, timeline, name, hold_s, quiet_s=quiet_s, must_work=False)
    if trial is None:
        kept.without_effect[name] += 1
