"""UDP of the whole machine by a device: plain sockets that know nothing of Sumrate."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import status
from sumrate.lab.faults.bench import Bench
from sumrate.lab.process import Process
from sumrate.lab.scene import SERVICE_IP
from tests.system.capture_scene import ONLY_TO, PUBLIC_IP, PUBLIC_IP6, SERVICE_IP6, captured, python
from tests.system.programs import NAME
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

MODES = ("--redirect", "--tproxy", "--tun")
PORTS = ("7007", "7008")
PATIENCE_S = 20.0

ECHO = """
import select, socket, sys
from pathlib import Path
sockets = []
for host, port in zip(sys.argv[2::2], sys.argv[3::2]):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.bind((host, int(port)))
    sockets.append(s)
Path(sys.argv[1]).touch()
while True:
    for s in select.select(sockets, [], [])[0]:
        data, source = s.recvfrom(65535)
        s.sendto(data + b"%5d" % source[1], source)
"""

TALK = """
import socket, sys
host, *ports = sys.argv[1:]
family = socket.AF_INET6 if ":" in host else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as s:
    s.settimeout(10)
    seen = set()
    for size in (0, 1, 1200, 9000, 60000):
        for port in map(int, ports):
            data = b"%d" % port + bytes(size)
            s.sendto(data, (host, port))
            answer, source = s.recvfrom(65535)
            assert source[:2] == (host, port), source
            assert answer[:-5] == data, (len(answer), size)
            seen.add(answer[-5:])
    assert len(seen) == 1, "both peers see one sender"
print("talked")
"""

RESOLVE = "import socket, sys; print(socket.getaddrinfo(sys.argv[1], 80)[0][4][0])"


@contextlib.contextmanager
def echoes(built: Bench, places: tuple[tuple[str, str], ...]) -> Iterator[None]:
    """What comes to these addresses and ports of the far host goes back, with the sender's port."""
    ready = built.folder / "echoing"
    words = [word for place in places for word in place]
    argv = [sys.executable, "-c", ECHO, str(ready), *words]
    with Process(argv, log=built.folder / "echo.log", host=built.server) as echo:
        echo.wait_until(ready.exists, "the echo listens")
        yield


@pytest.mark.parametrize("named", [True, False])
def test_datagrams_through_a_device_come_back_from_whom_was_asked(named: bool) -> None:
    addresses = (SERVICE_IP, SERVICE_IP6) if named else (PUBLIC_IP, PUBLIC_IP6)

    def scenario(scratch: Path) -> None:
        options = ONLY_TO if named else ()
        places = tuple((address, port) for address in addresses for port in PORTS)
        with captured(scratch, "--tun", *options) as (built, daemon), echoes(built, places):
            for address in addresses:
                said = python(built.client, TALK, address, *PORTS)
                assert "talked" in said, (said, daemon.tail())
            reported = status(built, "up")
            sent = reported["sessions"][0]["messages"]["sent"]
            assert sent == 2 * 5 * len(PORTS), "each was a message"
            udp = reported["udp"]
            assert (udp["flows"], udp["opened"]) == (2, 2), "a flow for each program"
            assert udp["sent_datagrams"] == udp["received_datagrams"] == sent, udp
            if named:
                # This machine's resolver is behind the server: questions go through the device.
                assert python(built.client, RESOLVE, NAME).strip() == SERVICE_IP, daemon.tail()

    isolated(scenario)


SILENT = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.connect((sys.argv[1], 4433))
s.send(b"hello")
s.recv(1)
"""


def test_a_program_learns_that_nobody_takes_its_datagrams() -> None:
    plain = ("--insecure-plaintext",)

    def scenario(scratch: Path) -> None:
        with captured(scratch, "--tun", *plain, served=plain) as (built, daemon):
            said = python(built.client, SILENT, PUBLIC_IP)
            assert "ConnectionRefusedError" in said, (said, daemon.tail())

    isolated(scenario)


def test_open_associations_do_not_hold_up_the_end() -> None:
    def scenario(scratch: Path) -> None:
        places = tuple((PUBLIC_IP, port) for port in PORTS)
        options = ("--tun", "--drain", "60")
        with captured(scratch, *options) as (built, daemon), echoes(built, places):
            assert "talked" in python(built.client, TALK, PUBLIC_IP, *PORTS), daemon.tail()
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(PATIENCE_S) == 0, daemon.tail()

    isolated(scenario)


ASK = """
import socket, sys
name = b"".join(bytes([len(part)]) + part.encode() for part in sys.argv[2].split("."))
question = bytes([18, 52, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + name + bytes([0, 0, 1, 0, 1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.sendto(question, (sys.argv[1], 53))
answer, source = s.recvfrom(4096)
assert source == (sys.argv[1], 53), source
print("directly" if answer[:-5] == question else "through the tunnel")
"""


@pytest.mark.parametrize("mode", MODES)
def test_questions_to_an_excepted_name_server_are_left_alone(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        excepted, other = "10.1.1.2", "10.1.2.2"
        options = (mode, "--dns", SERVICE_IP, "--direct", excepted)
        with (
            captured(scratch, *options) as (built, daemon),
            echoes(built, ((excepted, "53"), (other, "53"))),
        ):
            assert [link.server_ip for link in built.links] == [excepted, other]
            for asked, way in ((excepted, "directly"), (other, "through the tunnel")):
                said = python(built.client, ASK, asked, NAME)
                assert said.strip() == way, (asked, daemon.tail())

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_questions_to_a_name_server_elsewhere_than_named_are_left_alone(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        other = "10.1.2.2"
        options = (mode, *ONLY_TO, "--dns", SERVICE_IP)
        with captured(scratch, *options) as (built, daemon), echoes(built, ((other, "53"),)):
            assert python(built.client, ASK, other, NAME).strip() == "directly", daemon.tail()
            assert python(built.client, RESOLVE, NAME).strip() == SERVICE_IP, daemon.tail()

    isolated(scenario)
