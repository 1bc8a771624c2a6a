"""Several servers by chance or on purpose, names that lie, and what stands before a server."""

import json
import os
import shutil
from pathlib import Path

import pytest

from sumrate.lab.process import Process
from sumrate.lab.programs import program
from tests.world.scene import INTERNET_IP, LTE, SERVER_IP, SERVER_PORT, WIFI, World

NGINX_STREAM = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips where one of these is not installed."""
    missing = [name for name in programs if not shutil.which(name, path=PATH)]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found")


needs_haproxy, needs_tayga = needs("haproxy"), needs("tayga")
SECOND_IP = "203.0.113.2"
NAMED = f"server.test:{SERVER_PORT}"
URL = f"http://{INTERNET_IP}/"
BLAMED = "credential"


def second_server(world: World, state: str, name: str = "second") -> Process:
    """A server at another address of the same machine."""
    world.server.run(["ip", "address", "add", f"{SECOND_IP}/32", "dev", "lo"])
    listen = f"{SECOND_IP}:{SERVER_PORT}"
    return world.serve(name=name, state=state, listen=listen, advertise=(listen,))


def first_server(world: World, *options: str, advertise: str = NAMED) -> Process:
    """The server at its usual address alone."""
    listen = f"{SERVER_IP}:{SERVER_PORT}"
    return world.serve(*options, listen=listen, advertise=(advertise,))


def unreachable(world: World, address: str) -> None:
    """Drops what goes to this address of the server's machine."""
    world.server.filter("down", {"prerouting": f"ip daddr {address} drop"}, priority=-400)


def works(world: World) -> bool:
    """Whether a new connection reaches the Internet by the exit."""
    return '"source": "8.20.0.1"' in world.curl(URL, "--max-time", "4")


def in_words(world: World, name: str = "up") -> str:
    """What `sumrate status` prints."""
    argv = [str(program("sumrate")), "status", "--socket", str(world.folder / f"{name}.sock")]
    return world.client.run(argv)


def wait_for_paths(world: World, daemon: Process, name: str, *wanted: str) -> None:
    """Waits until exactly these paths of a client of this name are active."""
    what = f"{wanted} active"
    daemon.wait_until(lambda: world.active_paths(name) == set(wanted), what)


def log(process: Process) -> str:
    """What a daemon has said."""
    return process.tail(100_000)


@pytest.mark.situation(
    "a name with two addresses, the same state at each", plain="one address, no second path"
)
def test_paths_stay_at_the_one_server_of_a_name_that_has_the_session(world: World) -> None:
    world.web()
    first_server(world)
    shutil.copytree(world.folder / "state", world.folder / "copied")
    second_server(world, "copied")
    world.name("server.test", SERVER_IP, SECOND_IP)
    assert NAMED in world.link_file().read_text(encoding="ascii"), "the link has the name"
    for start in range(3):
        daemon = world.up(name=f"up{start}")
        wait_for_paths(world, daemon, f"up{start}", WIFI, LTE)
        assert works(world)
        paths = world.status(f"up{start}")["sessions"][0]["paths"]
        assert len({path["remote"] for path in paths}) == 1, paths
        assert BLAMED not in log(daemon)
        daemon.stop()
    world.measured("both paths at the server that opened the session, 3 of 3 starts")


@pytest.mark.situation(
    "a name with two addresses, another state at one", plain="fails half of the time"
)
@pytest.mark.parametrize("lost", ["credential", "key"])
def test_the_server_of_the_link_is_found_among_those_of_its_name(world: World, lost: str) -> None:
    world.web()
    first_server(world)
    if lost == "credential":
        shutil.copytree(world.folder / "state", world.folder / "other")
        for credential in (world.folder / "other/credentials").iterdir():
            credential.unlink()
    second_server(world, "other")
    world.name("server.test", SECOND_IP, SERVER_IP)
    for start in range(3):
        daemon = world.up(name=f"up{start}")
        wait_for_paths(world, daemon, f"up{start}", WIFI, LTE)
        assert works(world)
        daemon.stop()
    world.measured(f"connected at once beside a server with another {lost}")


