"""What two cores hold: many sessions with many streams, and handshakes per second.

`sumrate-lab load`. Server and clients share the machine, so that these are least values of what a
server alone would hold. That holds for handshakes only while no core waits for the clients: how
much of the machine was idle is part of what is reported.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.sumrate import SERVER_PORT, Sumrate, serve
from sumrate.lab.faults.bench import add_addresses, bench, wire
from sumrate.lab.faults.world import PYTHON, PYTHON_ENV
from sumrate.lab.namespaces import Host
from sumrate.lab.process import Process
from sumrate.lab.results import Progress, rounded
from sumrate.lab.stream.driver import cpu_now

WIRE = wire("load", 1, 2500.0)
CORES = os.sched_getaffinity(0)
"""Those that this process may use; each gets a program that makes handshakes."""
HANDSHAKES_AT_ONCE = 200
"""Of all programs."""
FIRST_SOURCE, SOURCES = 10, 240
"""Addresses of handshakes: those of one that sent 256 wrong proofs share a processor."""
MOST_IDLE = 0.1
"""Share of the machine: where more was idle the programs made fewer handshakes than they could."""
LEAST_ANSWERED = 0.9
"""Share of the connections that ended: where fewer were answered a limit was met, not the cores."""
WARM_UP_S = 1.0
CROWD_EXPECTED_S = 60.0
STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Handshakes:
    """What a time of handshakes came to."""

    per_s: float
    server_cpu_ms: float
    """Of one handshake."""
    idle_share: float
    """Of the cores meanwhile."""
    answered_share: float
    """Of the connections that ended."""


@dataclass(frozen=True)
class Held:
    """What a load run came to."""

    sessions: int
    streams: int
    """Of all sessions together."""
    completed_share: float
    at_once: int
    """Sessions that transferred at the same time."""
    goodput_mbps: float
    elapsed_s: float
    failures: list[str]
    handshakes: Handshakes

    def problems(self) -> list[str]:
        """What must not be, a line for each; empty if all is well."""
        found = [f"a session failed: {line}" for line in self.failures]
        if self.completed_share < 1:
            found.append(f"{self.completed_share:.0%} of {self.sessions} sessions are complete")
        if self.handshakes.per_s <= 0:
            found.append("no handshake was answered")
        if self.handshakes.idle_share > MOST_IDLE:
            found.append(
                f"{self.handshakes.idle_share:.0%} of the machine were idle while handshakes were "
                f"made, at most {MOST_IDLE:.0%} are expected: the clients made too few"
            )
        if self.handshakes.answered_share < LEAST_ANSWERED:
            found.append(
                f"{self.handshakes.answered_share:.0%} of the handshakes were answered, at least "
                f"{LEAST_ANSWERED:.0%} are expected: the server refused the rest unheard"
            )
        return found

    def report(self) -> dict[str, Any]:
        """For a file and for a table."""
        return {
            "cores": os.cpu_count(),
            "sessions": self.sessions,
            "sessions_at_once": self.at_once,
            "streams": self.streams,
            "completed_share": rounded(self.completed_share),
            "goodput_mbps": rounded(self.goodput_mbps, 0),
            "elapsed_s": rounded(self.elapsed_s, 1),
            "handshakes_per_s": rounded(self.handshakes.per_s, 0),
            "server_cpu_ms_per_handshake": rounded(self.handshakes.server_cpu_ms),
            "idle_share": rounded(self.handshakes.idle_share),
            "answered_share": rounded(self.handshakes.answered_share),
            "problems": self.problems(),
        }


def load(
    folder: Path,
    sessions: int,
    streams: int,
    stream_bytes: int,
    *,
    time_s: float,
    progress: Progress,
) -> Held:
    """Many sessions at once, each with `streams` downloads; then handshakes for `time_s` seconds.

    Raises ProcessFailedError: a process ended.
    """
    progress.show(f"load: {sessions} sessions with {streams} streams each")
    place = folder / "crowd"
    place.mkdir(parents=True)
    with bench(place, WIRE) as built:
        crowd = Sumrate().crowd(built, sessions, streams, stream_bytes)
    progress.left_s = time_s + WARM_UP_S
    progress.show("load: handshakes")
    place = folder / "handshakes"
    place.mkdir()
    handshakes = _handshakes(place, time_s)
    return Held(
        sessions=sessions,
        streams=sessions * streams,
        completed_share=crowd.details["completed_share"],
        at_once=crowd.details["transfers_at_once"],
        goodput_mbps=crowd.goodput_mbps,
        elapsed_s=crowd.details["elapsed_s"],
        failures=crowd.details["failures"],
        handshakes=handshakes,
    )


def _handshakes(folder: Path, time_s: float) -> Handshakes:
    """Whole TLS handshakes with a Hello that is refused, as many as can be had."""
    with ExitStack() as stack:
        built = stack.enter_context(bench(folder, WIRE))
        server = stack.enter_context(serve(built))
        sources = add_addresses(built, WIRE, FIRST_SOURCE, SOURCES)
        counters = [
            _knocker(stack, folder, built.client, number, sources[number :: len(CORES)])
            for number in range(len(CORES))
        ]
        time.sleep(WARM_UP_S)
        began, before, cpu = time.monotonic(), _counted(counters), cpu_now(server)
        ticks = core_ticks()
        time.sleep(time_s)
        lasted, seen = time.monotonic() - began, _counted(counters) - before
        done, ended = seen["answered"], seen["closed"] + seen["failed"]
        return Handshakes(
            per_s=done / lasted,
            server_cpu_ms=(cpu_now(server) - cpu) * 1e3 / max(1, done),
            idle_share=idle_share(ticks, core_ticks()),
            answered_share=done / max(1, ended),
        )


def _knocker(
    stack: ExitStack, folder: Path, client: Host, number: int, sources: Sequence[str]
) -> Path:
    """Starts a program that makes handshakes without end; gives its status file."""
    state = folder / f"knocker-{number}.json"
    argv = [
        *(*PYTHON, "sumrate.lab.faults.attacker", "wrong-proof", WIRE.server_ip),
        *(str(SERVER_PORT), str(state), "--connections", str(-(-HANDSHAKES_AT_ONCE // len(CORES)))),
        *("--seed", str(number)),
        *(part for source in sources for part in ("--source", source)),
    ]
    log = folder / f"knocker-{number}.log"
    process = stack.enter_context(Process(argv, log=log, host=client, env=PYTHON_ENV))
    process.wait_until(state.exists, "handshakes are made")
    return state


def _counted(states: Sequence[Path]) -> Counter[str]:
    """What all programs have counted so far."""
    found: Counter[str] = Counter()
    for state in states:
        found.update(json.loads(state.read_text(encoding="ascii")))
    return found


def core_ticks(text: str | None = None) -> tuple[int, int]:
    """Ticks so far of the cores that may be used: those that were idle, and all."""
    idle = whole = 0
    for line in (STAT.read_text(encoding="ascii") if text is None else text).splitlines():
        name, *columns = line.split()
        if name in {f"cpu{core}" for core in CORES}:
            ticks = [int(column) for column in columns[:8]]  # guests are in user time already
            idle += ticks[3] + ticks[4]  # waiting for a disk, too
            whole += sum(ticks)
    return idle, whole


def idle_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of the time between two counts in which cores were idle."""
    return (after[0] - before[0]) / max(1, after[1] - before[1])
