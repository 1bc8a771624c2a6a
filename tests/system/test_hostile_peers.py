"""Hostile clients beside a transfer: it completes, the server stays small and goes on serving."""

import re
import sys
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import SERVER_PORT
from sumrate.lab.process import Process
from tests.system.scenario import bench, isolated, needs_sumrate, transfer, wire

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
SIZE = 96 << 20
MEMORY_LIMIT = 512 << 20
"""Bytes; the defaults allow one session and 1024 pending handshakes far less than this."""


def peak_memory(process: Process) -> int:
    """Largest resident memory of a process so far, in bytes."""
    text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found, text
    return int(found[1]) * 1024


@pytest.mark.parametrize("kind", ["garbage", "drip", "half-open", "silent-reader"])
def test_transfer_beside_hostile_clients(kind: str) -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built, transfer(built, SIZE) as running:
            ready = scratch / "hostile.ready"
            script = Path(__file__).with_name("hostile.py")
            argv = [
                sys.executable,
                str(script),
                kind,
                WIGIG.server_ip,
                str(SERVER_PORT),
                str(ready),
            ]
            with Process(argv, log=scratch / "hostile.log", host=built.client) as attacker:
                attacker.wait_until(ready.exists, "the attack has begun", timeout_s=60)
                running.run()
                running.actions.clear()
                running.run()  # and a second one, on the session that is already there
                assert attacker.poll() is None, attacker.tail()
            assert peak_memory(running.server) < MEMORY_LIMIT
            assert peak_memory(running.daemon) < MEMORY_LIMIT

    isolated(scenario)
