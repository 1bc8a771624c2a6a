"""Whose connections of which programs are taken, and that nothing is left behind."""

import contextlib
import dataclasses
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import link_file_of, status, up
from sumrate.lab.namespaces import Host, run
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import program
from sumrate.lab.scene import SERVICE_IP
from tests.system.capture_scene import (
    ONLY_TO,
    PUBLIC_IP,
    PUBLIC_IP6,
    REFUSED,
    SERVICE_IP6,
    WIFI,
    captured,
    fetch,
    python,
)
from tests.system.programs import MARK, NAME
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

needs_users = pytest.mark.skipif(
    os.getuid() != 0, reason="without root there is one user, and no cgroup to make"
)

MODES = ("--redirect", "--tproxy", "--tun")
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
PATIENCE_S = 20.0
CAP_NET_ADMIN = 1 << 12
# A reset while curl connects, while it sends its request, and while it waits for the answer.
CURL_RESETS = (7, 55, 56)


def network_state(host: Host) -> str:
    """Everything that capturing could leave behind."""
    questions = [
        ["nft", "list", "ruleset"],
        ["ip", "-4", "rule"],
        ["ip", "-6", "rule"],
        ["ip", "-4", "route", "show", "table", "all"],
        ["ip", "-6", "route", "show", "table", "all"],
        ["ip", "-o", "link"],
    ]
    said = "\n".join(host.run(question) for question in questions)
    # The kernel's own entries come when an address has been found to be free.
    return "\n".join(line for line in said.splitlines() if " table local " not in line)


