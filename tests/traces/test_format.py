"""The native format, the statistics of known traces, and the command."""

import json
import math
from pathlib import Path

import pytest

from sumrate.traces import Trace, TraceFormatError, generate, pooled, read, statistics, write
from sumrate.traces.command import main
from sumrate.traces.measure import GOODPUT_SHARE
from sumrate.traces.trace import text


@pytest.mark.parametrize("kind", ["wigig-mobility", "wifi-los"])
def test_written_traces_read_back(kind: str, tmp_path: Path) -> None:
    trace = generate(kind, 4, 12)
    write(trace, tmp_path / "x.trace")
    assert read(tmp_path / "x.trace") == trace


def test_equal_steps_become_one_line() -> None:
    trace = Trace(10.0, (100.5, 100.5, 0.0, 0.0, 0.0, 7.0), "by hand")
    assert text(trace) == (
        "sumrate-trace 1\n# by hand\n# duration_ms rate_mbps\n20 100.5\n30 0\n10 7\n"
    )


def test_durations_need_not_be_equal(tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_text("sumrate-trace 1\n\n1200 1800 # beam\n300 0\n850.5 962.5\n", encoding="utf-8")
    trace = read(path)
    assert trace.step_ms == 1.5
    assert trace.seconds == pytest.approx(2.3505)
    assert trace.mean_rate_mbps == pytest.approx((1200 * 1800 + 850.5 * 962.5) / 2350.5)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "line 1"),
        ("1\n2\n", "line 1"),
        ("sumrate-trace 2\n10 5\n", "line 1"),
        ("sumrate-trace 1\n10 5\n10 fast\n", "line 3"),
        ("sumrate-trace 1\n10 5 6\n", "line 2"),
        ("sumrate-trace 1\n0 5\n", "line 2"),
        ("sumrate-trace 1\n10 -5\n", "line 2"),
        ("sumrate-trace 1\n10 nan\n", "line 2"),
        ("sumrate-trace 1\n180e300 5\n", "line 2: the duration must be at most"),
        ("sumrate-trace 1\n-180e300 5\n", "line 2"),
        ("sumrate-trace 1\n10 5\x1c\n10 fast\n", "line 3"),
        ("sumrate-trace 1\n10 0\n", "above 0"),
        ("sumrate-trace 1\n", "above 0"),
        ("sumrate-trace 1\n0.000001 5\n100000 5\n", "common step"),
    ],
)
def test_wrong_files_are_refused(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TraceFormatError, match=problem):
        read(path)


def test_binary_files_are_refused_with_their_line(tmp_path: Path) -> None:
    """Found by fuzzing: the decoder's own error came through."""
    path = tmp_path / "x.trace"
    path.write_bytes(b"sumrate-trace 1\n10 \x80\n")
    with pytest.raises(TraceFormatError, match=r"line 2: not UTF-8"):
        read(path)


def test_a_dead_trace_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="above 0"):
        write(Trace(10.0, (0.0, 0.0)), tmp_path / "x.trace")
    assert not (tmp_path / "x.trace").exists()


def test_statistics_of_a_known_trace() -> None:
    """Goodput 100, 200, 100, 200, ... each for a second: lag 1 is opposite, lag 5 too."""
    rates = [100 / GOODPUT_SHARE, 200 / GOODPUT_SHARE]
    trace = Trace(500.0, tuple(rates[i // 2 % 2] for i in range(400)))
    found = statistics(trace)
    assert found.mean == pytest.approx(150)
    assert found.std == pytest.approx(50)
    assert found.p5 == pytest.approx(100)
    assert found.p95 == pytest.approx(200)
    assert found.autocorrelation_1s == pytest.approx(-1)
    assert found.autocorrelation_5s == pytest.approx(-1)
    half = statistics(trace, window_s=0.5)
    assert half.autocorrelation_1s == pytest.approx(-1, abs=0.02)
    assert statistics(trace, window_s=2.0).std == pytest.approx(0, abs=1e-9)


def test_pooled_traces_share_their_mean() -> None:
    low, high = (Trace(1000.0, (rate,) * 10) for rate in (100.0, 300.0))
    found = pooled([low, high])
    assert found.mean == pytest.approx(200 * GOODPUT_SHARE)
    assert found.autocorrelation_5s == pytest.approx(1)
    assert math.isnan(statistics(low).autocorrelation_5s)


def test_windows_must_fit() -> None:
    trace = Trace(10.0, (1.0,) * 50)
    with pytest.raises(ValueError, match="multiple"):
        statistics(trace, window_s=0.015)
    with pytest.raises(ValueError, match="as long as a window"):
        statistics(trace)


def test_command_writes_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.trace"
    argv = ["--kind", "wigig-nlos", "--seed", "3", "--seconds", "8", "--output", str(path)]
    assert main([*argv, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    trace = generate("wigig-nlos", 3, 8)
    assert read(path) == trace
    assert printed["mean_rate_mbps"] == trace.mean_rate_mbps
    assert printed["goodput_mbps"]["mean"] == round(statistics(trace).mean, 3)
    assert main(argv) == 0
    assert "measured" in capsys.readouterr().out


def test_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kind", "wifi-los", "--seconds", "0"]) == 2
    assert "10 ms" in capsys.readouterr().err


def test_calibration_fails_when_traces_are_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    """Planted: one short trace of each kind cannot be as measured."""
    assert main(["--calibration", "--seeds", "1", "--seconds", "20"]) == 1
    captured = capsys.readouterr()
    assert "OFF wigig-los" in captured.err
    assert "**" in captured.out
