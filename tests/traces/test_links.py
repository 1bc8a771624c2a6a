"""Links that follow traces, in the configuration and in the emulator itself."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from sumrate.lab.links import CLIENT, SERVER, Blackout, Emulator, configuration
from sumrate.lab.namespaces import Host
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.programs import have
from sumrate.lab.scene import radio
from sumrate.traces import TraceFormatError, generate, write
from tests.system.scenario import isolated

WIGIG = radio("wigig", 1, 1800.0, 2.0, Blackout(2.0, 4.0))


def test_a_trace_replaces_the_rate_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / 'a "trace".trace'
    trace = generate("wigig-nlos", 1, 5)
    write(trace, path)
    link = WIGIG.with_trace(path, "b_to_a")
    link = replace(link, up=replace(link.up, delay_ms=link.up.delay_ms + 5))
    link = replace(link, down=replace(link.down, delay_ms=link.down.delay_ms + 5))
    (config,) = tomllib.loads(configuration([link], seed=1))["link"]
    assert config["b_to_a"] == {"trace": str(path), "delay_ms": 6.0, "queue_ms": 20.0}
    assert config["a_to_b"] == {"rate_mbps": 1800.0, "delay_ms": 6.0, "queue_ms": 20.0}
    assert config["schedule_start"] == "trigger"
    assert config["schedule"][0] == {"at_s": 0.0, "direction": "b_to_a", "trace": str(path)}
    assert [entry["at_s"] for entry in config["schedule"]] == [0.0, 2.0, 4.0]
    assert link.down.rate_mbps == trace.mean_rate_mbps


def test_both_directions_of_a_radio_follow_one_trace(tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    write(generate("wigig-nlos", 1, 5), path)
    link = WIGIG.with_trace(path)
    assert link.up.trace == link.down.trace == path


def test_wrong_traces_and_directions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(TraceFormatError, match="line 1"):
        WIGIG.with_trace(path)
    with pytest.raises(ValueError, match="direction"):
        WIGIG.with_trace(path, "down")


@pytest.mark.system
def test_the_emulator_reads_what_is_written() -> None:
    """It reports the mean rate of the trace that it plays, and refuses a damaged file."""
    if not have("sumrate-link"):
        pytest.skip("sumrate-link is not built: run `make build`")

    def scenario(scratch: Path) -> None:
        for host in (CLIENT, SERVER):
            Host(host)
        path = scratch / "x.trace"
        trace = generate("wigig-mobility", 1, 30)
        write(trace, path)
        links = [WIGIG.with_trace(path)]
        with Emulator(links, seed=1, folder=scratch) as emulator:
            emulator.trigger()
            stats = emulator.stats()
            assert stats["triggers"] == 1
            for direction in ("a_to_b", "b_to_a"):
                found = stats["links"][0][direction]["parameters"]
                assert found["trace"]
                assert found["rate_mbps"] == pytest.approx(trace.mean_rate_mbps, abs=1e-5)
        path.write_text(path.read_text(encoding="utf-8").replace("10 ", "ten ", 1), "utf-8")
        with (
            pytest.raises(ProcessFailedError, match="line 4 of the trace"),
            Emulator(links, seed=1, folder=scratch),
        ):
            pass

    isolated(scenario)
