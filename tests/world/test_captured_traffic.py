"""Captured connections stay captured or are refused; no packet of theirs leaves directly."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sumrate.lab.namespaces import run
from sumrate.lab.process import Process
from tests.world.scene import (
    EXIT_IP,
    INTERNET_IP,
    INTERNET_IP6,
    SERVER_IP,
    SERVER_IP6,
    SERVER_PORT,
    WEB_PORT,
    World,
)

MODES = ("--redirect", "--tproxy", "--tun")
URL = f"http://{INTERNET_IP}:{WEB_PORT}/"
BACK_S = 5.0
"""A part is back within about 1 s; a busy machine needs longer to start the programs for it."""
DEVICE = "sumrate0"
NAME = "sumrate.example"
REMOVED = {
    "all of nftables": "nft flush ruleset",
    "the table": "nft delete table inet $TABLE",
    "the rules of a chain": "nft flush chain inet $TABLE $CHAIN",
    "an additional rule": "nft insert rule inet $TABLE $CHAIN accept",
}
"""What somebody does in turn, by what is missing then."""
ROUTED = {
    "rules of IPv4": "ip -4 rule | grep -o '^1[0-9]*' | xargs -n 1 ip -4 rule delete pref",
    "rules of IPv6": "ip -6 rule | grep -o '^1[0-9]*' | xargs -n 1 ip -6 rule delete pref",
    "routes of IPv4": "ip -4 route flush table $ROUTES",
    "routes of IPv6": "ip -6 route flush table $ROUTES",
    "another route": "ip -4 route add 8.20.0.0/25 via 10.1.0.1 dev wifi0 table $ROUTES",
}
OF_DEVICE = {
    "its addresses": f"ip address flush dev {DEVICE}",
    "its state": f"ip link set {DEVICE} down",
    "its MTU": f"ip link set {DEVICE} mtu 1400",
    "its filter": f"echo 1 > /proc/sys/net/ipv4/conf/{DEVICE}/rp_filter",
    "the device": f"ip link delete {DEVICE}",
}
CASES = {
    "--redirect": REMOVED,
    "--tproxy": REMOVED | ROUTED,
    "--tun": REMOVED | ROUTED | OF_DEVICE,
}
DATAGRAM = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.settimeout(5)
    one.connect((sys.argv[1], int(sys.argv[2])))
    try:
        one.send(b"hello")
        one.recv(100)
        print("answered")
    except (ConnectionRefusedError, PermissionError):
        print("refused")
"""
"""What comes of a datagram."""
HAMMER = """
import socket, sys, time
from pathlib import Path
host, port, ready, stop = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
while not stop.exists():
    try:
        with socket.create_connection((host, port), timeout=0.5) as one:
            one.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            if one.recv(1):
                ready.touch()
    except OSError:
        pass
    time.sleep(0.01)
"""
"""Connects again and again."""


def shell(world: World, words: str, **values: str) -> str:
    """Runs a line of the shell on the client."""
    given = [f"{name}={value}" for name, value in values.items()]
    return world.client.run(["env", *given, "sh", "-c", words])


def watch_for_leaks(world: World) -> None:
    """Has the routers count what the client sends to the Internet directly."""
    count = f"ip daddr {INTERNET_IP} counter"
    for radio in world.radios.values():
        chain = f"chain seen {{ type filter hook forward priority -20; {count}; }}"
        radio.router.table("leaks", chain)


def leaked(world: World) -> int:
    """Packets that came to the routers since `watch_for_leaks`."""
    listed = [
        radio.router.run(["nft", "list", "table", "inet", "leaks"])
        for radio in world.radios.values()
    ]
    return sum(int(count) for text in listed for count in re.findall(r"packets (\d+)", text))


def source_seen(world: World) -> str:
    """As whom a web server on the Internet sees a captured connection; what curl says if none."""
    answer = world.curl(URL, proxy="")
    try:
        return str(json.loads(answer)["source"])
    except ValueError:
        return answer


