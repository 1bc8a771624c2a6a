"""Whatever one connection, name, peer, client or credential does, others keep their latency."""

import json
import statistics
import time
from collections.abc import Sequence

import pytest

from sumrate.lab.process import Process
from tests.world.scene import (
    ECHO_PORT,
    INTERNET_IP,
    SERVER_IP,
    SERVER_PORT,
    SOCKS_PORT,
    WIFI,
    World,
)

SILENT = "9.9.{}.*"
"""Addresses that drop silently."""
DEAD_SERVER = "9.9.9.9"
SLOWEST_MS = 2000.0
"""A connection in this network takes milliseconds; a busy machine is given this time. Those that
waited for others took 3 to 10 s."""
ENDLESS_PORT = 19
OTHER_SOCKS = SOCKS_PORT + 1


def load(world: World, what: str, *words: object, name: str = "") -> Process:
    """Starts one of the programs of `load.py` on the client."""
    return world.python(world.client, "load", what, *map(str, words), name=name or f"load-{what}")


def result(world: World, process: Process, timeout_s: float = 30.0) -> object:
    """What a program of `load.py` printed last."""
    assert process.wait(timeout_s) == 0, process.tail()
    return json.loads(process.log.read_text(encoding="utf-8").splitlines()[-1])


def flood(world: World, *words: object, name: str = "flood") -> Process:
    """A neighbour: connects at a rate (RATE, SECONDS, PORT, HOLD, HOST...) by the first client."""
    return load(world, "connect", SOCKS_PORT, *words, name=name)


def judged(world: World, took: object, control: object, what: str) -> None:
    """Every connection was made, and none waited for others."""
    assert isinstance(took, list) and isinstance(control, list)
    failed = [ms for ms in took if isinstance(ms, str)]
    made = [ms for ms in took if isinstance(ms, float)]
    usual = statistics.median(ms for ms in control if isinstance(ms, float))
    world.measured(
        f"{what}: {len(made)} of {len(took)} connections made, median "
        f"{statistics.median(made or [0]):.0f} ms, slowest {max(made, default=0):.0f} ms "
        f"(alone {usual:.0f} ms)"
    )
    assert not failed, failed[:3]
    assert max(made) < SLOWEST_MS


def probe(world: World, host: str = INTERNET_IP, *, socks: int = SOCKS_PORT, seconds: float = 2.0,
          name: str = "probe") -> object:  # fmt: skip
    """How long connections to a host that answers take now."""
    words = (socks, 10, seconds, ECHO_PORT, 0, host)
    return result(world, load(world, "connect", *words, name=name))


@pytest.mark.situation(
    "40 and 200 connections a second to addresses that drop silently",
    plain="no other connection notices",
)
@pytest.mark.parametrize("programs", [1, 5])
def test_silent_addresses_delay_no_other_connection(world: World, programs: int) -> None:
    world.serve()
    world.echo()
    world.wait_for_paths(world.up())
    control = probe(world, name="control")
    for number in range(programs):
        flood(world, 40, 20, 80, 0, SILENT.format(number), name=f"flood{number}")
    time.sleep(5)
    took = probe(world, seconds=5)
    status = world.status("serve")
    judged(world, took, control, "beside them")
    connecting = status["attempts"]["connecting"]
    world.measured(f"{connecting} attempts were under way")
    assert connecting > 100


@pytest.mark.situation(
    "40 connections a second to names whose name server is silent",
    plain="no other connection notices",
)
def test_names_that_nobody_answers_for_delay_no_others(world: World) -> None:
    world.service("silent", world.internet, 5353)
    names = f"--addn-hosts={world.folder / 'names'}"
    dead = ("--server=/dead.test/127.0.0.1#5353", "--dns-forward-max=10000")
    world.dns(world.internet, names, "--local=/test/", *dead)
    world.serve()
    world.echo()
    world.wait_for_paths(world.up())
    control = probe(world, "internet.test", name="control")
    flood(world, 40, 20, 80, 0, "a*.dead.test")
    time.sleep(4)
    judged(world, probe(world, seconds=3), control, "an address beside them")
    for number in range(30):
        world.name(f"name{number}.test", INTERNET_IP)
    by_name = probe(world, "name*.test", seconds=2.5, name="names")
    judged(world, by_name, control, "names")
    assert world.status("serve")["attempts"]["resolving"] > 20


@pytest.mark.situation(
    "the first of the server's two name servers is silent",
    plain="every new name takes 5 s (getaddrinfo)",
)
def test_a_silent_name_server_is_not_waited_for(world: World) -> None:
    world.server.name_servers(DEAD_SERVER, INTERNET_IP)
    world.serve()
    world.echo()
    world.wait_for_paths(world.up())
    control = probe(world, name="control")
    for number in range(30):
        world.name(f"name{number}.test", INTERNET_IP)
    judged(world, probe(world, "name*.test", seconds=2.5), control, "names")
    world.server.name_servers(INTERNET_IP)
    world.server.hosts.write_text(f"127.0.0.1 localhost\n{INTERNET_IP} own.host\n", "ascii")
    time.sleep(1.2)
    judged(world, probe(world, "own.host", seconds=1), control, "a name of /etc/hosts, added now")


