"""Calls: the two ends over loopback, what counts as lost and late, what a file may say."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from sumrate.lab.calls.near import LOST_NS, summary
from sumrate.lab.calls.transport import Stream
from sumrate.lab.experiment import calls
from sumrate.lab.experiment.judge import judge
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load
from sumrate.lab.experiment.model import Check, Selection
from sumrate.lab.experiment.record import Run
from sumrate.lab.stream.socks import datagram_head

MS = 1_000_000
ENDS = (sys.executable, "-m", "sumrate.lab.ends")


@contextmanager
def far(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The far end on loopback, once it serves."""
    ready = folder / "ready"
    argv = [*ENDS, "far", "--listen", "127.0.0.1", "--port", str(port), "--ready", str(ready)]
    with subprocess.Popen(argv) as process:
        try:
            while not ready.exists():
                assert process.poll() is None
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def free_port() -> int:
    """A port that nobody listens on, over TCP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("flags", [(), ("--datagrams",)], ids=["tcp", "udp"])
def test_every_message_comes_back(tmp_path: Path, flags: tuple[str, ...]) -> None:
    port, output = free_port(), tmp_path / "call.json"
    with far(tmp_path, port):
        argv = [*ENDS, "near", "--address", "127.0.0.1", "--port", str(port), "--time", "0.6"]
        argv += ["--interval", "5", "--warmup", "0.2", "--output", str(output), *flags]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    said = json.loads(output.read_text())
    assert done.stdout.strip() == "first-byte"
    assert said["offered"] == 120
    assert said["lost_share"] == 0.0
    assert 0 < said["p50_ms"] <= said["p99_ms"] <= said["p999_ms"] <= said["max_ms"] < 2000


def test_a_connection_that_ends_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        argv = [*ENDS, "near", "--address", "127.0.0.1", "--port", str(port), "--time", "5"]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
            listener.accept()[0].close()
            _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.startswith("error: ")


def test_the_lost_count_among_the_slowest() -> None:
    # 0 and 1 are not counted; 1000 are, of which one is late and one lost.
    latencies = dict.fromkeys(range(1002), 2 * MS) | {5: 400 * MS}
    del latencies[7]
    said = summary(latencies, 2, 1002)
    assert said["offered"] == 1000
    assert said["lost_share"] == 0.001
    assert said["late_share"] == 0.002
    assert (said["p50_ms"], said["p999_ms"], said["max_ms"]) == (2.0, 400.0, LOST_NS / 1e6)
    assert said["slowest_ms"] == [2.0] * 9 + [400.0, LOST_NS / 1e6]
    # To be later than a lost one is no worse: to lose must not beat being late.
    assert summary(latencies | {20: 2 * LOST_NS}, 2, 1002)["max_ms"] == LOST_NS / 1e6
    # Two lost ones of a thousand are more than 0.1 %.
    del latencies[9]
    assert summary(latencies, 2, 1002)["p999_ms"] == LOST_NS / 1e6


def test_a_stream_is_cut_into_messages() -> None:
    near, away = socket.socketpair()
    with near, away:
        stream = Stream(near, 4)
        away.sendall(b"aaaabb")
        assert list(stream.receive()) == [b"aaaa"]
        away.sendall(b"bbcccc")
        assert list(stream.receive()) == [b"bbbb", b"cccc"]


def test_the_head_of_a_proxys_datagram() -> None:
    assert datagram_head("10.9.8.7", 258) == bytes([0, 0, 0, 1, 10, 9, 8, 7, 1, 2])


def test_what_is_added_is_over_the_better_link_of_the_same_repetition() -> None:
    experiment = load("calls")
    runs: list[Run] = []
    for repetition, (wifi, wigig, own) in enumerate([(5.0, 4.0, 20.0), (6.0, 9.0, 7.0)]):
        values = [
            ("wifi", "clear", wifi),
            ("wigig", "clear", wigig),
            ("wigig", "wigig-flaps", 2000.0),
            ("sumrate", "wigig-flaps", own),
        ]
        for scheme, condition, value in values:
            run = Run(scheme, condition, "cubic", "default", repetition, 1)
            run.add("message_p999_ms", value, "ms")
            runs.append(run)
    calls.add_message_delays(experiment, runs)
    added = [run.value("message_p999_added_ms") for run in runs if run.scheme == "sumrate"]
    assert added == [16.0, 1.0]


def called(scheme: str, condition: str, repetition: int, slowest: list[float]) -> Run:
    run = Run(scheme, condition, "cubic", "default", repetition, 1)
    run.add("message_p999_ms", slowest[-2], "ms")
    run.detail["messages"] = {"offered": 1500, "slowest_ms": slowest}
    return run


def test_the_slowest_of_all_repetitions_are_ranked_together() -> None:
    experiment = load("calls")
    # Of 3000 messages three are slower than the 99.9th percentile.
    runs = [
        called("wifi", "clear", 0, [5.0] * 14 + [6.0, 7.0]),
        called("wifi", "clear", 1, [5.0] * 14 + [8.0, 9.0]),
        called("wigig", "clear", 0, [50.0] * 16),
        called("wigig", "clear", 1, [50.0] * 16),
        called("sumrate", "wigig-flaps", 0, [10.0] * 15 + [2000.0]),
        called("sumrate", "wigig-flaps", 1, [10.0] * 13 + [20.0, 30.0, 40.0]),
    ]
    calls.add_pooled_delays(experiment, runs)
    assert runs[0].value("pooled_message_p999_ms") == 6.0
    assert runs[4].value("pooled_message_p999_ms") == 20.0
    assert runs[4].value("pooled_message_p999_added_ms") == 14.0
    assert runs[5].value("pooled_message_p999_ms") is None, "it stands at the first"
    assert runs[0].value("pooled_message_p999_added_ms") is None, "a link alone"
    findings = [finding for verdict in judge(experiment, runs) for finding in verdict.findings]
    (flaps,) = (f for f in findings if "20 ms" in f.statement and f.condition == "wigig-flaps")
    assert (flaps.measured, flaps.counted, flaps.holds) == (14.0, 2, True)


def test_only_repetitions_that_every_scheme_has_are_ranked() -> None:
    """Another repetition has other seeds: its slowest are compared with nobody's."""
    experiment = load("calls")
    runs = [
        called("mptcp", "wigig-flaps", 0, [90.0] * 16),
        called("mptcp", "wigig-flaps", 1, [90.0] * 16),
        called("sumrate", "wigig-flaps", 0, [10.0] * 16),
        called("sumrate", "wigig-flaps", 1, [20.0] * 16),
        called("sumrate", "clear", 0, [1.0] * 16),
    ]
    runs[0].void = True
    calls.add_pooled_delays(experiment, runs)
    pooled = [run.value("pooled_message_p999_ms") for run in runs]
    assert pooled == [None, 90.0, None, 20.0, 1.0]


