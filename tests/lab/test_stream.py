"""The stream's ends: bins and stalls, blocks and delays, the SOCKS handshake, reading."""

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sumrate.lab.endpoints import Reach
from sumrate.lab.ends import parser
from sumrate.lab.scene import Site
from sumrate.lab.stream import ends
from sumrate.lab.stream.driver import server_command
from sumrate.lab.stream.record import HEADER, Blocks, Recorder, percentile
from sumrate.lab.stream.socks import SocksError, connect_through, request
from sumrate.lab.stream_run import Pace, StreamResult, sink_command, source_flags
from tests.lab.test_results import validate

MS = 1_000_000


def recorder(*, warmup_ms: int = 0, time_ms: int = 100) -> Recorder:
    return Recorder(warmup_ns=warmup_ms * MS, time_ns=time_ms * MS)


def test_bins_hold_what_had_arrived_by_their_end() -> None:
    kept = recorder(time_ms=25)
    kept.start(1000 * MS)
    for at_ms, count in ((0, 10), (4.999, 5), (5, 7), (19, 1)):
        kept.add(1000 * MS + round(at_ms * MS), count)
    result = kept.finish()
    assert result["bins"] == {"step_s": 0.005, "bytes": [15, 22, 22, 23, 23]}
    assert result["total_bytes"] == result["counted_bytes"] == 23
    assert result["goodput_mbps"] == pytest.approx(23 * 8 / 1e6 / 0.025, abs=1e-3)


def test_warmup_is_in_the_bins_and_in_nothing_else() -> None:
    kept = recorder(warmup_ms=50, time_ms=100)
    kept.start(0)
    kept.add(0, 1000)
    kept.add(49 * MS, 1000)  # a gap of 49 ms before what counts
    for at_ms in range(50, 150, 10):
        kept.add(at_ms * MS, 125_000)
    result = kept.finish()
    assert result["goodput_mbps"] == 100.0
    assert result["duration_s"] == 0.1
    assert (result["counted_bytes"], result["total_bytes"]) == (1_250_000, 1_252_000)
    assert (result["longest_stall_ms"], result["longest_stall_at_s"]) == (10.0, 0.05)
    assert len(result["bins"]["bytes"]) == 30


def test_longest_stall_is_exact_and_knows_where_it_began() -> None:
    kept = recorder()
    kept.start(0)
    for at_us in (0, 2_000, 41_123, 60_000, 99_000):
        kept.add(at_us * 1000, 1)
    result = kept.finish()
    assert (result["longest_stall_ms"], result["longest_stall_at_s"]) == (39.123, 0.002)
    assert result["silences"] == [[0.002, 39.123], [0.041123, 18.877], [0.06, 39.0]]


def test_silence_until_the_end_is_a_stall() -> None:
    kept = recorder()
    kept.start(0)
    kept.add(0, 1)
    kept.add(10 * MS, 1)
    result = kept.finish()
    assert (result["longest_stall_ms"], result["longest_stall_at_s"]) == (90.0, 0.01)
    assert result["bins"]["bytes"] == [1, 1] + [2] * 18


def test_a_sender_that_ended_shortens_the_measured_time() -> None:
    kept = recorder()
    kept.start(0)
    kept.add(0, 125_000)
    result = kept.finish(ended_ns=50 * MS)
    assert (result["duration_s"], result["goodput_mbps"]) == (0.05, 20.0)
    assert len(result["bins"]["bytes"]) == 10


def block(stamp: int, length: int) -> bytes:
    return HEADER.pack(stamp, length) + bytes(length - HEADER.size)


