"""Strangers beside sessions whose bytes are compared: `sumrate-lab attacks`."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.sumrate import SERVER_PORT, status
from sumrate.lab.faults.campaign import MEMBERS
from sumrate.lab.faults.hostile import Attack, attack
from sumrate.lab.faults.trial import Books, Idle, close
from sumrate.lab.faults.world import ATTACK, World, world
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.results import Progress

AT_ONCE = 200
"""Connections of an attack, all from one address: fewer than the server takes of one, so that what
is closed was ended for what it did."""
FLOWING = 1 << 20
"""Bytes that every client is delivered before an attack."""


@dataclass(frozen=True)
class Kind:
    """One attack by strangers, and what proves that it had an effect."""

    name: str
    what: str
    """One line for a table."""
    proof: Mapping[str, int] = field(default_factory=dict)
    """Counts of the attacker, as its status file names them, that are reached."""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("garbage", "random bytes", {"made": 1000, "closed": 1000}),
        Kind("drip", "a handshake a byte at a time", {"closed": AT_ONCE}),
        Kind("half-open", "half a handshake, then silence", {"closed": AT_ONCE}),
        Kind(
            "silent-reader",
            "a real ClientHello, whose answer is never read",
            {"answered": AT_ONCE, "closed": AT_ONCE},
        ),
        Kind(
            "wrong-proof",
            "whole TLS handshakes, each with a wrong proof of a real credential",
            {"answered": 500, "closed": 500},
        ),
    )
}
EXPECTED_S = 12.0
"""What one attack takes apart from the time that it is given, for the progress line."""


def options(kind: str, state: Path) -> list[str]:
    """Flags of the attacker; `state` is the server's directory, for the id of a credential."""
    found = ["--connections", str(AT_ONCE)]
    if kind == "wrong-proof":
        credential = next((state / "credentials").glob("*.json")).stem
        found += ["--credential", credential]
    return found


@dataclass
class Beside:
    """What came of one attack, and of the sessions beside it."""

    kind: Kind
    counts: Mapping[str, int]
    lasted_s: float
    books: Books
    replaced: list[str]
    """Clients whose session is another one afterwards."""
    panics: list[str]

    def harmed(self) -> list[str]:
        """Clients that lost their session, bytes or a transfer."""
        bad = {entry["client"] for entry in self.books.bad}
        return sorted({*self.replaced, *self.books.failed, *bad})

    def problems(self) -> list[str]:
        """What must not be, a line for each; empty if all is well."""
        found = [f"{self.kind.name}: harmed {name}" for name in self.harmed()]
        found += [f"{self.kind.name}: {line}" for line in self.panics]
        missing = {
            name: least for name, least in self.kind.proof.items() if self.counts[name] < least
        }
        return found + [
            f"{self.kind.name}: {self.counts[name]} {name}, {least} are expected of an attack"
            for name, least in missing.items()
        ]

    def row(self) -> dict[str, Any]:
        """The attack's entry in the report."""
        return {
            "what": self.kind.what,
            **self.counts,
            "lasted_s": round(self.lasted_s, 1),
            "transfers": self.books.outcomes.total(),
            "bytes": self.books.delivered,
            "bytes_lost": self.books.lost,
            "sessions": len(MEMBERS),
            "sessions_harmed": len(self.harmed()),
        }


def attacks(
    folder: Path, names: Sequence[str], time_s: float, seed: int, progress: Progress
) -> list[Beside]:
    """Makes each attack for `time_s` seconds, and longer where its proof takes longer.

    Raises ProcessFailedError: a process ended, or a session was delivered nothing more.
    """
    found = []
    for name in names:
        progress.show(f"attack: {name}")
        place = folder / name
        place.mkdir(parents=True)
        with world(place, MEMBERS, seed=seed, spare=(ATTACK,)) as built:
            found.append(_beside(built, KINDS[name], time_s))
        progress.left_s -= EXPECTED_S + time_s
    return found


def _beside(built: World, kind: Kind, time_s: float) -> Beside:
    idle = Idle(built)
    built.start_pumps()
    for name in built.clients:
        built.wait_delivered(name, FLOWING)
    before = {name: _sessions(built, name) for name in built.clients}
    began = time.monotonic()
    flags = options(kind.name, built.bench.folder / "server-state")
    with attack(built, kind.name, ATTACK.server_ip, SERVER_PORT, *flags) as running:
        wait_for_proof(running, kind)
        time.sleep(max(0.0, began + time_s - time.monotonic()))
        for name in built.clients:
            built.wait_delivered(name, FLOWING)
        counts = running.counts()
        lasted_s = time.monotonic() - began
    replaced = [name for name in built.clients if _sessions(built, name) != before[name]]
    books = close(built)
    idle.wait(built)
    return Beside(kind, counts, lasted_s, books, replaced, built.panics())


def wait_for_proof(running: Attack, kind: Kind) -> None:
    """Waits until an attack had its effect; one that has none in time is a problem of the report.

    Raises ProcessFailedError: the attacker ended.
    """
    with suppress(ProcessFailedError):
        for name, least in kind.proof.items():
            running.wait(name, least)
    if running.process.poll() is not None:
        raise ProcessFailedError(f"{kind.name}: the attacker ended: {running.process.tail()}")


def _sessions(built: World, name: str) -> set[str]:
    return {session["id"] for session in status(built.bench, name)["sessions"]}


def report(found: Sequence[Beside]) -> dict[str, Any]:
    """For a file and for a table."""
    return {
        "attacks": {beside.kind.name: beside.row() for beside in found},
        "connections": sum(beside.counts["made"] for beside in found),
        "bytes_lost": sum(beside.books.lost for beside in found),
        "sessions_harmed": sum(len(beside.harmed()) for beside in found),
        "problems": [line for beside in found for line in beside.problems()],
    }