def installed(world: World) -> str:
    """What Sumrate has in the client's kernel; numbers of interfaces and handles are left out."""
    [name] = re.findall(r"table inet (sumrate_\w+)", shell(world, "nft list tables"))
    words = f"nft -s list table inet {name}; ip -4 rule; ip -6 rule"
    words += "; for f in -4 -6; do for t in $(ip $f rule | grep -o '139[0-9]*' | sort -u); do"
    words += " ip $f route show table $t; done; done"
    words += f"; ip -br address show dev {DEVICE} scope global 2>&1"
    words += f"; ip link show dev {DEVICE} 2>&1 | grep -o 'mtu [0-9]*'; true"
    return shell(world, words)


@contextmanager
def hammered(world: World) -> Iterator[Process]:
    """Connects to the Internet again and again meanwhile."""
    ready, stop = world.folder / "hammered", world.folder / "enough"
    argv = [sys.executable, "-c", HAMMER, INTERNET_IP, str(WEB_PORT), str(ready), str(stop)]
    process = world.start(world.client, argv, "hammer")
    process.wait_until(ready.exists, "a connection succeeds")
    yield process
    stop.touch()
    process.wait(10.0)


def is_beyond(world: World, count: int) -> Callable[[], bool]:
    """Whether more was restored than that."""
    return lambda: world.status()["capture"]["restored"] > count


def is_as(world: World, before: object) -> Callable[[], bool]:
    """Whether the kernel has what it had before."""
    return lambda: installed(world) == before


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.situation(
    "somebody flushes nftables, rules, routes or the device beside captured connections",
    plain="a VPN's traffic goes direct",
)
def test_what_somebody_removes_is_restored(world: World, mode: str) -> None:
    watch_for_leaks(world)
    world.web()
    world.serve()
    assert source_seen(world) == "10.11.0.2", "the direct way is there without Sumrate"
    assert leaked(world) > 0, "what goes directly is counted"
    up = world.up(mode, "--only-to", "8.20.0.0/24")
    world.wait_for_paths(up)
    chain = "output" if mode == "--tun" else "take"
    slowest = 0.0
    watch_for_leaks(world)
    with hammered(world):
        for what, words in CASES[mode].items():
            before, count = installed(world), world.status()["capture"]["restored"]
            [table] = re.findall(r"table inet (sumrate_\w+)", shell(world, "nft list tables"))
            routes = re.findall(r"lookup (139\d+)", shell(world, "ip rule"))
            began = time.monotonic()
            shell(world, words, TABLE=table, CHAIN=chain, ROUTES=routes[0] if routes else "")
            up.wait_until(
                is_beyond(world, count),
                f"{what}: status says that it is restored",
                BACK_S,
            )
            slowest = max(slowest, time.monotonic() - began)
            up.wait_until(is_as(world, before), f"{what} as before", BACK_S)
            assert "it is there again" in up.tail(), what
            assert source_seen(world) == EXIT_IP, what
            assert leaked(world) == 0, what
    world.measured(f"{len(CASES[mode])} parts back after at most {slowest:.1f} s, no packet direct")


BROKEN = "#!/bin/sh\necho 'it is broken' >&2\nexit 1\n"


