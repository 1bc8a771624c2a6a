"""Addresses that no interface of the server has and that are routed to it all the same."""

from pathlib import Path

import pytest

from sumrate.lab.endpoints.base import FILE_NAME, HTTP_PORT, file_server
from sumrate.lab.endpoints.sumrate import serve, up
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.payload import make_payload
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 200.0)
ROUTED = "77.0.0.9"
PROXY = "127.0.0.1:8080"


@pytest.mark.parametrize("allowed", [False, True])
def test_an_address_that_is_routed_here_is_not_reached(allowed: bool) -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, WIFI) as built:
            built.server.run(["ip", "route", "add", "local", "77.0.0.0/24", "dev", "lo"])
            payload = make_payload(scratch / "sent.bin", 5000, seed=3)
            options = ("--allow", ROUTED) if allowed else ()
            url = f"http://{ROUTED}:{HTTP_PORT}/{FILE_NAME}"
            received = scratch / "received"
            with (
                file_server(built, payload, address=ROUTED),
                serve(built, *options),
                up(built, "--http", PROXY),
            ):
                proxy = ("--proxy", f"http://{PROXY}")
                built.client.run(["curl", "--silent", *proxy, "--output", str(received), url])
            answer = received.read_bytes()
            assert (b"the server's own address" in answer) == (not allowed), answer[:200]
            assert (len(answer) == payload.size) == allowed

    isolated(scenario)