@pytest.mark.situation("two servers on purpose, the first one lost", plain="no connection")
def test_the_next_server_is_used_while_no_path_reaches_the_first(world: World) -> None:
    world.web()
    first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    second_server(world, "other")
    daemon = world.up(f"@{world.link_file('second')}")
    world.wait_for_paths(daemon)

    def in_use() -> list[bool]:
        return [server["in_use"] for server in world.status()["servers"]]

    assert in_use() == [True, False] and works(world)
    unreachable(world, SERVER_IP)
    # Nobody notices while nothing is sent; what is asked for now is asked of the other server.
    assert '"source": "8.20.0.1"' in world.curl(URL, "--max-time", "20")
    assert in_use() == [False, True]
    assert works(world)
    words = in_words(world)
    assert f"server 2: {SECOND_IP}:{SERVER_PORT}, in use for" in words, words
    world.server.unfilter("down")
    daemon.wait_until(lambda: in_use() == [True, False], "the first server is used again", 60)
    assert works(world)
    assert "is reached again; new connections go by it" in log(daemon)
    world.measured("the second one is used while the first is away")


@pytest.mark.situation("the first of two servers is down at the start", plain="no connection")
def test_a_start_goes_by_the_next_server_that_is_reached(world: World) -> None:
    world.web()
    first = first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    second_server(world, "other")
    first.stop()
    daemon = world.up(f"@{world.link_file('second')}")
    world.wait_for_paths(daemon)
    assert works(world)
    first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    wanted = [True, False]
    daemon.wait_until(
        lambda: [server["in_use"] for server in world.status()["servers"]] == wanted,
        "the first server is used once it is there",
        60,
    )
    assert works(world)
    world.measured("by the second one, later by the first")


def portal(world: World) -> None:
    """A captive portal on the first radio: every name is its own, and nothing passes."""
    router = world.radios[WIFI].router
    world.dns(router, f"--address=/#/{world.radios[WIFI].gateway}")
    world.cut(WIFI)


@pytest.mark.situation("a captive portal answers every name", plain="no connection by LTE either")
def test_a_server_that_has_answered_is_found_beside_a_portal_that_lies(world: World) -> None:
    world.web()
    first_server(world)
    daemon = world.up()
    world.wait_for_paths(daemon)
    daemon.stop()
    portal(world)
    assert (
        world.radios[WIFI].gateway
        in world.run(world.client, ["getent", "hosts", "server.test"]).stdout
    ), "the portal lies"
    again = world.up()
    world.wait_for_paths(again, LTE)
    assert works(world)
    again.stop()
    # Without what is kept on disk nobody could know.
    lost = world.up(name="lost", wait=False)
    assert lost.wait(40) == 1, log(lost)
    assert world.radios[WIFI].gateway in log(lost)
    world.measured("by LTE, at the address that answered last, also after a restart")


@pytest.mark.situation(
    "a captive portal, and a name server on LTE", plain="asks the portal for every name"
)
def test_each_network_is_asked_for_names_itself(world: World) -> None:
    world.web()
    first_server(world)
    world.dns(world.radios[LTE].router, f"--server={INTERNET_IP}")
    portal(world)
    daemon = world.up()
    world.wait_for_paths(daemon, LTE)
    assert works(world)
    kept = json.loads((world.folder / "up.state/server-addresses.json").read_text())
    assert kept == {NAMED: [f"{SERVER_IP}:{SERVER_PORT}"]}, "and not what the portal said"
    world.restore(WIFI)
    world.dns(world.radios[WIFI].router, f"--server={INTERNET_IP}")
    world.wait_for_paths(daemon, WIFI, LTE, timeout_s=60)
    world.measured("LTE's own name server is asked; WiFi joins once the portal is gone")


@pytest.mark.situation("a tunnel with a default route in another table", plain="not concerned")
def test_a_tunnel_is_no_path_unless_it_is_named(world: World) -> None:
    world.web()
    first_server(world)
    tunnel(world, "tun7")
    daemon = world.up()
    world.wait_for_paths(daemon)
    left_out = world.status()["left_out"]
    assert [(found["interface"], found["why"]) for found in left_out] == [("tun7", "tunnel")]
    assert "not used: tun7 (it is a tunnel (tun)" in log(daemon), log(daemon)
    daemon.stop()
    named = world.up("--backup", "tun7", "--not", LTE, name="named")
    named.wait_until(
        lambda: (
            {path["name"] for path in world.status("named")["sessions"][0]["paths"]}
            == {WIFI, "tun7"}
        ),
        "the tunnel is a path where it is named, and LTE is none",
    )
    left_out = world.status("named")["left_out"]
    assert [(found["interface"], found["why"]) for found in left_out] == [(LTE, "not-wanted")]
    world.measured("left out and said; --backup tun7 takes it, --not lte0 leaves LTE out")


