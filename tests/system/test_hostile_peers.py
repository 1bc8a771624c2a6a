"""Hostile clients beside a transfer: it completes, the server stays small and goes on serving."""

import json
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import SERVER_PORT
from sumrate.lab.faults.attacks import KINDS, options
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.faults.confinement import peak_memory
from sumrate.lab.faults.world import PATIENCE_S, PYTHON, PYTHON_ENV
from sumrate.lab.process import Process
from tests.system.scenario import isolated, needs_sumrate, transfer

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
SIZE = 96 << 20
MEMORY_LIMIT = 512 << 20
"""Bytes; the defaults allow one session and 1024 pending handshakes far less than this."""


def missing(kind: str, status: Path) -> dict[str, int]:
    """Counts of an attacker that do not prove yet that its attack has an effect."""
    counts = json.loads(status.read_text(encoding="ascii"))
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
                counts = json.loads(ready.read_text())
                print(kind, counts)
            assert missing(kind, ready) == {}, counts
            assert counts["made"] >= counts["closed"]
            assert peak_memory(running.server) < MEMORY_LIMIT
            assert peak_memory(running.daemon) < MEMORY_LIMIT

    isolated(scenario)


def test_an_attack_at_the_wrong_port_does_not_pass_for_one() -> None:
    """What is asserted above cannot be reached where nobody is attacked."""

    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built, transfer(built, 1 << 20) as running:
            ready = scratch / "hostile.ready"
            argv = [
                *(*PYTHON, "sumrate.lab.faults.attacker", "half-open", WIGIG.server_ip),
                *(str(SERVER_PORT + 1), str(ready), "--connections", "5", "--total", "5"),
            ]
            with Process(
                argv, log=scratch / "hostile.log", host=built.client, env=PYTHON_ENV
            ) as attacker:
                attacker.wait_until(ready.exists, "the attack has begun", timeout_s=60)
                running.run()
                counts = json.loads(ready.read_text())
                assert missing("half-open", ready) != {}, counts

    isolated(scenario)
