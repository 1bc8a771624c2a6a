"""What people read when something is wrong: in the log, in `status` and from `doctor`."""

import json
import re
import time
from typing import Any

import pytest

from sumrate.lab.programs import program
from tests.world.scene import HTTP_PORT, INTERNET_IP, LTE, SERVER_IP, SERVER_PORT, WIFI, World
from tests.world.test_servers import (
    NAMED,
    first_server,
    in_words,
    log,
    nat64,
    needs_tayga,
    only_ipv6,
    portal,
    tunnel,
    unreachable,
)

URL = f"http://{INTERNET_IP}/"
UNREACHABLE = "the Sumrate server server.test:4433 is not reachable"
CODES = re.compile(r"os error \d+|Authentication|Busy|NetworkUnreachable")
Finding = dict[str, Any]


def doctor(world: World, link: bool = True) -> list[Finding]:
    """What `sumrate doctor` finds, apart from what it finds of the machine itself."""
    argv = [str(program("sumrate")), "doctor", "--json"]
    done = world.run(world.client, argv + ([f"@{world.link_file()}"] if link else []), timeout_s=60)
    report, _ = json.JSONDecoder().raw_decode(done.stdout)
    found: list[Finding] = report["findings"]
    return found


def about(findings: list[Finding], check: str, interface: str | None) -> Finding:
    """The one finding of a check about an interface."""
    found = [f for f in findings if (f["check"], f["interface"]) == (check, interface)]
    assert len(found) == 1, findings
    return found[0]


def refused_soon(world: World) -> str:
    """What a program is told by the HTTP proxy, and that it is told soon."""
    began = time.monotonic()
    proxy = f"http://127.0.0.1:{HTTP_PORT}"
    said = world.curl(URL, "--max-time", "20", proxy=proxy)
    # 2 s of patience; with a margin for a busy machine. It was 25 s.
    assert time.monotonic() - began < 12, said
    return said


@pytest.mark.situation("the server's program has stopped", plain="connection refused")
def test_programs_are_told_that_the_server_refuses(world: World) -> None:
    server = first_server(world)
    daemon = world.up("-v", "--http", f"127.0.0.1:{HTTP_PORT}")
    world.wait_for_paths(daemon)
    server.kill()
    said = refused_soon(world)
    words = f"{UNREACHABLE} (connection refused on lte0 and wifi0)"
    assert words in said or words in log(daemon), (said, log(daemon))
    assert not CODES.search(log(daemon)), log(daemon)
    assert "connection refused on lte0 and wifi0" in in_words(world), in_words(world)
    world.measured("refused within a few seconds, with the reason")


@pytest.mark.situation("the server's machine is silent", plain="hangs for 2 minutes")
def test_programs_are_told_that_nothing_comes_back(world: World) -> None:
    first_server(world)
    daemon = world.up("-v", "--http", f"127.0.0.1:{HTTP_PORT}")
    world.wait_for_paths(daemon)
    unreachable(world, SERVER_IP)
    said = refused_soon(world)
    assert f"{UNREACHABLE} (" in said + log(daemon), (said, log(daemon))
    assert not CODES.search(log(daemon)), log(daemon)
    world.measured("refused within a few seconds")


@pytest.mark.situation("a revoked credential", plain="not concerned")
def test_a_refused_credential_is_named_with_path_and_address(world: World) -> None:
    server = first_server(world)
    server.stop()
    for credential in (world.folder / "state/credentials").iterdir():
        credential.unlink()
    old = world.link_file().read_text(encoding="ascii").strip()
    first_server(world)
    daemon = world.up(link=old, wait=False)
    assert daemon.wait(40) == 1, log(daemon)
    expected = (
        rf"{SERVER_IP}:{SERVER_PORT} over (wifi0|lte0): the server does not accept the link's"
    )
    assert re.search(expected, log(daemon)), log(daemon)
    assert not CODES.search(log(daemon)), log(daemon)
    world.measured("says where and over which path the credential is refused")