@pytest.mark.situation(
    "one UDP socket sends 33 datagrams at once to one new peer", plain="all 33 come back"
)
@pytest.mark.parametrize("host", [INTERNET_IP, "internet.test"])
def test_a_burst_to_a_new_peer_arrives(world: World, host: str) -> None:
    world.serve()
    world.echo()
    world.wait_for_paths(world.up())
    direct = result(world, load(world, "datagrams", 0, 33, 1200, INTERNET_IP, ECHO_PORT))
    words = (SOCKS_PORT, 33, 1200, host, ECHO_PORT)
    through = result(world, load(world, "datagrams", *words, name="through"))
    assert isinstance(direct, dict) and isinstance(through, dict)
    world.measured(f"{through['back']} of 33 to {host} come back (directly {direct['back']})")
    assert through["back"] == 33 == direct["back"]
    assert world.status("serve")["udp"]["dropped_datagrams"] == 0


@pytest.mark.situation(
    "with --tun, one UDP socket sends 64 datagrams at once to one new peer",
    plain="all 64 come back",
)
def test_a_burst_that_a_device_takes_arrives(world: World) -> None:
    world.serve()
    world.echo()
    world.wait_for_paths(world.up("--tun"))
    through = result(world, load(world, "datagrams", 0, 64, 1200, INTERNET_IP, ECHO_PORT))
    assert isinstance(through, dict)
    carried = world.status("up")["udp"]
    world.measured(f"{through['back']} of 64 come back, {carried['sent_datagrams']} were carried")
    assert through["back"] == 64 == carried["sent_datagrams"]


@pytest.mark.situation(
    "wrong proofs, 150 a second, from behind the router of another client",
    plain="no other connection notices",
)
def test_wrong_proofs_do_not_limit_clients_of_the_same_address(world: World) -> None:
    world.serve()
    world.echo()
    only_wifi = ("--path", f"wifi={WIFI}")

    def joined(name: str) -> float:
        begun = time.monotonic()
        daemon = world.up(*only_wifi, name=name, socks_port=OTHER_SOCKS)
        took = time.monotonic() - begun
        daemon.stop()
        return took

    control = joined("control")
    attack = load(world, "knock", SERVER_IP, SERVER_PORT, 150, 8)
    time.sleep(4)
    took = max(joined(f"neighbour{number}") for number in range(3))
    world.measured(
        f"a client is connected after {took * 1e3:.0f} ms at most (alone {control * 1e3:.0f} ms)"
    )
    assert took < control + SLOWEST_MS / 1e3
    refused = result(world, attack)
    assert isinstance(refused, int) and refused > 300, refused


@pytest.mark.situation(
    "one program keeps 600 UDP sockets open", plain="other programs' datagrams are carried"
)
def test_many_associations_keep_no_other_program_out(world: World) -> None:
    world.serve()
    world.echo()
    world.wait_for_paths(world.up())
    greedy = load(world, "associate", SOCKS_PORT, 600, 20, INTERNET_IP, ECHO_PORT)
    greedy.wait_until(lambda: "open" in greedy.tail(), "the associations are open")
    words = (SOCKS_PORT, 10, 100, INTERNET_IP, ECHO_PORT)
    through = result(world, load(world, "datagrams", *words, name="other"))
    assert isinstance(through, dict)
    world.measured(f"{through['back']} of 10 datagrams of another program come back")
    assert through["back"] == 10


@pytest.mark.situation(
    "a server with 1024 descriptors, and a client that keeps thousands of connections open",
    plain="another client of the same link is not concerned",
)
def test_a_client_with_all_its_connections_leaves_some_to_others(world: World) -> None:
    world.serve(prefix=("prlimit", "--nofile=1024:1024"))
    world.echo()
    world.wait_for_paths(world.up())
    world.up(name="other", socks_port=OTHER_SOCKS)
    control = probe(world, socks=OTHER_SOCKS, name="control")
    greedy = flood(world, 200, 8, ECHO_PORT, 1, INTERNET_IP)
    time.sleep(4)
    judged(world, probe(world, socks=OTHER_SOCKS, seconds=2), control, "another client")
    held = result(world, greedy)
    assert isinstance(held, list) and any(isinstance(ms, str) for ms in held), "it met its limit"


@pytest.mark.situation(
    "a server with 64 MB for clients, and programs that never read 200 endless downloads",
    plain="other connections do not notice",
)
def test_programs_that_do_not_read_take_no_memory_from_others(world: World) -> None:
    world.serve("--memory", "64M")
    world.echo()
    world.service("endless", world.internet, ENDLESS_PORT)
    world.wait_for_paths(world.up())
    world.up(name="other", socks_port=OTHER_SOCKS)
    control = probe(world, socks=OTHER_SOCKS, name="control")
    flood(world, 100, 2, ENDLESS_PORT, 20, INTERNET_IP)
    time.sleep(3)
    judged(world, probe(world, socks=OTHER_SOCKS, name="other-probe"), control, "another client")
    judged(world, probe(world), control, "the client itself")


def lines(process: Process) -> Sequence[str]:
    """What a program logged."""
    return process.log.read_text(encoding="utf-8", errors="replace").splitlines()


@pytest.mark.situation("a program tries 1000 forbidden destinations", plain="nothing is logged")
def test_a_scan_fills_no_log(world: World) -> None:
    server = world.serve()
    daemon = world.up()
    world.wait_for_paths(daemon)
    result(world, flood(world, 200, 5, 80, 0, "10.66.1.*", "192.168.7.*", "a..b", "no*.test"))
    counted = sum(world.status("serve")["refusals"]["reasons"].values())
    world.measured(
        f"{counted} refusals make {len(lines(server))} lines at the server and "
        f"{len(lines(daemon))} at the client"
    )
    assert counted > 400
    assert len(lines(server)) < 30 and len(lines(daemon)) < 30
