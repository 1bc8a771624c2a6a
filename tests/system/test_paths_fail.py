"""A path fails in each way that paths fail: the transfer completes and the path returns."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.endpoints.sumrate import SERVER_PORT, status
from sumrate.lab.faults.bench import Bench, bench, wire
from tests.system.scenario import Transfer, isolated, needs_sumrate, transfer

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
SIZE = 160 << 20
RETURN_TIMEOUT_S = 60.0


def active_paths(built: Bench) -> set[str]:
    """Names of the client's paths that are active now."""
    sessions = status(built, "up")["sessions"]
    return {path["name"] for session in sessions for path in session["paths"] if is_active(path)}


def is_active(path: dict[str, object]) -> bool:
    return path["health"] == "active"


def wait_for_paths(running: Transfer, wanted: set[str]) -> None:
    """Waits until exactly these paths are active; the limit only ends a test that hangs."""
    running.daemon.wait_until(
        lambda: active_paths(running.bench) == wanted,
        f"{sorted(wanted)} active (now {sorted(active_paths(running.bench))})",
        timeout_s=RETURN_TIMEOUT_S,
    )


def carried_bytes(running: Transfer, name: str) -> int:
    """Bytes of the stream that the client received by this path, each once."""
    sessions = status(running.bench, "up")["sessions"]
    return sum(
        int(path["received_bytes"])
        for session in sessions
        for path in session["paths"]
        if path["name"] == name
    )


def with_transfer(body: Callable[[Bench, Transfer], None]) -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built, transfer(built, SIZE) as running:
            body(built, running)

    isolated(scenario)


def test_transfer_uses_both_paths() -> None:
    def body(_built: Bench, running: Transfer) -> None:
        wait_for_paths(running, {"wifi", "wigig"})
        running.run()
        assert carried_bytes(running, "wifi") > SIZE // 10
        assert carried_bytes(running, "wigig") > SIZE // 10

    with_transfer(body)


def test_path_refused_at_start_joins_when_it_is_accepted() -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built:
            built.refuse(WIFI, SERVER_PORT)
            with transfer(built, SIZE) as running:
                running.at(0.5, built.accept)
                running.run()
                wait_for_paths(running, {"wifi", "wigig"})

    isolated(scenario)


@pytest.mark.parametrize("link", [WIFI, WIGIG], ids=lambda link: str(link.name))
def test_connection_killed_in_transfer(link: object) -> None:
    def body(built: Bench, running: Transfer) -> None:
        address = WIFI.server_ip if link is WIFI else WIGIG.server_ip

        def kill() -> None:
            built.client.run(["ss", "-K", "dst", address, "dport", "=", f":{SERVER_PORT}"])

        wait_for_paths(running, {"wifi", "wigig"})
        running.at(0.3, kill)
        running.at(0.6, kill)
        running.run()
        wait_for_paths(running, {"wifi", "wigig"})

    with_transfer(body)


@pytest.mark.parametrize("link", [WIFI, WIGIG], ids=lambda link: str(link.name))
def test_interface_removed_and_added_again(link: object) -> None:
    def body(built: Bench, running: Transfer) -> None:
        gone = WIFI if link is WIFI else WIGIG
        wait_for_paths(running, {"wifi", "wigig"})
        running.at(0.25, lambda: built.unplug(gone))
        running.at(0.5, lambda: built.plug(gone))
        running.run()
        wait_for_paths(running, {"wifi", "wigig"})

    with_transfer(body)


def test_server_port_closed_and_opened_again_on_one_path() -> None:
    def body(built: Bench, running: Transfer) -> None:
        wait_for_paths(running, {"wifi", "wigig"})
        running.at(0.25, lambda: built.refuse(WIGIG, SERVER_PORT))
        running.at(0.6, built.accept)
        running.run()
        wait_for_paths(running, {"wifi", "wigig"})

    with_transfer(body)


def test_all_paths_closed_for_a_while() -> None:
    """The session outlives the loss of all its paths (--linger)."""

    def body(built: Bench, running: Transfer) -> None:
        def interrupt() -> None:
            for link in (WIFI, WIGIG):
                built.client.run(["ip", "link", "set", link.interface, "down"])
            time.sleep(1.0)  # the length of the outage, not a wait for something
            for link in (WIFI, WIGIG):
                built.client.run(["ip", "link", "set", link.interface, "up"])

        wait_for_paths(running, {"wifi", "wigig"})
        running.at(0.4, interrupt)
        running.run()
        wait_for_paths(running, {"wifi", "wigig"})

    with_transfer(body)


def test_a_stall_and_the_delay_of_bytes_that_wait_for_others_are_reported() -> None:
    silence_s = 1.0

    def body(built: Bench, running: Transfer) -> None:
        said: dict[str, Any] = {}

        def silence() -> None:
            built.filter((WIFI, WIGIG), "counter drop")
            time.sleep(silence_s)  # the length of the silence, not a wait for something
            assert built.pass_all() > 0, "the silence concerned nothing"

        def look() -> None:
            (stream,) = status(built, "up")["sessions"][0]["streams"]
            said.update(stream)

        wait_for_paths(running, {"wifi", "wigig"})
        running.at(0.4, silence)
        running.at(0.8, look)
        running.run()
        # Nothing arrived in the meantime, but for what had passed the filter.
        assert said["longest_stall_ms"] > 900 * silence_s, said
        delay = said["in_order_delay_ms"]
        assert 0 < delay["p99"] <= delay["max"], said

    with_transfer(body)