@pytest.mark.situation("doctor: a captive portal on WiFi", plain="no connection")
def test_doctor_knows_a_captive_portal(world: World) -> None:
    first_server(world)
    world.dns(world.radios[LTE].router, f"--server={INTERNET_IP}")
    portal(world)
    findings = doctor(world)
    found = about(findings, "captive-portal", WIFI)
    assert found["level"] == "warning" and found["mend"] == f"sumrate up LINK --not {WIFI}"
    assert world.radios[WIFI].gateway in found["found"], found
    assert about(findings, "server", LTE)["level"] == "ok"
    # The command mends it.
    daemon = world.up("--not", WIFI)
    world.wait_for_paths(daemon, LTE)
    world.measured("named, with the command that leaves WiFi out")


@pytest.mark.situation("doctor: the resolver is behind a dead uplink", plain="names wait 10 s")
def test_doctor_knows_a_resolver_behind_a_dead_uplink(world: World) -> None:
    first_server(world)
    world.dns(world.radios[LTE].router, f"--server={INTERNET_IP}")
    world.cut(WIFI, router_too=True)
    findings = doctor(world)
    found = about(findings, "name-server", None)
    assert found["level"] == "problem" and world.radios[WIFI].gateway in found["found"], found
    assert found["mend"] == f"resolvectl dns {LTE} {world.radios[LTE].gateway}"
    world.client.name_servers(world.radios[LTE].gateway)
    mended = [f for f in doctor(world) if f["check"] == "name-server"]
    assert mended == [], mended
    world.measured("named, with a name server that answers")


@pytest.mark.situation("doctor: the server has banned one network", plain="hangs")
def test_doctor_knows_a_ban(world: World) -> None:
    first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    uplink = world.radios[WIFI].uplink
    world.server.filter("ban", {"input": f"ip saddr {uplink} drop"})
    findings = doctor(world)
    found = about(findings, "server", WIFI)
    assert "may have banned" in found["found"] and found["mend"].startswith("on the server: ")
    assert about(findings, "server", LTE)["level"] == "ok"
    world.server.unfilter("ban")
    assert about(doctor(world), "server", WIFI)["level"] == "ok"
    world.measured("named as a likely ban, as the other network gets through")


@needs_tayga
@pytest.mark.situation("doctor: a network without IPv4", plain="unreachable", ipv6=True)
def test_doctor_knows_whether_there_is_a_nat64(world: World) -> None:
    first_server(world, advertise=f"{SERVER_IP}:{SERVER_PORT}")
    only_ipv6(world)
    world.client.name_servers("fd00:1::1")
    found = about(doctor(world), "server", WIFI)
    assert found["level"] == "problem" and "has no NAT64" in found["found"], found
    assert "--listen '[::]:PORT'" in found["mend"]
    nat64(world)
    router = world.radios[WIFI].router
    world.dns(router, "--address=/ipv4only.arpa/2a00:64::c000:aa")
    found = about(doctor(world), "server", WIFI)
    assert found["level"] == "ok" and "[2a00:64::cb00:7101]" in found["found"], found
    world.measured("says that there is none, or reaches the server by it")


@pytest.mark.situation("doctor: a tunnel, a filter of reverse paths", plain="not concerned")
def test_doctor_knows_tunnels_and_reverse_path_filters(world: World) -> None:
    first_server(world)
    tunnel(world, "tun7")
    world.client.sysctl("net.ipv4.conf.all.rp_filter", "1")
    findings = doctor(world)
    found = about(findings, "interface", "tun7")
    assert found["level"] == "ok" and "it is a tunnel (tun)" in found["found"], found
    assert found["mend"] == "sumrate up LINK --backup tun7"
    found = about(findings, "reverse-path-filter", LTE)
    assert (found["level"], found["mend"]) == (
        "problem",
        f"sysctl -w net.ipv4.conf.{LTE}.rp_filter=2",
    )
    world.client.run(found["mend"].split())
    assert about(doctor(world), "reverse-path-filter", LTE)["level"] == "ok"
    world.measured("both, each with its command")


@pytest.mark.situation("a server without IPv6", plain="not concerned")
def test_a_missing_family_at_the_exit_is_said(world: World) -> None:
    world.web()
    first_server(world, advertise=NAMED)
    daemon = world.up()
    world.wait_for_paths(daemon)
    daemon.wait_until(
        lambda: "the server has no IPv6: connections to IPv6 addresses fail" in in_words(world),
        "status names the family",
    )
    world.measured("`status` says that the server has no IPv6")
