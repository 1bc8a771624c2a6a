"""Nothing that is to be taken leaves directly: routes, crashes, families, name servers."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import link_file_of, up
from sumrate.lab.faults.bench import Bench
from sumrate.lab.namespaces import Host, run
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import program
from sumrate.lab.scene import SERVICE_IP
from tests.system.capture_scene import (
    GATEWAY6,
    PUBLIC_IP,
    PUBLIC_IP6,
    captured,
    open_world,
    python,
    seen_as,
)
from tests.system.programs import NAME
from tests.system.scenario import isolated, needs_sumrate
from tests.system.test_capture import (
    NO_RULES,
    NOBODY,
    PATIENCE_S,
    behind,
    kill_guardian,
    needs_users,
    network_state,
    wait_for_state,
)

pytestmark = [pytest.mark.system, needs_sumrate]

MODES = ("--redirect", "--tproxy", "--tun")
PUBLIC = (PUBLIC_IP, PUBLIC_IP6)
REFUSES = "ended without a stop"


def kinds(mode: str) -> tuple[str, ...]:
    """What the mode takes of programs."""
    return ("tcp", "udp") if mode == "--tun" else ("tcp",)


def assert_taken(built: Bench, mode: str, when: str) -> None:
    """The witness sees the exit, which is on its own machine."""
    for target in PUBLIC:
        for kind in kinds(mode):
            assert seen_as(built.client, target, kind) == target, (when, target, kind)


def assert_refused(built: Bench, mode: str, when: str) -> None:
    """The witness sees nobody."""
    for target in PUBLIC:
        for kind in kinds(mode):
            assert seen_as(built.client, target, kind).startswith("nobody"), (when, target, kind)


def assert_direct(built: Bench, when: str) -> None:
    """The witness sees the client itself: the direct way is there."""
    assert seen_as(built.client, PUBLIC_IP) == built.links[0].client_ip, when
    assert seen_as(built.client, PUBLIC_IP6) == "fd10::1", when


def assert_nothing_came_directly(built: Bench, seen: Path) -> None:
    """At the public addresses, from any address of the client."""
    own = {*(link.client_ip for link in built.links), "fd10::1", "203.0.113.5"}
    lines = [line.split(" to ") for line in seen.read_text(encoding="utf-8").splitlines()]
    assert not [line for line in lines if line[0] in own and line[1] in PUBLIC], lines


def kill(daemon: Process, guardian_too: bool) -> None:
    """Kills the daemon, and its guardian before it can do anything; waits for the end of both."""
    if guardian_too:
        kill_guardian(daemon)
        daemon.kill()
        return
    daemon.kill()
    deadline = time.monotonic() + PATIENCE_S
    while REFUSES not in daemon.tail():
        assert time.monotonic() < deadline, daemon.tail()
        time.sleep(0.05)


def tables(host: Host) -> list[str]:
    """Names of Sumrate's tables."""
    return re.findall(r"table inet (sumrate_\w+)", host.run(["nft", "list", "tables"]))


