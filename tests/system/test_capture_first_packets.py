"""No direct way by what others do first: packets of a network, old connections, devices."""

import subprocess
import sys
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import SOCKS_PORT, status, up
from sumrate.lab.faults.bench import Bench
from sumrate.lab.process import ProcessFailedError
from tests.system.capture_scene import PUBLIC_IP, WITNESS_PORT, captured, open_world, python
from tests.system.scenario import isolated, needs_sumrate
from tests.system.test_capture_leaks import MODES, assert_taken, kill, kinds

pytestmark = [pytest.mark.system, needs_sumrate]

SPOOF = """
import socket, struct, sys
kind, source, target, port, first, last = sys.argv[1:]
source, target, port = socket.inet_aton(source), socket.inet_aton(target), int(port)
def check(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff
def segment(to):
    # With an option for MD5 signatures (RFC 2385): the kernel answers no such segment.
    option = bytes([19, 18]) + bytes(16) + bytes([1, 1])
    head = struct.pack(">HHIIBBHHH", port, to, 1000, 0, 10 << 4, 2, 8192, 0, 0) + option
    pseudo = source + target + struct.pack(">BBH", 0, socket.IPPROTO_TCP, len(head))
    return head[:16] + struct.pack(">H", check(pseudo + head)) + head[18:]
def datagram(to):
    return struct.pack(">HHHH", port, to, 9, 0) + b"x"
number = socket.IPPROTO_TCP if kind == "tcp" else socket.IPPROTO_UDP
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
    for to in range(int(first), int(last)):
        payload = segment(to) if kind == "tcp" else datagram(to)
        head = struct.pack(">BBHHHBBH", 69, 0, 20 + len(payload), 0, 0, 64, number, 0)
        head += source + target
        head = head[:10] + struct.pack(">H", check(head)) + head[12:]
        s.sendto(head + payload, (sys.argv[3], 0))
"""
"""A first packet from another end, in its name, to each of some ports."""
ASK_FROM = """
import socket, sys
kind, host, port, own = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
s.settimeout(5)
try:
    s.bind(("", int(own)))
    s.connect((host, int(port)))
    if kind == "udp":
        s.send(b"?")
    print(s.recv(100).decode() or "nobody: closed")
except OSError as error:
    print("nobody:", error)
"""
"""Asks the witness from a port of one's own choice."""
HOLD = """
import socket, struct, sys
host, port, own = sys.argv[1:]
s = socket.socket()
s.bind(("", int(own)))
s.connect((host, int(port)))
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
print("connected", flush=True)
sys.stdin.read()
"""
"""Holds a connection from a port of one's own choice until its input ends, and resets it."""
SPOOFED = 40000


def spoof(built: Bench, kind: str, target: str, port: str, first: int) -> None:
    """Sends a first packet of the witness to twenty ports of the client, as its network can."""
    words = [kind, PUBLIC_IP, target, port, str(first), str(first + 20)]
    python(built.server, SPOOF, *words)


@pytest.mark.parametrize("mode", MODES)
def test_first_packets_of_the_network_open_no_direct_way(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode) as (built, daemon), open_world(built):
            own = built.links[0].client_ip
            targets = [own, "198.19.253.1"] if mode == "--tun" else [own]
            if mode == "--tun":
                built.server.run(["ip", "route", "add", "198.19.253.1/32", "via", own])
            for kind in kinds(mode):
                first = SPOOFED
                for target in targets:
                    spoof(built, kind, target, WITNESS_PORT, first)
                    words = [kind, PUBLIC_IP, WITNESS_PORT, str(first + 10)]
                    said = python(built.client, ASK_FROM, *words).strip()
                    assert said == PUBLIC_IP or said.startswith("nobody"), (kind, target, said)
                    first += 20
            assert_taken(built, mode, "other ports")
            kill(daemon, guardian_too=False)
            for kind in kinds(mode):
                spoof(built, kind, own, WITNESS_PORT, SPOOFED + 100)
                words = [kind, PUBLIC_IP, WITNESS_PORT, str(SPOOFED + 110)]
                said = python(built.client, ASK_FROM, *words).strip()
                assert said.startswith("nobody"), (kind, said, daemon.tail())

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_later_connection_is_no_earlier_one(mode: str) -> None:
    """The same two ends: what was there at the start has ended."""

    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            words = [PUBLIC_IP, WITNESS_PORT, str(SPOOFED)]
            hold = built.client.command([sys.executable, "-c", HOLD, *words])
            pipe = subprocess.PIPE
            with subprocess.Popen(hold, stdin=pipe, stdout=pipe, text=True) as holder:
                assert holder.stdout and holder.stdout.readline() == "connected\n"
                with up(built, mode, name="taking") as daemon:
                    holder.communicate()
                    said = python(built.client, ASK_FROM, "tcp", *words).strip()
                    assert said == PUBLIC_IP or said.startswith("nobody"), (said, daemon.tail())

    isolated(scenario)


def test_the_device_of_another_is_no_path() -> None:
    def scenario(scratch: Path) -> None:
        port = SOCKS_PORT + 1
        with captured(scratch, "--tun") as (built, daemon), open_world(built):
            with pytest.raises(ProcessFailedError, match="another `sumrate up --tun` has the dev"):
                up(built, "--tun", name="refused", socks_port=port)
            with up(built, name="second", socks_port=port, paths=()) as second:
                paths = {path["name"] for path in status(built, "second")["sessions"][0]["paths"]}
                assert paths == {link.interface for link in built.links}, second.tail()
            assert_taken(built, "--tun", daemon.tail())

    isolated(scenario)