def wait_for_state(host: Host, wanted: str) -> None:
    """The limit only ends a test that would hang."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := network_state(host)) != wanted:
        assert time.monotonic() < deadline, f"left behind:\n{found}\ninstead of\n{wanted}"
        time.sleep(0.05)


def guardian_of(daemon: Process) -> int:
    """The process that removes the rules; programs that look at them come and go."""
    children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children")
    deadline = time.monotonic() + PATIENCE_S
    while len(found := children.read_text(encoding="ascii").split()) != 1:
        assert time.monotonic() < deadline, f"children: {found}"
        time.sleep(0.01)
    return int(found[0])


@pytest.mark.parametrize("mode", MODES)
def test_it_carries_both_families_and_leaves_nothing_behind(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            clean = network_state(built.client)
            for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                killed = ending == signal.SIGKILL
                options = (*ONLY_TO, *(("--when-down", "direct") if killed else ()))
                with up(built, mode, *options, name=f"up-{ending.name}") as daemon:
                    assert network_state(built.client) != clean
                    assert MARK in fetch(built), daemon.tail()
                    assert MARK in fetch(built, url=f"http://[{SERVICE_IP6}]:8080/token.html")
                    daemon.send_signal(ending)
                    daemon.wait(PATIENCE_S)
                    wait_for_state(built.client, clean)
                    assert fetch(built) == "", "it is not taken any more"

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_the_whole_machine_without_naming_destinations(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode) as (built, daemon):
            for host in (PUBLIC_IP, f"[{PUBLIC_IP6}]"):
                page = fetch(built, url=f"http://{host}:8080/token.html")
                assert MARK in page, (host, daemon.tail())
            assert status(built, "up")["capture"]["connections"] == 2
            assert fetch(built) == "", "private networks are left alone"

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_everything_of_one_user(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, "--only-user", "nobody") as (built, daemon):
            for host in (PUBLIC_IP, f"[{PUBLIC_IP6}]"):
                url = f"http://{host}:8080/token.html"
                argv = [*NOBODY, "curl", "-s", "--max-time", "8", url]
                done = subprocess.run(
                    built.client.command(argv), capture_output=True, text=True, check=False
                )
                assert MARK in done.stdout, (host, daemon.tail())
                assert fetch(built, url=url) == "", "root's are left alone"

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_what_killed_processes_left_is_removed_by_the_next(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            clean = network_state(built.client)
            with up(built, mode, *ONLY_TO, name="killed") as daemon:
                os.kill(guardian_of(daemon), signal.SIGKILL)
                daemon.kill()
            assert network_state(built.client) != clean, "there is something to remove"
            with up(built, mode, *ONLY_TO, name="next") as daemon:
                assert MARK in fetch(built), daemon.tail()
            wait_for_state(built.client, clean)

    isolated(scenario)


def kill_guardian(daemon: Process) -> None:
    """Kills it alone, and waits until the daemon has said so."""
    os.kill(guardian_of(daemon), signal.SIGKILL)
    daemon.wait_until(
        lambda: "removes the firewall rules was killed" in daemon.tail(), "the report"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_daemon_whose_guardian_was_killed_says_so_and_removes_the_rules(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            clean = network_state(built.client)
            with up(built, mode, *ONLY_TO, name="alone") as daemon:
                kill_guardian(daemon)
                assert MARK in fetch(built), "connections are taken as before"
                daemon.send_signal(signal.SIGTERM)
                assert daemon.wait(PATIENCE_S) == 0
                assert "its rules are removed" in daemon.tail(), daemon.tail()
            wait_for_state(built.client, clean)

    isolated(scenario)


@pytest.mark.parametrize("mode", ["--tproxy", "--tun"])
def test_the_rules_of_others_stay(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            with up(built, mode, *ONLY_TO, name="one") as daemon:
                rules = built.client.run(["ip", "-4", "rule"]).splitlines()
                preferences = [int(line.split(":")[0]) for line in rules]
                own = next(number for number in preferences if 16_000 <= number < 32_000)
                other = ["pref", str(own), "fwmark", "0x7", "lookup", str(0x53FFFFFF)]
                built.client.run(["ip", "-4", "rule", "add", *other])
                daemon.stop()
            left = built.client.run(["ip", "-4", "rule"])
            assert str(0x53FFFFFF) in left, left
            # A guardian with the same preferences has the rule of a device's own sockets, too: it
            # stays for that one.
            shared = {"--tproxy": 0, "--tun": 1}[mode]
            assert len(left.splitlines()) == 4 + shared, left

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_large_file_is_whole(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, *ONLY_TO) as (built, daemon):
            content = os.urandom(24 << 20)
            (scratch / "www/large").write_bytes(content)
            got = scratch / "got"
            url = f"http://{SERVICE_IP}:8080/large"
            argv = ["curl", "-sS", "--noproxy", "*", "--max-time", "60", "-o", str(got), url]
            done = subprocess.run(built.client.command(argv), check=False)
            assert done.returncode == 0, daemon.tail()
            assert hashlib.sha256(got.read_bytes()).digest() == hashlib.sha256(content).digest()

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_resets_new_connections_and_finishes_those_that_are_there(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, *ONLY_TO, "--drain", "50") as (built, daemon):
            content = os.urandom(6 << 20)
            (scratch / "www/large").write_bytes(content)
            got, url = scratch / "got", f"http://{SERVICE_IP}:8080"
            curl = ["curl", "-s", "--noproxy", "*", "--max-time", "40"]
            slow = [*curl, "--limit-rate", "2M", "-o", str(got), f"{url}/large"]
            new = [*curl, "-o", "/dev/null", f"{url}/token.html"]
            with subprocess.Popen(built.client.command(slow)) as download:
                daemon.wait_until(lambda: got.exists() and got.stat().st_size > 0, "it downloads")
                daemon.send_signal(signal.SIGTERM)
                deadline = time.monotonic() + PATIENCE_S
                while subprocess.run(built.client.command(new), check=False).returncode == 0:
                    assert time.monotonic() < deadline, "new connections are still taken"
                late = subprocess.run(built.client.command(new), check=False).returncode
                assert download.poll() is None, "the download goes on"
                assert late in CURL_RESETS
                assert download.wait() == 0, daemon.tail()
            assert daemon.wait(PATIENCE_S) == 0
            assert hashlib.sha256(got.read_bytes()).digest() == hashlib.sha256(content).digest()

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_of_one_user_only(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, *ONLY_TO, "--only-user", "65534") as (built, daemon):
            argv = [
                *NOBODY,
                "curl",
                "-s",
                "--max-time",
                "8",
                f"http://{SERVICE_IP}:8080/token.html",
            ]
            done = subprocess.run(
                built.client.command(argv), capture_output=True, text=True, check=False
            )
            assert MARK in done.stdout, daemon.tail()
            assert fetch(built) == "", "root's are left alone"
            said = status(built, "up")["capture"]
            assert (said["method"], said["only_user"]) == (mode.strip("-"), ["65534"])
            assert said["connections"] == 1, said

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_of_one_cgroup_only(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        # nft looks for cgroups here, whatever the machine has mounted.
        run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"])
        group = Path(f"/sys/fs/cgroup/sumrate-test-{mode.strip('-')}-{time.monotonic_ns()}")
        group.mkdir()
        try:
            with captured(scratch, mode, *ONLY_TO, "--only-cgroup", str(group)) as (built, daemon):
                enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$0" "$@"']
                url = f"http://{SERVICE_IP}:8080/token.html"
                argv = [*enter, "curl", "-s", "--max-time", "8", url]
                done = subprocess.run(
                    built.client.command(argv), capture_output=True, text=True, check=False
                )
                assert MARK in done.stdout, daemon.tail()
                assert fetch(built) == "", "those outside are left alone"
        finally:
            group.rmdir()

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_not_to_an_exception(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, *ONLY_TO, "--direct", SERVICE_IP) as (built, daemon):
            assert fetch(built) == ""
            six = fetch(built, url=f"http://[{SERVICE_IP6}]:8080/token.html")
            assert MARK in six, daemon.tail()

    isolated(scenario)


RESOLVE = "import socket, sys; print(socket.getaddrinfo(sys.argv[1], 80)[0][4][0])"


@pytest.mark.parametrize("mode", MODES)
def test_questions_to_name_servers(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, *ONLY_TO, "--dns", SERVICE_IP) as (built, daemon):
            assert python(built.client, RESOLVE, NAME).strip() == SERVICE_IP, daemon.tail()
            assert "not known" in python(built.client, RESOLVE, "no-such.example")

    isolated(scenario)


@pytest.mark.parametrize("mode", MODES)
def test_a_refused_connection_is_reset(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, mode, *ONLY_TO) as (built, _daemon):
            said = python(built.client, REFUSED, SERVICE_IP)
            assert "ConnectionResetError" in said or "BrokenPipeError" in said, said

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_without_the_right_it_says_so(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            link = scratch / "nobodys.link"
            shutil.copy(link_file_of(built), link)
            os.chown(link, 65534, 65534)
            scratch.chmod(0o755)
            binary = scratch / "sumrate"
            shutil.copy(program("sumrate"), binary)
            argv = [*NOBODY, str(binary), "up", f"@{link}", mode]
            done = subprocess.run(
                built.client.command(argv), capture_output=True, text=True, check=False
            )
            assert done.returncode == 3, done
            assert mode in done.stderr and "root" in done.stderr, done.stderr

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_as_another_user_it_keeps_one_right(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            clean = network_state(built.client)
            scratch.chmod(0o755)
            folder = scratch / "nobodys"
            folder.mkdir()
            os.chown(folder, 65534, 65534)
            own = dataclasses.replace(built, folder=folder)
            link = link_file_of(built)
            with up(own, mode, *ONLY_TO, "--user", "nobody", link_file=link) as daemon:
                assert MARK in fetch(built), daemon.tail()
                status = Path(f"/proc/{daemon.pid}/status").read_text(encoding="utf-8")
                fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                assert fields["Uid"].split() == ["65534"] * 4
                assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == CAP_NET_ADMIN
                # That one is enough to remove the rules, if nobody else does.
                kill_guardian(daemon)
                daemon.stop()
                assert "its rules are removed" in daemon.tail(), daemon.tail()
            wait_for_state(built.client, clean)

    isolated(scenario)


@contextlib.contextmanager
def behind(client: Host) -> Iterator[Host]:
    """A machine whose way to the world is the client."""
    lan = Host("lan")
    wire = ["ip", "link", "add", "lan0", "netns", "lan", "type", "veth"]
    run([*wire, "peer", "name", "lan0", "netns", client.name])
    for host, address in ((lan, "10.9.0.2/24"), (client, "10.9.0.1/24")):
        host.run(["ip", "address", "add", address, "dev", "lan0"])
        host.run(["ip", "link", "set", "lan0", "up"])
    lan.run(["ip", "route", "add", "default", "via", "10.9.0.1"])
    yield lan
    lan.delete()


def test_a_gateway_takes_what_others_send() -> None:
    def scenario(scratch: Path) -> None:
        with (
            captured(scratch, "--tproxy", "--gateway", *ONLY_TO) as (built, daemon),
            behind(built.client) as lan,
        ):
            argv = ["curl", "-s", "--max-time", "8", f"http://{SERVICE_IP}:8080/token.html"]
            done = subprocess.run(lan.command(argv), capture_output=True, text=True, check=False)
            assert MARK in done.stdout, daemon.tail()

    isolated(scenario)


def test_a_device_leaves_alone_what_others_send_through_this_machine() -> None:
    """Such as containers and virtual machines: their way stays the routing table's."""

    def scenario(scratch: Path) -> None:
        with (
            captured(scratch, "--tun", *ONLY_TO) as (built, _daemon),
            behind(built.client) as lan,
        ):
            own = built.client.run(["ip", "route", "get", SERVICE_IP])
            forwarded = ["ip", "route", "get", SERVICE_IP, "from", "10.9.0.2", "iif", "lan0"]
            built.client.sysctl("net.ipv4.ip_forward", "1")
            others = built.client.run(forwarded)
            assert "dev sumrate" in own, own
            assert f"dev {WIFI.interface}" in others, others
            assert lan.run(["ip", "route", "get", SERVICE_IP])

    isolated(scenario)


