"""Alpha and beta of the thesis's coupled mode, and its throughput model read from the kernel."""

import socket
from pathlib import Path

import pytest

from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.tcp_model import WindowRate, add_tcp_model, rates_of
from sumrate.lab.scaling import Window, factors, room
from tests.samples import WIFI, WIGIG

SAMPLE = """sample
0 0 10.1.1.2:4433 10.1.1.1:40000
\t cubic wscale:10,10 rto:204 rtt:2/0.5 mss:1448 cwnd:100 bytes_acked:500000 segs_out:9 unacked:50
0 0 [::ffff:10.1.2.2]:5201 [::ffff:10.1.2.1]:40001
\t cubic rtt:4.0/1 mss:1448 rcvmss:536 cwnd:400 ssthresh:90 bytes_acked:900000
0 0 10.1.2.2:5201 10.1.2.1:40002
\t cubic rtt:0.1/1 mss:1448 cwnd:10 bytes_acked:30
"""


def test_paths_of_one_bottleneck_together_get_what_the_best_would() -> None:
    rates = [6e6, 2e6]
    shared = factors(rates, ["one", "one"])
    assert shared == [0.75, 0.75]
    assert sum(f * r for f, r in zip(shared, rates, strict=True)) == pytest.approx(max(rates))


def test_paths_that_share_nothing_keep_their_windows() -> None:
    assert factors([6e6, 2e6], ["one", "other"]) == [1.0, 1.0]
    assert factors([6e6, 2e6, 2e6], ["a", "b", "b"]) == [1.0, 0.5, 0.5]
    assert factors([0.0, 0.0], ["one", "one"]) == [1.0, 1.0], "nothing is known yet"


def test_no_more_is_scheduled_than_the_scaled_window() -> None:
    window = Window(mss=1000, cwnd=100_000, under_way=30_000, rtt_s=0.01)
    assert room(window, 0.5) == 20_000
    assert room(window, 1.0) == 70_000
    assert room(window, 0.1) == 0
    assert window.rate == pytest.approx(1e7)


def test_the_kernels_window_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with client, server:
            server.sendall(bytes(10_000))
            left = 10_000
            while left:
                left -= len(client.recv(left))
            raw = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    found = Window.of(raw)
    assert found.mss > 500
    assert found.cwnd >= 10 * found.mss, "Linux begins with ten segments"
    assert 0 < found.rtt_s < 1
    assert found.under_way <= 10_000 + found.mss


def test_window_over_rtt_of_the_busiest_connection_of_each_address() -> None:
    found = rates_of(SAMPLE)
    assert found == {
        "10.1.1.2": [WindowRate(pytest.approx(579.2), pytest.approx(289.6))],
        "10.1.2.2": [WindowRate(pytest.approx(1158.4), 0.0)],
    }


def test_rates_and_split_are_compared_with_the_model(tmp_path: Path) -> None:
    path = tmp_path / "ss.txt"
    path.write_text(SAMPLE * 10)
    run = Run("sumrate", "normal", "cubic", "default", 0, 1)
    add_tcp_model(run, (WIFI, WIGIG), path, {"wifi": 579.2, "wigig": 579.2})
    assert run.value("model_mbps") == pytest.approx(579.2 + 1158.4)
    assert run.value("model_ratio") == pytest.approx(2 / 3)
    assert run.value("in_flight_model_ratio") == pytest.approx(4), "half a window on one path"
    assert run.value("split_error") == pytest.approx(1 / 3), "1/3 and 2/3, measured 1/2 each"


def test_a_path_without_samples_gives_no_model(tmp_path: Path) -> None:
    path = tmp_path / "ss.txt"
    path.write_text("sample\n" * 10)
    run = Run("sumrate", "normal", "cubic", "default", 0, 1)
    add_tcp_model(run, (WIFI, WIGIG), path, {"wifi": 579.2, "wigig": 579.2})
    assert not run.metrics