def tunnel(world: World, name: str) -> None:
    """An interface of a VPN, whose packets a program gets and drops."""
    ready = world.folder / f"{name}.there"
    process = world.python(world.client, "tunnel", name, str(ready), name=name)
    process.wait_until(ready.exists, "the tunnel is there")
    for command in (
        f"address add 100.100.0.2/32 dev {name}",
        f"link set {name} up",
        f"route add default dev {name} table 51820",
        "rule add fwmark 0xca6c lookup 51820",
    ):
        world.client.run(["ip", *command.split()])


@needs_tayga
@pytest.mark.situation(
    "a network without IPv4, a server with IPv4", plain="the name by DNS64", ipv6=True
)
@pytest.mark.parametrize("by", ["dns", "advertisement"])
def test_an_ipv6_only_network_reaches_the_server_by_its_nat64(world: World, by: str) -> None:
    world.web()
    first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    only_ipv6(world)
    nat64(world)
    router = world.radios[WIFI].router
    world.client.name_servers("fd00:1::1")
    if by == "dns":
        world.dns(router, "--address=/ipv4only.arpa/2a00:64::c000:aa")
    else:
        world.dns(router, "--address=/ipv4only.arpa/#")
        advertiser = world.python(router, "router_advertiser", "lan", "2a00:64::")
        assert advertiser.poll() is None
    daemon = world.up()
    world.wait_for_paths(daemon, WIFI)
    path = next(p for p in world.status()["sessions"][0]["paths"] if p["name"] == WIFI)
    assert path["remote"] == f"[2a00:64::cb00:7101]:{SERVER_PORT}", path
    assert works(world)
    world.measured(f"the prefix is found by {by}")


@pytest.mark.situation(
    "a network without IPv4 and NAT64, a server with IPv4", plain="unreachable", ipv6=True
)
def test_the_true_reason_is_said_where_no_nat64_leads_to_the_server(world: World) -> None:
    first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    only_ipv6(world)
    world.client.name_servers("fd00:1::1")
    daemon = world.up(wait=False)
    assert daemon.wait(40) == 1, log(daemon)
    said = log(daemon)
    assert f"{WIFI}: it has IPv6 only, its network has no NAT64" in said, said
    assert f"({SERVER_IP})" in said and "--path" not in said, said
    world.measured("`up` says that the network has no NAT64")


def only_ipv6(world: World) -> None:
    """Takes IPv4 from the client's radios; the second one is off."""
    world.client.run(["ip", "-4", "address", "flush", "dev", WIFI])
    world.client.run(["ip", "link", "set", LTE, "down"])


def nat64(world: World) -> None:
    """Makes the first router one that translates 2a00:64::/96."""
    router = world.radios[WIFI].router
    folder = world.folder / "tayga"
    folder.mkdir()
    config = folder / "tayga.conf"
    lines = (
        "tun-device nat64",
        "ipv4-addr 192.168.255.1",
        "ipv6-addr fd00:64::1",
        "prefix 2a00:64::/96",
        "dynamic-pool 192.168.255.0/24",
        f"data-dir {folder}",
    )
    config.write_text("\n".join(lines) + "\n", encoding="ascii")
    router.run(["tayga", "--mktun", "--config", str(config)])
    for command in (
        "link set nat64 up",
        "address add 192.168.255.254/32 dev nat64",
        "route add 192.168.255.0/24 dev nat64",
        "-6 route add 2a00:64::/96 dev nat64",
    ):
        router.run(["ip", *command.split()])
    world.start(router, ["tayga", "--nodetach", "--config", str(config)], "tayga")


def haproxy(world: World, *backend: str) -> None:
    """HAProxy on the server's machine at port 443, in front of the server."""
    config = world.folder / "haproxy.cfg"
    lines = (
        "defaults",
        "  mode tcp",
        "  timeout connect 5s",
        "  timeout client 1h",
        "  timeout server 1h",
        "listen front",
        f"  bind {SERVER_IP}:443",
        *(f"  {line}" for line in backend),
    )
    config.write_text("\n".join(lines) + "\n", encoding="ascii")
    world.start(world.server, ["haproxy", "-db", "-f", str(config)], "haproxy")


