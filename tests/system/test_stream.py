"""One short stream through every scheme over emulated radios; nothing is timed."""

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.endpoints import (
    Aggligator,
    KernelMptcp,
    KernelMptcpBackup,
    Scheme,
    SinglePath,
    Sumrate,
    Tquic,
    Unavailable,
)
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.scene import Scene, scene
from sumrate.lab.stream.driver import PROGRAM, run_sink, timing
from sumrate.lab.stream_run import Pace, StreamResult, run_stream
from sumrate.lab.traffic import parse
from tests.samples import WIFI, WIGIG
from tests.system.scenario import isolated, needs_emulator, needs_sumrate

pytestmark = [pytest.mark.system, needs_emulator]

SECONDS = 1.5
MIN_BYTES = 1_000_000
Connections = list[dict[str, Any]]


def available(scheme: Scheme) -> None:
    try:
        scheme.check()
    except Unavailable as reason:
        pytest.skip(str(reason))


def carried(
    scheme: Scheme, built: Scene, pace: Pace | None = None
) -> tuple[StreamResult, Connections]:
    """A stream, and the server's connections near its end."""
    seen: Connections = []

    def look() -> None:
        time.sleep(SECONDS * 0.7)  # not for an event: the connections are to carry something
        seen.extend(parse(built.server.run(["ss", "-tniH"])))

    with scheme.stream(built) as reach:
        result = run_stream(built, reach, seconds=SECONDS, pace=pace, on_first_byte=look)
    document = result.document
    bins = document["bins"]["bytes"]
    assert document["error"] is None
    assert bins == sorted(bins)
    assert bins[-1] == document["total_bytes"] > MIN_BYTES
    assert len(bins) == round(SECONDS / document["bins"]["step_s"])
    assert {"source", "sink"} <= set(result.cpu_seconds)
    assert {c["congestion_control"] for c in seen} <= {built.congestion_control}
    return result, seen


def links_used(seen: Connections) -> set[str]:
    return {
        link.name
        for link in (WIFI, WIGIG)
        for connection in seen
        if f"{link.server_ip}:" in connection["local"].replace("]", "")
    }


def radios(scratch: Path, congestion_control: str = "cubic") -> AbstractContextManager[Scene]:
    return scene(
        (WIFI, WIGIG), seed=1, folder=scratch / "scene", congestion_control=congestion_control
    )


def test_single_path_uses_its_link_only() -> None:
    def scenario(scratch: Path) -> None:
        with radios(scratch) as built:
            _, seen = carried(SinglePath(WIGIG, "WiGig alone"), built)
        assert links_used(seen) == {"wigig"}

    isolated(scenario)


@pytest.mark.parametrize("congestion_control", ["cubic", "bbr"])
def test_mptcp_uses_both_links(congestion_control: str) -> None:
    available(KernelMptcp())

    def scenario(scratch: Path) -> None:
        with radios(scratch, congestion_control) as built:
            _, seen = carried(KernelMptcp(), built)
        assert links_used(seen) == {"wifi", "wigig"}
        assert all(connection["mptcp"] for connection in seen)

    isolated(scenario)


def test_slow_start_ends_where_a_link_says() -> None:
    def scenario(scratch: Path) -> None:
        said: list[str] = []
        link = replace(WIFI, ssthresh=20)
        with (
            scene((link,), seed=1, folder=scratch / "scene", congestion_control="reno") as built,
            SinglePath(link, "WiFi alone").stream(built) as reach,
        ):

            def look() -> None:
                said.append(built.server.run(["ss", "-tniH"]))

            run_stream(built, reach, seconds=SECONDS, on_first_byte=look)
        assert " ssthresh:20 " in said[0]

    isolated(scenario)


@pytest.mark.parametrize("backup", ["wifi", "wigig"])
def test_a_backup_rests_while_the_other_link_works(backup: str) -> None:
    available(KernelMptcpBackup())

    def scenario(scratch: Path) -> None:
        with radios(scratch) as built:
            _, seen = carried(KernelMptcpBackup(backup=backup), built)
        assert links_used(seen) == {"wifi", "wigig"} - {backup}

    isolated(scenario)


@needs_sumrate
def test_sumrate_uses_both_links_and_follows_its_options() -> None:
    def scenario(scratch: Path) -> None:
        options = ("--scheduler", "two-ended")
        with radios(scratch) as built:
            result, seen = carried(Sumrate("two-ended", "Two-ended", options), built)
        assert links_used(seen) == {"wifi", "wigig"}
        assert {"sumrate serve", "sumrate up"} <= set(result.cpu_seconds)
        with_options = [c for c in result.commands if "--scheduler two-ended" in c]
        assert len(with_options) == 2

    isolated(scenario)


@needs_sumrate
def test_paced_blocks_have_delays() -> None:
    def scenario(scratch: Path) -> None:
        with radios(scratch) as built:
            result, _ = carried(Sumrate(), built, Pace(100.0))
        delay = result.document["delay"]
        assert delay["blocks"] > 100
        assert delay["min_ms"] > 0.5, "the faster link takes 1 ms"
        assert delay["min_ms"] <= delay["p50_ms"] <= delay["p99_ms"] <= delay["max_ms"]

    isolated(scenario)


@pytest.mark.parametrize("congestion_control", ["cubic", "bbr"])
def test_aggligator_has_one_connection_for_each_link(congestion_control: str) -> None:
    available(Aggligator())

    def scenario(scratch: Path) -> None:
        with radios(scratch, congestion_control) as built:
            result, seen = carried(Aggligator(), built)
        links = [c for c in seen if ":5800" in c["local"]]
        assert links_used(links) == {"wifi", "wigig"}
        assert len(links) == 2
        assert {"agg-tunnel server", "agg-tunnel client"} <= set(result.cpu_seconds)

    isolated(scenario)


@pytest.mark.parametrize(
    "scheme",
    [Aggligator(), Tquic(), Tquic("tquic-round-robin", options=("roundrobin",))],
    ids=lambda s: s.name,
)
def test_peers_measure_themselves(scheme: Scheme) -> None:
    available(scheme)

    def scenario(scratch: Path) -> None:
        with radios(scratch) as built:
            measured = scheme.bench(built, 2.0, 0.0)
            stats = built.emulator.stats()
        assert measured.goodput_mbps > 0
        for link in stats["links"]:
            assert link["b_to_a"]["counters"]["bytes_out"] > MIN_BYTES, link

    isolated(scenario)


def test_a_stream_to_nobody_fails_with_what_was_said() -> None:
    def scenario(scratch: Path) -> None:
        with radios(scratch) as built:
            output = built.folder / "out.json"
            argv = [*PROGRAM, "sink", "--address", WIFI.server_ip, "--port", "9"]
            argv += timing(1.0, 0.0, output)
            with pytest.raises(ProcessFailedError, match="Connection refused"):
                run_sink(built, argv, output, measured_s=1.0)

    isolated(scenario)
