"""What two cores hold: many sessions with many streams, and handshakes per second.

`sumrate-lab load`. Server and clients share the machine, so that these are least values of what a
server alone would hold.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.sumrate import SERVER_PORT, Sumrate, serve
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.faults.world import PYTHON, PYTHON_ENV
from sumrate.lab.namespaces import Host
from sumrate.lab.process import Process
from sumrate.lab.results import Progress, rounded

WIRE = wire("load", 1, 2500.0)
ATTACKERS = 2
"""Programs that make handshakes: one for each core."""
HANDSHAKES_AT_ONCE = 100
WARM_UP_S = 1.0
CROWD_EXPECTED_S = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


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
    handshakes_per_s: float
    server_cpu_ms: float
    """Of one handshake."""

    def problems(self) -> list[str]:
        """What must not be, a line for each; empty if all is well."""
        found = [f"a session failed: {line}" for line in self.failures]
        if self.completed_share < 1:
            found.append(f"{self.completed_share:.0%} of {self.sessions} sessions are complete")
        if self.handshakes_per_s <= 0:
            found.append("no handshake was answered")
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
            "handshakes_per_s": rounded(self.handshakes_per_s, 0),
            "server_cpu_ms_per_handshake": rounded(self.server_cpu_ms),
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

    Raises:
        ProcessFailedError: a process ended.

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
    rate, cpu_ms = _handshakes(place, time_s)
    return Held(
        sessions=sessions,
        streams=sessions * streams,
        completed_share=crowd.details["completed_share"],
        at_once=crowd.details["transfers_at_once"],
        goodput_mbps=crowd.goodput_mbps,
        elapsed_s=crowd.details["elapsed_s"],
        failures=crowd.details["failures"],
        handshakes_per_s=rate,
        server_cpu_ms=cpu_ms,
    )


def _handshakes(folder: Path, time_s: float) -> tuple[float, float]:
    """Whole TLS handshakes with a Hello that is refused, a second; the server's CPU ms of each."""
    with ExitStack() as stack:
        built = stack.enter_context(bench(folder, WIRE))
        server = stack.enter_context(serve(built))
        counters = [_knocker(stack, folder, built.client, number) for number in range(ATTACKERS)]
        time.sleep(WARM_UP_S)
        began, before, cpu = time.monotonic(), _answered(counters), _cpu_s(server)
        time.sleep(time_s)
        lasted, done = time.monotonic() - began, _answered(counters) - before
        return done / lasted, (_cpu_s(server) - cpu) * 1e3 / max(1, done)


def _knocker(stack: ExitStack, folder: Path, client: Host, number: int) -> Path:
    """Starts a program that makes handshakes without end; gives its status file."""
    state = folder / f"knocker-{number}.json"
    argv = [
        *(*PYTHON, "sumrate.lab.faults.attacker", "wrong-proof", WIRE.server_ip),
        *(str(SERVER_PORT), str(state), "--connections", str(HANDSHAKES_AT_ONCE)),
        *("--seed", str(number)),
    ]
    log = folder / f"knocker-{number}.log"
    process = stack.enter_context(Process(argv, log=log, host=client, env=PYTHON_ENV))
    process.wait_until(state.exists, "handshakes are made")
    return state


def _answered(states: Sequence[Path]) -> int:
    """Handshakes whose Hello was answered so far."""
    return sum(int(json.loads(state.read_text(encoding="ascii"))["answered"]) for state in states)


def _cpu_s(process: Process) -> float:
    """CPU time that a running process took so far."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS
