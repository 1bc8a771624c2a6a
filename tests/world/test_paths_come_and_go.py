"""Paths come, go and change their names: what it costs on the wire, and how soon they are back."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sumrate.lab.links import Impairment
from sumrate.lab.namespaces import Host
from sumrate.lab.process import Process
from tests.world.scene import ECHO_PORT, INTERNET_IP, LTE, SERVER_PORT, SOCKS_PORT, WIFI, World

SERVER = f"203.0.113.1:{SERVER_PORT}"
MONTH_S = 30 * 24 * 3600.0
IDLE_S = 46.0
BANNED = "banned"
"""Table of the server's packet filter: what it drops of new connections."""
RENEWALS = """
while :; do
    ip address change 10.2.0.2/24 dev lte0 valid_lft 3600 preferred_lft 3600
    ip link add veth7 type veth peer name veth8
    ip address add 172.17.0.1/16 dev veth7; ip link set veth7 up; ip link set veth8 up
    ip route add 198.51.100.0/24 dev lte0
    sleep 0.1
    ip link delete veth7
    ip route delete 198.51.100.0/24 dev lte0
    sleep 0.1
done
"""
"""What a router's advertisements and containers do to a machine, more often."""


def load(world: World, *words: object, name: str) -> Process:
    """Connects through the client's proxy: RATE, SECONDS, PORT, HOLD_S and HOST of `load.py`."""
    told = map(str, ("connect", SOCKS_PORT, *words))
    return world.python(world.client, "load", *told, name=name)


@contextmanager
def traffic(world: World) -> Iterator[None]:
    """Connections through the proxy, so that a silent path is noticed."""
    process = load(world, 20, 600, ECHO_PORT, 0.5, INTERNET_IP, name="traffic")
    yield
    process.stop()


def started(world: World, *options: str) -> Process:
    """The server, a service behind it, and a client with both paths."""
    world.serve()
    world.echo()
    client = world.up(*options)
    world.wait_for_paths(client)
    return client


def syns(world: World, radio: str = WIFI) -> int:
    """SYNs that left the client for the server on a radio."""
    return world.syns(radio).get(SERVER, 0)


def lose(world: World, client: Process, radio: str = WIFI, how: str = "drop") -> float:
    """Lets a radio fall silent; waits until the client has noticed. Gives when it fell silent."""
    world.reset_counts()
    world.cut(radio, how)
    begun = time.monotonic()
    client.wait_until(lambda: radio not in world.active_paths(), f"{radio} is lost", 10.0)
    return begun


@pytest.mark.situation(
    "addresses are renewed, and a container comes and goes, beside a dead path",
    plain="not concerned",
)
def test_events_of_others_cause_no_attempts_on_a_dead_path(world: World) -> None:
    client = started(world)
    with traffic(world):
        lose(world, client)
        time.sleep(5)
        world.reset_counts()
        time.sleep(15)
        quiet = syns(world)
        renewing = world.start(world.client, ["sh", "-c", RENEWALS], "renewals")
        world.reset_counts()
        time.sleep(15)
        renewed = syns(world)
        renewing.stop()
        world.reset_counts()
        world.client.run(["ip", "address", "add", "10.1.0.3/24", "dev", WIFI])
        client.wait_until(lambda: syns(world) > 0, "its own address changed: it is tried")
        world.restore(WIFI)
        world.wait_for_paths(client)
    world.measured(f"{renewed} SYN in 15 s, {quiet} without events")
    assert quiet <= 4 and renewed <= 4


@pytest.mark.situation(
    "a radio is silent for 2 s", plain="its connections go on at the next retransmission"
)
def test_a_silent_radio_is_back_soon_after_few_attempts(world: World) -> None:
    client = started(world)
    with traffic(world):
        begun = lose(world, client)
        time.sleep(max(0.0, begun + 2 - time.monotonic()))
        before = syns(world)
        restoring = time.monotonic()
        world.restore(WIFI)
        # By a new connection, or by TCP's own next attempt on the old one.
        client.wait_until(lambda: WIFI in world.active_paths(), "the radio is back", 10.0)
        took = time.monotonic() - restoring
        after = syns(world)
    world.measured(f"back after {took * 1e3:.0f} ms, {before} SYN while silent, {after} in all")
    # Without probes the next attempt comes after 7 s.
    assert took < 3.0
    assert after <= 3


@pytest.mark.situation(
    "the same where UDP does not pass", plain="its connections go on at the next retransmission"
)
def test_without_udp_a_few_attempts_find_the_radio(world: World) -> None:
    router = world.radios[WIFI].router
    router.filter("no_udp", {"forward": f"udp dport {SERVER_PORT} drop"}, priority=-20)
    client = started(world)
    time.sleep(4)  # it is found out that no probe is answered
    with traffic(world):
        begun = lose(world, client)
        time.sleep(max(0.0, begun + 3 - time.monotonic()))
        early = syns(world)
        restored = time.monotonic()
        world.restore(WIFI)
        world.wait_for_paths(client, timeout_s=30.0)
        took = time.monotonic() - restored
    world.measured(f"back after {took:.1f} s, {early} SYN in 3 s")
    assert 1 <= early <= 3
    assert took < 15.0


