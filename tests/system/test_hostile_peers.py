"""Hostile clients beside a transfer: it completes, the server stays small and goes on serving."""

from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import SERVER_PORT
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.faults.confinement import peak_memory
from sumrate.lab.faults.world import PYTHON, PYTHON_ENV
from sumrate.lab.process import Process
from tests.system.scenario import isolated, needs_sumrate, transfer

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
SIZE = 96 << 20
MEMORY_LIMIT = 512 << 20
"""Bytes; the defaults allow one session and 1024 pending handshakes far less than this."""


@pytest.mark.parametrize("kind", ["garbage", "drip", "half-open", "silent-reader"])
def test_transfer_beside_hostile_clients(kind: str) -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built, transfer(built, SIZE) as running:
            ready = scratch / "hostile.ready"
            argv = [
                *(*PYTHON, "sumrate.lab.faults.attacker", kind, WIGIG.server_ip),
                *(str(SERVER_PORT), str(ready)),
            ]
            with Process(
                argv, log=scratch / "hostile.log", host=built.client, env=PYTHON_ENV
            ) as attacker:
                attacker.wait_until(ready.exists, "the attack has begun", timeout_s=60)
                running.run()
                running.actions.clear()
                running.run()  # and a second one, on the session that is already there
                assert attacker.poll() is None, attacker.tail()
            assert peak_memory(running.server) < MEMORY_LIMIT
            assert peak_memory(running.daemon) < MEMORY_LIMIT

    isolated(scenario)
