"""UDP through SOCKS5 while a radio is silent: every datagram comes back, once."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import SOCKS_PORT, serve, status, up
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.process import Process
from sumrate.lab.scene import SERVICE_IP
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 50.0)
LTE = wire("lte", 2, 20.0)
ECHO_PORT = 7007
COUNT = 600
PROGRAM = str(Path(__file__).with_name("datagrams.py"))


def echoes(file: Path) -> int:
    """How many echoes the client has had so far."""
    with suppress(FileNotFoundError, IndexError):
        return int(file.read_text(encoding="utf-8").split()[0])
    return 0


def test_datagrams_through_socks_survive_a_silent_radio() -> None:
    def scenario(scratch: Path) -> None:
        file = scratch / "echoes"
        echo = [sys.executable, PROGRAM, "echo", SERVICE_IP, str(ECHO_PORT)]
        talk = [sys.executable, PROGRAM, "talk", str(SOCKS_PORT), SERVICE_IP, str(ECHO_PORT)]
        with (
            bench(scratch, WIFI, LTE) as built,
            Process(echo, log=scratch / "echo.log", host=built.server),
            serve(built),
            up(built) as daemon,
            Process(
                [*talk, str(COUNT), str(file)], log=scratch / "talk.log", host=built.client
            ) as client,
        ):

            def reached(count: int) -> None:
                client.wait_until(lambda: echoes(file) >= count, f"{count} echoes", timeout_s=60)

            reached(COUNT // 4)
            built.filter((WIFI,), "counter drop")
            reached(COUNT // 2)
            assert built.pass_all() > 0, "the silence concerned nothing"
            built.filter((LTE,), "counter drop")
            reached(3 * COUNT // 4)
            built.pass_all()
            assert client.wait(60) == 0, client.tail()
            assert file.read_text(encoding="utf-8") == f"{COUNT} end"
            assert daemon.poll() is None, daemon.tail()
            for role in ("up", "serve"):
                session = status(built, role)["sessions"][0]
                assert session["messages"]["sent"] == COUNT
                assert session["messages"]["received"] == COUNT
                names = {entry["class"]: entry for entry in session["classes"]}
                calls = names["conversational"]
                assert 0 < calls["chosen_bytes"] <= calls["sent_bytes"] + (4 << 20)

    isolated(scenario)