def test_own_connections_to_a_machine_that_takes_everything_go_on() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch, "--tun") as (built, daemon):
            page = scratch / "own"
            page.mkdir()
            (page / "token.html").write_text(MARK, encoding="utf-8")
            web = [sys.executable, "-m", "http.server", "--directory", str(page), "--bind"]
            wifi = built.links[0]
            server = Process(
                [*web, wifi.client_ip, "8088"], log=scratch / "own.log", host=built.client
            )
            with server:
                url = f"http://{wifi.client_ip}:8088/token.html"
                argv = ["curl", "-s", "--retry-connrefused", "--retry", "9", "--retry-delay", "1"]
                # From an address that is on no link: only the default route leads back to it.
                built.client.run(["ip", "route", "replace", "default", "via", wifi.server_ip])
                built.server.run(["ip", "address", "add", "192.0.2.7/32", "dev", "lo"])
                argv += ["--interface", "192.0.2.7", url]
                assert MARK in built.server.run(argv), daemon.tail()

    isolated(scenario)


NO_RULES = """#!/bin/sh
if [ "$*" = "-f -" ]; then
    rules=$(/bin/cat)
    case "$rules" in
    table*) echo "Error: not today" >&2; exit 1;;
    esac
    echo "$rules" | REAL -f -
    exit
fi
exec REAL "$@"
"""
"""An nft that makes no table, and does everything else."""