def nginx(world: World) -> None:
    """Nginx on the server's machine at port 443, in front of the server."""
    folder = world.folder / "nginx"
    folder.mkdir()
    config = folder / "nginx.conf"
    text = f"""
load_module {NGINX_STREAM};
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
stream {{
  server {{
    listen {SERVER_IP}:443;
    proxy_pass {SERVER_IP}:{SERVER_PORT};
    proxy_protocol on;
    proxy_bind {SERVER_IP};
  }}
}}
"""
    config.write_text(text, encoding="ascii")
    world.start(world.server, ["nginx", "-c", str(config), "-p", str(folder)], "nginx")


SENDS = f"server sumrate {SERVER_IP}:{SERVER_PORT} source {SERVER_IP}"


@needs_haproxy
@pytest.mark.situation("a provider blocks TLS without a server name", plain="browsers send one")
def test_the_servers_name_is_told_where_the_link_or_a_flag_has_one(world: World) -> None:
    world.web()
    inspect = (
        "tcp-request inspect-delay 5s",
        "tcp-request content reject if !{ req.ssl_sni -m found }",
    )
    haproxy(world, *inspect, SENDS)
    first_server(world, advertise="server.test:443")
    daemon = world.up(name="named")
    wait_for_paths(world, daemon, "named", WIFI, LTE)
    daemon.stop()
    text = world.link_file().read_text(encoding="ascii").strip()
    numbered = world.folder / "numbered.link"
    numbered.write_text(text.replace("server.test", SERVER_IP), encoding="ascii")
    numbered.chmod(0o600)
    blocked = world.up(name="blocked", link=numbered, wait=False)
    assert blocked.wait(40) == 1, "the block works"
    daemon = world.up("--sni", "www.example.org", link=numbered)
    world.wait_for_paths(daemon)
    assert works(world)
    world.measured("the name of the link, or --sni")


@needs_haproxy
@pytest.mark.situation("a provider passes known application protocols only", plain="h2 passes")
def test_another_application_protocol_can_be_named(world: World) -> None:
    world.web()
    inspect = ("tcp-request inspect-delay 5s", "tcp-request content reject if !{ req.ssl_alpn h2 }")
    haproxy(world, *inspect, SENDS)
    first_server(world, "--alpn", "h2", advertise="server.test:443")
    blocked = world.up(name="blocked", wait=False)
    assert blocked.wait(40) == 1, "the block works"
    daemon = world.up("--alpn", "h2")
    world.wait_for_paths(daemon)
    assert works(world)
    world.measured("--alpn h2 at both ends")


@needs("haproxy", "nginx", "nc")
@pytest.mark.skipif(not NGINX_STREAM.exists(), reason="nginx's module for streams not found")
@pytest.mark.situation("a server behind a proxy that terminates TCP", plain="logs the proxy")
@pytest.mark.parametrize("front", ["haproxy", "nginx"])
def test_a_server_behind_a_proxy_knows_the_addresses_of_its_clients(
    world: World, front: str
) -> None:
    world.web()
    if front == "haproxy":
        haproxy(world, f"{SENDS} send-proxy-v2")
    else:
        nginx(world)
    first_server(world, "--proxy-protocol", SERVER_IP, advertise=f"{SERVER_IP}:443")
    daemon = world.up()
    world.wait_for_paths(daemon)
    assert works(world)
    paths = world.status("serve")["sessions"][0]["paths"]
    seen = {path["name"]: path["remote"].rpartition(":")[0] for path in paths}
    assert seen == {name: radio.uplink for name, radio in world.radios.items()}
    # A header from elsewhere is not believed: the server is no open door to other sources.
    header = f"PROXY TCP4 192.0.2.7 {SERVER_IP} 1 1\\r\\n"
    lie = f"printf '{header}' | timeout 5 nc {SERVER_IP} {SERVER_PORT}"
    assert world.run(world.client, ["sh", "-c", lie]).stdout.startswith("\x15"), "a TLS alert"
    world.measured(f"{front} tells the client's address")