@pytest.mark.parametrize("mode", MODES)
def test_routes_of_the_network_do_not_lead_out(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built) as seen:
            first.stop()
            assert_direct(built, "without Sumrate")
            seen.write_text("", encoding="utf-8")
            client, wifi = built.client, built.links[0]
            with up(built, mode, name="taking"):
                assert_taken(built, mode, "at first")
                via = ["via", wifi.server_ip]
                client.run(["ip", "route", "replace", "default", *via])
                client.run(["ip", "-6", "route", "replace", "default", "via", GATEWAY6])
                for family, way in (("-4", wifi.server_ip), ("-6", GATEWAY6)):
                    shown = client.run(["ip", family, "route", "show", "default"])
                    assert f"default via {way} dev {wifi.interface}" in shown, "it is on that link"
                # Option 121 of DHCP, halves of everything and a host; the same by advertisements.
                for net in ("0.0.0.0/1", "128.0.0.0/1", f"{PUBLIC_IP}/32"):
                    client.run(["ip", "route", "add", net, *via])
                for net in ("2000::/3", "2001:db8:77::/48", f"{PUBLIC_IP6}/128"):
                    client.run(["ip", "-6", "route", "add", net, "via", GATEWAY6])
                assert_taken(built, mode, "more specific routes")
                client.run(["ip", "address", "add", "203.0.113.5/24", "dev", wifi.interface])
                assert_taken(built, mode, "a public prefix on the link")
                for target in PUBLIC:
                    for kind in kinds(mode):
                        said = seen_as(client, target, kind, device=wifi.interface)
                        assert said in {target} or said.startswith("nobody"), (target, kind, said)
                # A rule before all others, as only root can make it.
                for family, way in (("-4", wifi.server_ip), ("-6", GATEWAY6)):
                    route = ["default", "via", way, "dev", wifi.interface, "table", "77"]
                    client.run(["ip", family, "route", "add", *route])
                    client.run(["ip", family, "rule", "add", "pref", "100", "lookup", "77"])
                if mode == "--redirect":
                    assert_taken(built, mode, "a rule before ours")
                else:
                    assert_refused(built, mode, "a rule before ours")
                assert_nothing_came_directly(built, seen)

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_private_networks_and_exceptions_stay_direct(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        exceptions = ("--direct", PUBLIC_IP)
        with captured(scratch, mode, *exceptions) as (built, daemon), open_world(built):
            wifi = built.links[0]
            for kind in ("tcp", "udp"):
                assert seen_as(built.client, wifi.server_ip, kind) == wifi.client_ip, daemon.tail()
                assert seen_as(built.client, GATEWAY6, kind) == "fd10::1", daemon.tail()
                assert seen_as(built.client, PUBLIC_IP, kind) == wifi.client_ip, daemon.tail()
            assert seen_as(built.client, PUBLIC_IP6) == PUBLIC_IP6, daemon.tail()

    isolated(scenario)


@pytest.mark.parametrize("mode", ["--redirect", "--tproxy"])
def test_datagrams_leave_directly_without_a_device(mode: str) -> None:
    """A leak that docs/security.md lists: `--tun` closes it."""

    def scenario(scratch: Path) -> None:
        with captured(scratch, mode) as (built, daemon), open_world(built):
            assert_taken(built, mode, "connections")
            assert seen_as(built.client, PUBLIC_IP, "udp") == built.links[0].client_ip, (
                daemon.tail()
            )

    isolated(scenario)


@pytest.mark.parametrize("guardian_too", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_daemon_opens_no_direct_way(mode: str, guardian_too: bool) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built) as seen:
            first.stop()
            clean = network_state(built.client)
            assert_direct(built, "without Sumrate")
            seen.write_text("", encoding="utf-8")
            wifi = built.links[0]
            with up(built, mode, name="killed") as daemon:
                assert_taken(built, mode, "while it runs")
                kill(daemon, guardian_too)
            assert_refused(built, mode, "after the crash")
            assert seen_as(built.client, wifi.server_ip) == wifi.client_ip, "private"
            with up(built, mode, name="next") as daemon:
                assert_taken(built, mode, "the next one")
                assert len(tables(built.client)) == 1, "the rules were replaced"
                assert_nothing_came_directly(built, seen)
                daemon.stop()
            wait_for_state(built.client, clean)
            assert_direct(built, "after an orderly stop")

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_a_crash_concerns_the_selected_user_alone(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            with up(built, mode, "--only-user", "nobody", name="killed") as daemon:
                kill(daemon, guardian_too=False)
            for target in PUBLIC:
                said = seen_as(built.client, target, prefix=NOBODY)
                assert said.startswith("nobody"), (target, said)
            assert_direct(built, "root's are left alone")

    isolated(scenario)


@pytest.mark.parametrize("guardian_too", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_what_refuses_is_lifted_by_what_doctor_says(mode: str, guardian_too: bool) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            with up(built, mode, name="killed") as daemon:
                kill(daemon, guardian_too)
                (table,) = tables(built.client)
                if not guardian_too:
                    assert f"`nft delete table inet {table}`" in daemon.tail(), daemon.tail()
            assert_refused(built, mode, "after the crash")
            argv = built.client.command([str(program("sumrate")), "doctor", "--json"])
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            # An error follows the report, as there is a problem.
            report, _ = json.JSONDecoder().raw_decode(done.stdout)
            mends = [found["mend"] for found in report["findings"]]
            (lift,) = [mend for mend in mends if mend and table in mend]
            built.client.run(["sh", "-c", lift])
            assert_direct(built, "after the command")
            assert tables(built.client) == []

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_crash_leads_directly_where_that_is_asked(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            clean = network_state(built.client)
            with up(built, mode, "--when-down", "direct", name="killed") as daemon:
                assert_taken(built, mode, "while it runs")
                daemon.kill()
                wait_for_state(built.client, clean)
            assert_direct(built, "after the crash")

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_what_refuses_stays_until_there_are_new_rules(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built) as seen:
            first.stop()
            with up(built, mode, name="killed") as daemon:
                kill(daemon, guardian_too=False)
            seen.write_text("", encoding="utf-8")
            installed = shutil.which("nft", path="/usr/local/sbin:/usr/sbin:/sbin")
            assert installed is not None
            real, broken = scratch / "nft", scratch / "no-rules"
            shutil.copy2(installed, real)
            broken.write_text(NO_RULES.replace("REAL", str(real)), encoding="utf-8")
            broken.chmod(0o755)
            run(["mount", "--bind", str(broken), os.path.realpath(installed)])
            with pytest.raises(ProcessFailedError, match="the rules cannot be made"):
                up(built, mode, name="bad")
            run(["umount", os.path.realpath(installed)])
            assert_refused(built, mode, "no new rules")
            assert_nothing_came_directly(built, seen)

    isolated(scenario)


def test_a_restart_finds_a_server_that_it_cannot_resolve() -> None:
    def scenario(scratch: Path) -> None:
        hosts, link = scratch / "hosts", scratch / "named.link"
        hosts.write_text("10.1.1.2 server.example\n", encoding="utf-8")
        run(["mount", "--bind", str(hosts), os.path.realpath("/etc/hosts")])
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            text = link_file_of(built).read_text(encoding="utf-8")
            named = re.sub(r"//[^?]*\?", "//server.example:4433?", text)
            link.write_text(named, encoding="utf-8")
            link.chmod(0o600)
            options = ("--tun", "--dns", SERVICE_IP, "--state", str(scratch / "state"))
            with up(built, *options, name="killed", link_file=link) as daemon:
                kill(daemon, guardian_too=False)
            hosts.write_text("", encoding="utf-8")
            with up(built, *options, name="next", link_file=link):
                assert_taken(built, "--tun", "the next one")

    isolated(scenario)


def test_a_device_that_vanishes_opens_no_direct_way() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built) as seen:
            first.stop()
            with up(built, "--tun", name="without") as daemon:
                assert_taken(built, "--tun", "while it runs")
                built.client.run(["ip", "link", "delete", "sumrate0"])
                daemon.wait_until(lambda: "it is there again" in daemon.tail(), "the report")
                assert_taken(built, "--tun", "with another device")
            assert_nothing_came_directly(built, seen)

    isolated(scenario)


@pytest.mark.parametrize("guardian_too", [False, True])
def test_machines_behind_a_killed_gateway_reach_nothing(guardian_too: bool) -> None:
    def scenario(scratch: Path) -> None:
        with (
            captured(scratch) as (built, first),
            open_world(built) as seen,
            behind(built.client) as lan,
        ):
            first.stop()
            built.client.sysctl("net.ipv4.ip_forward", "1")
            back = ["10.9.0.0/24", "via", built.links[0].client_ip]
            built.server.run(["ip", "route", "add", *back])
            assert seen_as(lan, PUBLIC_IP) == "10.9.0.2", "it is a router without Sumrate"
            seen.write_text("", encoding="utf-8")
            with up(built, "--tproxy", "--gateway", name="killed") as daemon:
                assert seen_as(lan, PUBLIC_IP) == PUBLIC_IP, daemon.tail()
                kill(daemon, guardian_too)
            assert seen_as(lan, PUBLIC_IP).startswith("nobody")
            assert "10.9.0.2" not in seen.read_text(encoding="utf-8")

    isolated(scenario)


@pytest.mark.parametrize(
    ("mode", "switch"), [("--redirect", "lo"), ("--tproxy", "lo"), ("--tun", "default")]
)
def test_ipv6_that_cannot_be_taken_stops_the_start(mode: str, switch: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            built.client.sysctl(f"net.ipv6.conf.{switch}.disable_ipv6", "1")
            with pytest.raises(ProcessFailedError, match=r"IPv6 is in use on \w+: .*sysctl"):
                up(built, mode, name="bad")
            assert tables(built.client) == []

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_ipv6_that_comes_later_is_refused(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            client, interface = built.client, built.links[0].interface
            for which in ("all", "default"):
                client.sysctl(f"net.ipv6.conf.{which}.disable_ipv6", "1")
            options = (mode, "--dns", SERVICE_IP)
            with (
                open_world(built, (GATEWAY6, "53")) as seen,
                up(built, *options, name="v4") as daemon,
            ):
                assert seen_as(client, PUBLIC_IP) == PUBLIC_IP, daemon.tail()
                client.sysctl(f"net.ipv6.conf.{interface}.disable_ipv6", "0")
                client.run(["ip", "address", "add", "fd10::1/64", "dev", interface, "nodad"])
                client.run(["ip", "-6", "route", "add", "default", "via", GATEWAY6])
                assert seen_as(client, GATEWAY6) == "fd10::1", "IPv6 is there"
                seen.write_text("", encoding="utf-8")
                for kind in kinds(mode):
                    assert seen_as(client, PUBLIC_IP6, kind).startswith("nobody"), daemon.tail()
                for kind in ("tcp", "udp"):
                    said = seen_as(client, GATEWAY6, kind, port="53")
                    assert said.startswith("nobody"), (kind, said)
                assert "fd10::1" not in seen.read_text(encoding="utf-8")

    isolated(scenario)


QUESTION = """
import socket, struct, sys
name = b"".join(bytes([len(part)]) + part.encode() for part in sys.argv[2].split("."))
question = bytes([18, 52, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + name + bytes([0, 0, 1, 0, 1])
with socket.create_connection((sys.argv[1], 53), timeout=10) as s:
    s.sendall(struct.pack("!H", len(question)) + question)
    print(socket.inet_ntoa(s.recv(4096)[-4:]))
"""
"""A question for a name over TCP."""


@pytest.mark.parametrize("mode", MODES)
def test_no_question_over_tcp_goes_to_the_lan(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            lan = built.links[0].server_ip
            with open_world(built, (lan, "53"), (PUBLIC_IP, "53")) as seen:
                with up(built, mode, "--dns", SERVICE_IP, name="names") as daemon:
                    for asked in (lan, PUBLIC_IP):
                        said = python(built.client, QUESTION, asked, NAME).strip()
                        assert said == SERVICE_IP, (asked, said, daemon.tail())
                    kill(daemon, guardian_too=False)
                for kind in ("tcp", "udp"):
                    for asked in (lan, PUBLIC_IP):
                        said = seen_as(built.client, asked, kind, port="53")
                        assert said.startswith("nobody"), (asked, kind, said)
                assert seen.read_text(encoding="utf-8") == "", "the witness was never asked"

    isolated(scenario)


def test_a_missing_program_is_named_before_anything_starts() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            installed = shutil.which("nft", path="/usr/local/sbin:/usr/sbin:/sbin")
            assert installed is not None
            run(["mount", "--bind", "/dev/null", os.path.realpath(installed)])
            with pytest.raises(ProcessFailedError, match="nft is needed and not installed"):
                up(built, "--redirect", name="bad")

    isolated(scenario)


KEEPER = """
import socket, sys
from pathlib import Path
listener = socket.create_server(("", 8100))
Path(sys.argv[1]).touch()
while True:
    connection, _ = listener.accept()
    while data := connection.recv(100):
        connection.sendall(data)
"""
"""A server that sends back what comes over each connection."""
HOLDER = """
import socket, sys, time
from pathlib import Path
with socket.create_connection((sys.argv[1], 8100), timeout=10) as s:
    s.sendall(b"before")
    assert s.recv(100) == b"before"
    Path(sys.argv[2]).touch()
    while not Path(sys.argv[3]).exists():
        time.sleep(0.01)
    s.sendall(b"after")
    print(s.recv(100), flush=True)
"""
"""A program that holds a connection until a file is there, and then uses it again."""


@pytest.mark.parametrize("mode", ["--tproxy", "--tun"])
def test_connections_from_before_go_on_directly(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            ready, held, go = (scratch / name for name in ("keeps", "held", "go"))
            keeper = [sys.executable, "-c", KEEPER, str(ready)]
            holder = [sys.executable, "-c", HOLDER, PUBLIC_IP, str(held), str(go)]
            with Process(keeper, log=scratch / "keeper.log", host=built.server) as server:
                server.wait_until(ready.exists, "it listens")
                with Process(holder, log=scratch / "holder.log", host=built.client) as program:
                    program.wait_until(held.exists, "the connection is there")
                    with up(built, mode, name="later"):
                        go.touch()
                        assert program.wait(PATIENCE_S) == 0, program.tail()
                        assert "after" in program.tail(), program.tail()

    isolated(scenario)


SNIFFER = """
import socket, sys
from pathlib import Path
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
Path(sys.argv[2]).touch()
while True:
    packet = s.recv(65535)
    for word in (b"forgotten", b"private"):
        if word in packet:
            print(word.decode(), flush=True)
"""
"""Prints which of two words pass an interface."""
SEGMENT = """
import socket, struct, sys
own, other, word = sys.argv[1], sys.argv[2], sys.argv[3].encode()
head = struct.pack("!HHLLBBHHH", 4000, 8099, 7, 7, 5 << 4, 0x18, 1000, 0, 0)
ends = socket.inet_aton(own) + socket.inet_aton(other)
data = ends + struct.pack("!BBH", 0, 6, len(head) + len(word)) + head + word
data += b"0" * (len(data) % 2)
total = sum(struct.unpack(f"!{len(data) // 2}H", data))
total = (total & 0xFFFF) + (total >> 16)
check = 0xFFFF & ~(total + (total >> 16))
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
s.bind((own, 0))
try:
    s.sendto(head[:16] + struct.pack("!H", check) + head[18:] + word, (other, 0))
except OSError as error:
    print("nobody:", error)
"""
"""Sends one TCP segment with data of a connection that conntrack does not know."""


@pytest.mark.parametrize("mode", MODES)
def test_segments_of_forgotten_connections_do_not_leave(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            wifi, ready, log = built.links[0], scratch / "sniffing", scratch / "sniffer.log"
            argv = [sys.executable, "-c", SNIFFER, wifi.interface, str(ready)]
            with (
                up(built, mode, name="taking") as daemon,
                Process(argv, log=log, host=built.server) as sniffer,
            ):
                sniffer.wait_until(ready.exists, "it sniffs")

                def send() -> None:
                    for other, word in ((PUBLIC_IP, "forgotten"), (wifi.server_ip, "private")):
                        python(built.client, SEGMENT, wifi.client_ip, other, word)

                send()
                sniffer.wait_until(lambda: "private" in sniffer.tail(), "the later one is there")
                assert "forgotten" not in sniffer.tail(), daemon.tail()
                kill(daemon, guardian_too=False)
                log.write_text("", encoding="utf-8")
                send()
                sniffer.wait_until(lambda: "private" in sniffer.tail(), "the later one is there")
                assert "forgotten" not in sniffer.tail(), daemon.tail()

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_rules_that_somebody_flushed_come_back(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first), open_world(built):
            first.stop()
            clean = network_state(built.client)
            with up(built, mode, name="flushed") as daemon:
                before = tables(built.client)
                built.client.run(["nft", "flush", "ruleset"])
                daemon.wait_until(lambda: "it is there again" in daemon.tail(), "the report")
                assert tables(built.client) == before
                assert_taken(built, mode, "after the flush")
                daemon.stop()
            wait_for_state(built.client, clean)

    isolated(scenario)