@pytest.mark.situation(
    "the server drops new connections of an address that made many (`ufw limit`)",
    plain="each attempt prolongs the ban",
)
def test_a_server_that_limits_connections_is_found_out(world: World) -> None:
    client = started(world)
    with traffic(world):
        lose(world, client, how="reject with tcp reset")
        drop = f"ip saddr 10.11.0.2 tcp dport {SERVER_PORT} ct state new drop"
        world.server.filter(BANNED, {"input": drop}, priority=-10)
        world.restore(WIFI)

        def said() -> str:
            paths = world.status()["sessions"][0]["paths"]
            error = next(path for path in paths if path["name"] == WIFI).get("last_error")
            return str(error["reason"]) if error else ""

        client.wait_until(lambda: "answers probes" in said(), "the ban is said", 60.0)
        world.reset_counts()
        time.sleep(20)
        banned = syns(world)
        world.server.unfilter(BANNED)
        world.wait_for_paths(client, timeout_s=90.0)
    world.measured(f"{banned} SYN in 20 s, then back")
    assert banned <= 3


def replugged(world: World, name: str) -> None:
    """The second radio comes back under another name."""
    world.links[LTE].plug()
    run = world.client.run
    run(["ip", "link", "set", LTE, "down"])
    run(["ip", "link", "set", LTE, "name", name])
    run(["ip", "link", "set", name, "up"])
    gateway = world.radios[LTE].gateway
    run(["ip", "route", "replace", "default", "via", gateway, "dev", name, "metric", "200"])


def path(world: World, name: str) -> dict[str, object]:
    """What the status says of a path."""
    paths = world.status()["sessions"][0]["paths"]
    return dict(next(path for path in paths if path["name"] == name))


@pytest.mark.parametrize("kind", ["lte*", "gateway:10.2.0.1"])
@pytest.mark.situation("a metered phone comes back under another name", plain="not concerned")
def test_a_policy_of_a_kind_is_that_of_each_of_its_interfaces(world: World, kind: str) -> None:
    client = started(world, "--policy", f"{kind}=backup,metered,quota=1G")
    assert path(world, LTE)["priority"] == "backup"
    world.unplug(LTE)
    client.wait_until(lambda: world.active_paths() == {WIFI}, "the phone is gone")
    replugged(world, "lte7")
    world.wait_for_paths(client, WIFI, "lte7")
    found = path(world, "lte7")
    world.measured(
        f"{found['priority']}, metered: {found['metered']}, quota {json.dumps(found['quota'])}"
    )
    assert found["priority"] == "backup" and found["metered"] is True
    quota = found["quota"]
    assert isinstance(quota, dict) and quota["limit_bytes"] == 10**9


@pytest.mark.situation(
    "a phone with a policy by name comes back under another name", plain="not concerned"
)
def test_an_interface_that_nobody_named_is_a_backup_where_a_named_one_is_missing(
    world: World,
) -> None:
    client = started(world, "--policy", f"{LTE}=backup,metered")
    world.unplug(LTE)
    client.wait_until(lambda: world.active_paths() == {WIFI}, "the phone is gone")
    replugged(world, "lte7")
    world.wait_for_paths(client, WIFI, "lte7")
    said = "lte7 is new and lte0 is missing"
    client.wait_until(lambda: said in client.log.read_text(encoding="utf-8"), "it is said")
    world.measured(str(path(world, "lte7")["priority"]))
    assert path(world, "lte7")["priority"] == "backup"


def carried(router: Host) -> int:
    """Bytes that the counters of the router's table `idle` have seen."""
    listed = json.loads(router.run(["nft", "-j", "list", "table", "inet", "idle"]))["nftables"]
    rules = [item["rule"]["expr"] for item in listed if "rule" in item]
    return sum(part["counter"]["bytes"] for rule in rules for part in rule if "counter" in part)


@pytest.mark.situation(
    "one idle stream, nothing is carried", plain="sends nothing, or a keepalive every 2 hours"
)
def test_an_idle_path_costs_less_than_20_mb_a_month(world: World) -> None:
    client = started(world)
    held = load(world, 1, 0.1, ECHO_PORT, 600, INTERNET_IP, name="held")
    time.sleep(15)
    assert held.poll() is None and client.poll() is None
    for radio in world.radios.values():
        rules = {"forward": f"tcp sport {SERVER_PORT} counter; tcp dport {SERVER_PORT} counter"}
        radio.router.filter("idle", rules)
    # Each end's probe comes every 45 s; both are in this time.
    time.sleep(IDLE_S)
    costs = {
        name: carried(radio.router) * MONTH_S / IDLE_S / 1e6 for name, radio in world.radios.items()
    }
    said = ", ".join(f"{name} {cost:.1f} MB" for name, cost in costs.items())
    world.measured(f"{said} a month")
    assert all(0 < cost < 20 for cost in costs.values()), costs


@pytest.mark.situation(
    "a slow path (630 ms, 120 kbit/s) is silent for a while",
    plain="its connections go on at the next retransmission",
    shapes={WIFI: Impairment(rate_mbps=0.12, delay_ms=315.0, queue_ms=2000.0)},
)
def test_a_slow_path_is_dialled_at_its_own_pace(world: World) -> None:
    world.serve()
    world.echo()
    client = world.up()
    world.wait_for_paths(client, timeout_s=30.0)
    with traffic(world):
        begun = lose(world, client)
        time.sleep(max(0.0, begun + 4 - time.monotonic()))
        world.restore(WIFI)
        world.wait_for_paths(client, timeout_s=60.0)
        time.sleep(5)
        count = syns(world)
    world.measured(f"{count} SYN")
    assert count <= 5
