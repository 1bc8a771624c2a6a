"""A client without named paths: which interfaces are paths, and which it says are none."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import serve, status, status_socket, up
from sumrate.lab.faults.bench import Bench, bench, wire
from sumrate.lab.programs import program
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
WIGIG = wire("wigig", 2, 400.0)
CONTAINERS = "docker0"


def in_words(built: Bench) -> str:
    argv = [str(program("sumrate")), "status", "--socket", str(status_socket(built, "up"))]
    return built.client.run(argv)


def paths(built: Bench) -> set[str]:
    return {path["name"] for path in status(built, "up")["sessions"][0]["paths"]}


def test_interfaces_without_a_route_to_the_server_are_named() -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI, WIGIG) as built, ExitStack() as stack:
            for command in (
                f"link add {CONTAINERS} type veth peer name container",
                "link set container up",
                f"address add 172.17.0.1/16 dev {CONTAINERS}",
                f"link set {CONTAINERS} up",
            ):
                built.client.run(["ip", *command.split()])
            stack.enter_context(serve(built))
            daemon = stack.enter_context(up(built, paths=()))
            radios = {WIFI.interface, WIGIG.interface}
            daemon.wait_until(lambda: paths(built) == radios, f"both radios, not {paths(built)}")
            assert status(built, "up")["unrouted_interfaces"] == [CONTAINERS]
            assert f"{CONTAINERS} (no route to the server leads through it)" in in_words(built)
            server = status(built, "serve")
            assert "unrouted_interfaces" not in server
            # With a route it is a path like any other, and nothing is left out any more.
            address = server["sessions"][0]["paths"][0]["local"].rpartition(":")[0]
            built.client.run(["ip", "route", "add", address, "dev", CONTAINERS, "metric", "9000"])
            daemon.wait_until(lambda: CONTAINERS in paths(built), "the new route is used")
            assert "unrouted_interfaces" not in status(built, "up")
            assert "no route" not in in_words(built)

    isolated(scenario)