def test_a_scheme_of_which_hardly_a_run_counts_takes_none_from_the_others() -> None:
    experiment = load("calls")
    runs = [called("sumrate", "wigig-flaps", n, [10.0] * 15 + [20.0 + n]) for n in range(5)]
    runs += [called("aggligator", "wigig-flaps", n, [90.0] * 16) for n in range(5)]
    for late in runs[-3:]:
        late.void = True
    calls.add_pooled_delays(experiment, runs)
    assert runs[0].value("pooled_message_p999_ms") == 10.0
    assert runs[5].value("pooled_message_p999_ms") == 90.0
    value = Selection(metric="pooled_message_p999_ms", scheme="sumrate", condition="wigig-flaps")
    check = Check(statement="at most 20 ms", goal="Q10", value=value, at_most=20.0)
    (verdict,) = judge(structs.replace(experiment, checks=(check,)), runs)
    assert [f.counted for f in verdict.findings] == [5]


def test_runs_that_tell_too_few_of_their_slowest_messages_have_no_percentile() -> None:
    few = called("sumrate", "clear", 0, [1.0, 2.0])
    assert calls.pooled_percentile_ms([few], 999) == 1.0
    assert calls.pooled_percentile_ms([few] * 3, 999) is None
    assert calls.pooled_percentile_ms([], 999) is None


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        ("message_bytes = 200", "message_bytes = 8", "Expected `int` >= 16"),
        ("interval_ms = 10.0", "interval_ms = 0.0", "Expected `float` >= 1.0"),
        ('over_tcp = ["sumrate-tcp"]', 'over_tcp = ["sumrate-udp"]', "is no scheme"),
        ('baseline = "clear"', "", "required field `baseline`"),
        ('method = "calls"', 'method = "stream"', "unknown field `calls`"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, line: str, instead: str, said: str) -> None:
    text = (FOLDER / "calls.toml").read_text(encoding="utf-8")
    assert line in text
    (tmp_path / "calls.toml").write_text(text.replace(line, instead), encoding="utf-8")
    with pytest.raises(ExperimentError, match=said):
        load("calls", tmp_path)


def test_a_download_that_broke_beside_a_call_fails_the_run(tmp_path: Path) -> None:
    document = tmp_path / "download.json"
    document.write_text(json.dumps({"goodput_mbps": 80.0, "error": None}), encoding="utf-8")
    assert calls.downloaded_mbps(document) == 80.0
    broken = {"goodput_mbps": 900.0, "error": "the connection ended before the time was over"}
    document.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(RuntimeError, match="broke: the connection ended"):
        calls.downloaded_mbps(document)