@pytest.mark.parametrize("mode", ["--tproxy", "--tun"])
@pytest.mark.situation(
    "somebody removes routes and the program that makes them", plain="a VPN's traffic goes direct"
)
def test_what_cannot_be_restored_is_refused_and_said(world: World, mode: str) -> None:
    watch_for_leaks(world)
    world.web()
    world.serve()
    up = world.up(mode)
    world.wait_for_paths(up)
    assert source_seen(world) == EXIT_IP
    broken = world.folder / "broken"
    program = os.path.realpath(
        shutil.which("ip", path="/usr/local/sbin:/usr/sbin:/sbin:/bin") or ""
    )
    within = ["nsenter", "--target", str(up.pid), "--mount", "--"]
    broken.write_text(BROKEN, encoding="ascii")
    broken.chmod(0o755)
    [table, *_] = re.findall(r"lookup (139\d+)", shell(world, "ip rule"))
    run([*within, "mount", "--bind", str(broken), program])
    shell(world, "ip -4 route flush table $ROUTES; ip -6 route flush table $ROUTES", ROUTES=table)
    up.wait_until(lambda: world.status()["capture"]["broken"], "status says so", BACK_S)
    assert "it is broken" in up.tail()
    assert "cannot be made again" in up.tail()
    assert source_seen(world).startswith("curl:"), "refused"
    run([*within, "umount", program])
    up.wait_until(lambda: not world.status()["capture"]["broken"], "it is restored", BACK_S)
    assert source_seen(world) == EXIT_IP
    assert leaked(world) == 0
    world.measured("refused, and status and log say why; works when it can be restored")


PATIENCE_S = 12.0
"""More than a refusal takes on a busy machine, less than the 25 s that a program waits at most."""


@pytest.mark.parametrize("how", ["drop", "reject with tcp reset"])
@pytest.mark.situation("the server is unreachable for a while", plain="hangs or is refused")
def test_connections_are_refused_while_no_path_reaches_the_server(world: World, how: str) -> None:
    world.web()
    world.serve()
    up = world.up("--redirect")
    world.wait_for_paths(up)
    assert source_seen(world) == EXIT_IP
    for radio in world.radios:
        world.cut(radio, how)
    waited = []
    for proxy in ("", None, None, ""):
        began = time.monotonic()
        said = world.curl(URL, "--max-time", "25", proxy=proxy)
        waited.append(time.monotonic() - began)
        assert said.startswith("curl:"), said
        assert "timed out" not in said, said
        if proxy is None:
            assert "(3)" in said, "SOCKS says that the network is unreachable: " + said
    assert max(waited) < PATIENCE_S, waited
    [line] = [line for line in up.tail().splitlines() if "new connections are refused" in line]
    assert "the Sumrate server 203.0.113.1:4433 is not reachable" in line, "said once"
    assert "wifi0" in line, line
    assert "lte0" in line, line
    for radio in world.radios:
        world.restore(radio)
    began = time.monotonic()
    up.wait_until(lambda: source_seen(world) == EXIT_IP, "it works again", PATIENCE_S)
    back = time.monotonic() - began
    world.measured(f"{how}: refused after at most {max(waited):.1f} s; back after {back:.1f} s")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("when_down", ["refuse", "direct"])
@pytest.mark.situation("boot while the server is down", plain="a VPN's traffic goes direct")
def test_a_boot_without_the_server_goes_on_trying(world: World, mode: str, when_down: str) -> None:
    watch_for_leaks(world)
    world.web()
    world.serve().stop()
    # The credential is on the disk, and nobody listens.
    up = world.up(mode, "--when-down", when_down, wait=False)
    up.wait_until(lambda: "It is tried until" in up.tail(), "the log says so", 30.0)
    up.wait_until((world.folder / "up.ready").exists, "it serves", 10.0)
    status = world.status()
    assert status["capture"]["waits"] == (when_down == "direct")
    assert status["outage"] is not None
    said = source_seen(world)
    if when_down == "refuse":
        assert said.startswith("curl:"), said
        assert leaked(world) == 0, "nothing goes directly"
    else:
        assert said == "10.11.0.2", said
    world.serve(name="again")
    up.wait_until(lambda: source_seen(world) == EXIT_IP, "it is captured", 40.0)
    assert not world.status()["capture"]["waits"]
    world.measured(
        f"{when_down}: {'refused' if when_down == 'refuse' else 'direct'}, then captured"
    )