@pytest.mark.parametrize("piece", [1, 7, 16, 17, 40, 1000])
def test_blocks_are_found_however_they_are_cut(piece: int) -> None:
    stream = b"".join(block(n * MS, 40) for n in range(10))
    blocks = Blocks()
    for start in range(0, len(stream), piece):
        data = stream[start : start + piece]
        blocks.feed(memoryview(data), start + len(data))
    ends_at = [-(-(n + 1) * 40 // piece) * piece for n in range(10)]
    expected = [min(end, len(stream)) - n * MS for n, end in enumerate(ends_at)]
    assert list(blocks.delays_ns) == expected


def test_delays_are_in_ms_and_warmup_blocks_do_not_count() -> None:
    blocks = Blocks()
    blocks.feed(memoryview(block(0, 100)), 900 * MS, count=False)
    for delay_ms in range(1, 101):
        blocks.feed(memoryview(block(10 * MS, 100)), (10 + delay_ms) * MS)
    assert blocks.finish() == {
        "blocks": 100,
        "min_ms": 1.0,
        "p50_ms": 50.0,
        "p99_ms": 99.0,
        "max_ms": 100.0,
        "p99_excess_ms": 98.0,
    }
    assert Blocks().finish() is None


def test_an_unpaced_stream_is_no_paced_one() -> None:
    with pytest.raises(ValueError, match="not paced"):
        Blocks().feed(memoryview(bytes(100)), 0)


def test_percentile_is_the_nearest_rank() -> None:
    assert [percentile([1, 2, 3, 4], p) for p in (0, 25, 50, 51, 100)] == [1, 1, 2, 3, 4]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10)
        theirs.settimeout(10)
        yield ours, theirs


def proxy(connection: socket.socket, *answers: bytes) -> tuple[threading.Thread, list[bytes]]:
    """A fake proxy: reads a message before each answer, byte by byte in what it sends."""
    heard: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            heard.append(connection.recv(1000))
            for byte in answer:
                connection.sendall(bytes([byte]))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread, heard


def test_socks_handshake_leaves_the_data_alone(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    reply = b"\x05\x00\x00\x01" + bytes(6)
    thread, heard = proxy(theirs, b"\x05\x00", reply + b"data")
    connect_through(ours, "192.168.77.1", 5202)
    thread.join()
    assert heard[0] == b"\x05\x01\x00"
    assert heard[1] == b"\x05\x01\x00\x01" + bytes([192, 168, 77, 1]) + struct.pack("!H", 5202)
    assert ours.recv(100) == b"data"


def test_socks_reply_may_name_the_address(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    thread, _ = proxy(theirs, b"\x05\x00", b"\x05\x00\x00\x03\x04name\x00\x01" + b"x")
    connect_through(ours, "fd00::1", 1)
    thread.join()
    assert ours.recv(100) == b"x"


def test_socks_requests_by_kind_of_address() -> None:
    assert request("fd00::1", 80)[3:4] + request("fd00::1", 80)[-2:] == b"\x04\x00\x50"
    assert request("example.org", 80)[3:] == b"\x03\x0bexample.org\x00\x50"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ((b"\x05\xff",), "method 255"),
        ((b"\x05\x00", b"\x05\x05\x00\x01"), "reply 5"),
        ((b"HT",), "version 72"),
    ],
)
def test_socks_refusals_have_a_reason(
    pair: tuple[socket.socket, socket.socket], answers: tuple[bytes, ...], message: str
) -> None:
    ours, theirs = pair
    proxy(theirs, *answers)
    with pytest.raises(SocksError, match=message):
        connect_through(ours, "10.0.0.1", 1)


def test_a_proxy_that_leaves_is_an_error(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.close()
    with pytest.raises((SocksError, BrokenPipeError)):
        connect_through(ours, "10.0.0.1", 1)


def reader(*reads: tuple[float, int | None]) -> tuple[Callable[[], int], ends.Read]:
    """A clock and a read that play back times in ms and counts (None: silence)."""
    now = [0]
    left = list(reads)

    def read(_view: memoryview) -> int | None:
        at_ms, count = left.pop(0)
        now[0] = round(at_ms * MS)
        return count

    return lambda: now[0], read


def run_receive(
    monkeypatch: pytest.MonkeyPatch, kept: Recorder, *reads: tuple[float, int | None]
) -> tuple[int | None, int]:
    clock, read = reader(*reads)
    monkeypatch.setattr("sumrate.lab.stream.ends.time.monotonic_ns", clock)
    firsts: list[int] = []
    ended = ends.receive(
        read, kept, None, patience_s=1.0, on_first_byte=lambda: firsts.append(clock())
    )
    return ended, len(firsts)


def test_receiving_starts_at_the_first_byte_and_ends_on_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = recorder()
    reads = ((50.0, None), (500.0, 10), (550.0, None), (590.0, 20), (600.0, 999))
    assert run_receive(monkeypatch, kept, *reads) == (None, 1)
    result = kept.finish()
    assert result["total_bytes"] == 30  # what came at the end does not count
    assert result["longest_stall_ms"] == 90.0


def test_an_early_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_receive(monkeypatch, recorder(), (5.0, 10), (40.0, 0)) == (40 * MS, 1)


def test_no_first_byte_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError, match="no byte"):
        run_receive(monkeypatch, recorder(), (500.0, None), (1001.0, None))


def serve_once(send: Callable[[socket.socket], None]) -> tuple[int, threading.Thread]:
    listener = ends.listen("127.0.0.1", 0, "cubic", mptcp=False)

    def accept() -> None:
        connection, _ = listener.accept()
        listener.close()
        send(connection)

    thread = threading.Thread(target=accept, daemon=True)
    port = int(listener.getsockname()[1])
    thread.start()
    return port, thread


def sink(output: Path, *arguments: str) -> int:
    args = parser().parse_args(["sink", "--output", str(output), *arguments])
    return ends.sink(args)


def test_both_ends_over_loopback(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port, thread = serve_once(lambda c: ends.send_paced(c, 80.0, 10_000))
    ready, output = tmp_path / "ready", tmp_path / "out.json"
    where = ("--address", "127.0.0.1", "--port", str(port))
    assert sink(output, *where, "--time", "0.2", "--paced", "--ready", str(ready)) == 0
    thread.join(10)
    assert not thread.is_alive(), "the source noticed that its peer had left"
    document = json.loads(output.read_text(encoding="utf-8"))
    validate(repository, "lab-stream.v1.json", document)
    assert document["error"] is None
    assert document["delay"]["blocks"] > 0
    assert document["bins"]["bytes"][-1] == document["total_bytes"] > 0
    assert ready.exists()
    assert capsys.readouterr().out == f"{ends.FIRST_BYTE}\n"


def test_a_broken_connection_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def leave(connection: socket.socket) -> None:
        with connection:
            connection.sendall(b"only this")

    port, _ = serve_once(leave)
    output = tmp_path / "out.json"
    assert sink(output, "--address", "127.0.0.1", "--port", str(port), "--time", "5") == 1
    document = json.loads(output.read_text(encoding="utf-8"))
    assert document["total_bytes"] == len("only this")
    assert "ended before the time was over" in document["error"]
    assert "ended before" in capsys.readouterr().err


def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    fifo, output = tmp_path / "fifo", tmp_path / "out.json"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(bytes(300_000)), daemon=True)
    writer.start()
    assert sink(output, "--fifo", str(fifo), "--time", "30") == 0
    document = json.loads(output.read_text(encoding="utf-8"))
    assert document["total_bytes"] == 300_000
    assert document["duration_s"] < 30


def test_commands_say_what_the_scheme_needs(tmp_path: Path) -> None:
    site = cast(Site, SimpleNamespace(congestion_control="bbr", folder=tmp_path))
    reach = Reach("10.0.0.1", "192.168.77.1", port=9, socks=("127.0.0.1", 1080), mptcp=True)
    pace = Pace(50.0, 2000)
    sender = " ".join(server_command(site, reach, source_flags(pace), tmp_path / "r"))
    assert "source --paced 50 --block 2000 --listen 192.168.77.1 --port 5202 --cc bbr" in sender
    assert sender.endswith("--mptcp")
    receiver = sink_command(reach, seconds=2.5, warmup_s=1, pace=pace, output=tmp_path / "o")
    text = " ".join(receiver)
    assert (
        "sink --address 10.0.0.1 --port 9 --socks 127.0.0.1:1080 --mptcp --time 2.5 --warmup 1"
        in text
    )
    assert text.endswith("--paced")
    plain = sink_command(
        Reach("10.0.0.1", "10.0.0.1"), seconds=1, warmup_s=0, pace=None, output=tmp_path / "o"
    )
    assert not {"--socks", "--mptcp", "--paced"} & set(plain)


def test_cpu_is_that_of_all_programs() -> None:
    result = StreamResult(
        document={"total_bytes": 2_000_000_000},
        commands=[],
        cpu_seconds={"source": 1.0, "sink": 0.5, "sumrate up": 2.5},
    )
    assert result.cpu_s_per_gb == 2.0
