"""Hostile clients beside a transfer: it completes, the server stays small and goes on serving."""

import json
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import SERVER_PORT
from sumrate.lab.faults import attacks, hostile
from sumrate.lab.faults.attacks import AT_ONCE, KINDS, options
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.faults.confinement import peak_memory
from sumrate.lab.faults.world import PATIENCE_S, PYTHON, PYTHON_ENV
from sumrate.lab.process import Process
from sumrate.lab.results import Progress
from tests.system.scenario import isolated, needs_sumrate, transfer

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
SIZE = 96 << 20
MEMORY_LIMIT = 512 << 20
"""Bytes; the defaults allow one session and 1024 pending handshakes far less than this."""
REFUSED = 2 * AT_ONCE
"""Connections: more than the proof of an attack that waits for the server to end some."""


def counted(status: Path) -> dict[str, int]:
    """What an attacker has counted so far."""
    found: dict[str, int] = json.loads(status.read_text(encoding="ascii"))
    return found


def missing(kind: str, status: Path) -> dict[str, int]:
    """Counts of an attacker that do not prove yet that its attack has an effect."""
    counts = counted(status)
    return {name: counts[name] for name, least in KINDS[kind].proof.items() if counts[name] < least}


@pytest.mark.parametrize("kind", KINDS)
def test_transfer_beside_hostile_clients(kind: str) -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built, transfer(built, SIZE) as running:
            ready = scratch / "hostile.ready"
            argv = [
                *(*PYTHON, "sumrate.lab.faults.attacker", kind, WIGIG.server_ip),
                *(str(SERVER_PORT), str(ready), *options(kind, scratch / "server-state")),
            ]
            with Process(
                argv, log=scratch / "hostile.log", host=built.client, env=PYTHON_ENV
            ) as attacker:
                attacker.wait_until(ready.exists, "the attack has begun", timeout_s=60)
                running.run()
                attacker.wait_until(
                    lambda: missing(kind, ready) == {},
                    "every count that proves the attack",
                    PATIENCE_S,
                )
                running.actions.clear()
                running.run()  # and a second one, on the session that is already there
                assert attacker.poll() is None, attacker.tail()
                counts = counted(ready)
                print(kind, counts)
            assert missing(kind, ready) == {}, counts
            assert counts["made"] >= counts["closed"]
            assert peak_memory(running.server) < MEMORY_LIMIT
            assert peak_memory(running.daemon) < MEMORY_LIMIT

    isolated(scenario)


@pytest.mark.parametrize("kind", ["garbage", "drip", "half-open"])
def test_an_attack_at_the_wrong_port_does_not_pass_for_one(kind: str) -> None:
    """What is asserted above cannot be reached where nobody listens."""

    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built:
            ready = scratch / "hostile.ready"
            argv = [
                *(*PYTHON, "sumrate.lab.faults.attacker", kind, WIGIG.server_ip),
                *(str(SERVER_PORT + 1), str(ready), *options(kind, scratch)),
            ]
            with Process(
                argv, log=scratch / "hostile.log", host=built.client, env=PYTHON_ENV
            ) as attacker:
                attacker.wait_until(ready.exists, "the attack has begun", timeout_s=60)
                attacker.wait_until(
                    lambda: counted(ready)["failed"] >= REFUSED,
                    "refused connections",
                    PATIENCE_S,
                )
            counts = counted(ready)
            assert (counts["made"], counts["closed"]) == (0, 0), counts
            assert missing(kind, ready) != {}, counts

    isolated(scenario)


def test_an_attack_without_effect_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "SERVER_PORT", SERVER_PORT + 1)
    monkeypatch.setattr(hostile, "PATIENCE_S", 5.0)

    def scenario(scratch: Path) -> None:
        progress = Progress(0.0)
        found = attacks.attacks(scratch / "attacks", ["half-open"], 1.0, 1, progress)
        report = attacks.report(found)
        assert report["problems"] == ["half-open: 0 closed, 200 are expected of an attack"]
        assert report["attacks"]["half-open"]["failed"] > 0
        assert report["attacks"]["half-open"]["sessions_harmed"] == 0

    isolated(scenario)