@pytest.mark.parametrize("how", ["unknown", "silent"])
@pytest.mark.situation("boot while the server's name has no address", plain="a VPN does not start")
def test_a_boot_without_names_goes_on_trying(world: World, how: str) -> None:
    watch_for_leaks(world)
    world.web()
    world.serve(advertise=[f"{NAME}:{SERVER_PORT}"])
    if how == "silent":
        world.name(NAME, SERVER_IP)
        for radio in world.radios.values():
            radio.router.filter("no_names", {"input": "udp dport 53 drop"})
    up = world.up("--redirect", "--when-down", "refuse", wait=False)
    up.wait_until((world.folder / "up.ready").exists, "it serves", 30.0)
    said = source_seen(world)
    assert said.startswith("curl:"), said
    assert leaked(world) == 0, "nothing goes directly"
    assert NAME in up.tail(), "the log names what cannot be resolved"
    if how == "silent":
        for radio in world.radios.values():
            radio.router.unfilter("no_names")
    else:
        world.name(NAME, SERVER_IP)
    began = time.monotonic()
    up.wait_until(lambda: source_seen(world) == EXIT_IP, "it is captured", 60.0)
    world.measured(f"{how}: refused, then captured after {time.monotonic() - began:.0f} s")


@pytest.mark.parametrize("mode", ["--redirect", "--tproxy"])
@pytest.mark.situation("a browser that prefers HTTP/3", plain="its UDP goes direct past a proxy")
def test_http3_falls_back_to_tcp(world: World, mode: str) -> None:
    watch_for_leaks(world)
    world.echo(port=443)
    world.serve()
    asked = [sys.executable, "-c", DATAGRAM, INTERNET_IP, "443"]
    with_quic = world.up(mode)
    assert world.client.run(asked).strip() == "answered", "it goes directly without the option"
    assert leaked(world) > 0
    with_quic.stop()
    watch_for_leaks(world)
    world.up(mode, "--refuse-quic", name="refusing")
    assert world.client.run(asked).strip() == "refused", "at once, by ICMP"
    assert leaked(world) == 0
    world.measured("refused at once by ICMP; TCP is captured")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.situation(
    "a name with addresses of both families, an exit without IPv6",
    plain="a VPN accepts and resets: curl fails",
    ipv6=True,
)
def test_a_family_that_the_exit_lacks_is_not_accepted(world: World, mode: str) -> None:
    world.web()
    world.server.run(["ip", "-6", "address", "flush", "dev", "lo", "to", SERVER_IP6])
    world.server.run(["ip", "-6", "address", "flush", "dev", "net0", "scope", "global"])
    world.server.run(["ip", "-6", "route", "flush", "default"])
    # As a user's: with a private one alone, programs would prefer IPv4.
    world.client.run(["ip", "-6", "address", "add", "2a00:99::2/64", "dev", "wifi0", "nodad"])
    world.serve()
    # Its name server has such an address, too: questions are captured before.
    up = world.up(mode, "--dns", INTERNET_IP)
    world.client.name_servers(INTERNET_IP6)
    up.wait_until(lambda: world.status()["capture"]["ipv6_refused"], "the exit said so", 10.0)
    assert "no way to IPv6" in up.tail()
    for _ in range(3):
        answer = world.curl("http://internet.test/", proxy="")
        assert json.loads(answer)["source"] == EXIT_IP, answer
    said = world.curl(f"http://[{INTERNET_IP6}]/", proxy="")
    assert "Failed to connect" in said or "Couldn't connect" in said, "it is not accepted: " + said
    world.measured("curl falls back to IPv4 at once")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.situation("an exit with IPv6", plain="works", ipv6=True)
def test_a_family_that_the_exit_has_is_captured(world: World, mode: str) -> None:
    world.web()
    world.serve()
    up = world.up(mode)
    world.wait_for_paths(up)
    answer = world.curl(f"http://[{INTERNET_IP6}]/", proxy="")
    assert answer.startswith("{"), answer
    assert json.loads(answer)["source"] == "2a00:20:8::1", answer
    assert not world.status()["capture"]["ipv6_refused"]
    world.measured("IPv6 is captured")