@pytest.mark.parametrize("mode", MODES)
def test_a_daemon_that_cannot_make_rules_ends(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, first):
            first.stop()
            clean = network_state(built.client)
            installed = shutil.which("nft", path="/usr/local/sbin:/usr/sbin:/sbin")
            assert installed is not None
            real, broken = scratch / "nft", scratch / "no-rules"
            shutil.copy2(installed, real)
            broken.write_text(NO_RULES.replace("REAL", str(real)), encoding="utf-8")
            broken.chmod(0o755)
            run(["mount", "--bind", str(broken), os.path.realpath(installed)])
            with pytest.raises(ProcessFailedError, match=r"the rules cannot be made: .*not today"):
                up(built, mode, name="bad")
            wait_for_state(built.client, clean)

    isolated(scenario)


@needs_users
@pytest.mark.parametrize("mode", MODES)
def test_a_cgroup_that_is_not_there_is_named_before_anything_starts(mode: str) -> None:
    def scenario(scratch: Path) -> None:
        run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"])
        with captured(scratch) as (built, first):
            first.stop()
            clean = network_state(built.client)
            said = "--only-cgroup no/such: there is no cgroup /sys/fs/cgroup/no/such; "
            with pytest.raises(ProcessFailedError, match=f"(?s)ended with 2 .*{said}"):
                up(built, mode, "--only-cgroup", "no/such", name="bad")
            assert network_state(built.client) == clean

    isolated(scenario)
