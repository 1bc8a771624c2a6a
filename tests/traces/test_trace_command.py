"""`sumrate-lab trace`: makes, shows and plays."""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from sumrate.lab import cli
from sumrate.lab.links import configuration
from sumrate.lab.programs import have
from sumrate.lab.trace_play import Playing, allowed_mbps, play_isolated, played_link
from sumrate.phy.codebook import write_patterns
from sumrate.traces import read, write
from sumrate.traces.course import make
from sumrate.traces.emulator import schedule
from sumrate.traces.link_trace import read_link_trace, write_link_trace
from sumrate.traces.mahimahi import read_mahimahi
from sumrate.traces.scenarios import SCENES, scene
from sumrate.traces.summary import sparkline
from tests.system.scenario import isolated


def lab(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", *words])
    return cli.main()


def test_make_and_show(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("x.parquet", "x.trace", "x.mahi")]
    options = ["--output", str(files[0]), "--rate-output", str(files[1])]
    options += ["--mahimahi-output", str(files[2]), "--seconds", "3", "--seed", "7", "--json"]
    options += ["--access", "jpoc", "--clients", "16"]
    assert lab(monkeypatch, "trace", "make", "thesis-mobility", *options) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["origin"]["access"] == "jpoc"
    assert made["origin"]["clients"] == 16
    trace = read_link_trace(files[0])
    assert read(files[1]).mean_rate_mbps == pytest.approx(trace.rate_mbps.mean(), abs=0.01)
    assert read_mahimahi(files[2]).seconds == pytest.approx(3.0)
    plot = tmp_path / "x.svg"
    assert lab(monkeypatch, "trace", "show", str(files[0]), "--json", "--plot", str(plot)) == 0
    assert json.loads(capsys.readouterr().out) == made
    assert "<svg" in plot.read_text()
    assert lab(monkeypatch, "trace", "show", str(files[0])) == 0
    shown = capsys.readouterr().out
    assert f"goodput  mean {made['goodput_mbps']['mean']:.0f} Mbit/s" in shown
    assert f"no data  {made['silences']['share']:.1%} of the time" in shown
    assert len(sparkline(trace)) == 72


def test_waits_may_come_from_simulated_contention(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With SINR and capture, 802.11ad's clients wait less than its closed form has it."""
    dark = []
    for options in ((), ("--simulated-access",)):
        words = ["trace", "make", "thesis-mobility", "--clients", "16", "--json", *options]
        assert lab(monkeypatch, *words) == 0
        dark.append(json.loads(capsys.readouterr().out)["states"]["outage"])
    assert 0 < dark[1] < dark[0]


def test_radio_beams_from_file_give_equal_rates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "own.csv"
    grid = [float(degree) for degree in range(-180, 181, 5)]
    write_patterns(scene("thesis-nlos").radio.beams, grid, grid[18:55], path)
    means = []
    for options in ((), ("--patterns", str(path))):
        words = ["trace", "make", "thesis-nlos", "--seconds", "20", "--json", *options]
        assert lab(monkeypatch, *words) == 0
        means.append(json.loads(capsys.readouterr().out)["goodput_mbps"]["mean"])
    assert means[1] == pytest.approx(means[0], rel=0.04)


def test_list_names_every_scene(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab(monkeypatch, "trace", "make", "--list", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)) == list(SCENES)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("make",), "scenario is missing"),
        (("make", "strong", "--seconds", "-1"), "seconds is -1"),
        (("make", "strong", "--clients", "0"), "clients is 0"),
        (("show", "/nowhere.parquet"), "no Parquet file"),
        (("play", "/nowhere.parquet"), "no Parquet file"),
    ],
)
def test_wrong_words_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    assert lab(monkeypatch, "trace", *words) == 2
    assert message in capsys.readouterr().err


def test_unknown_pictures_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "new" / "x.parquet"
    words = ["trace", "make", "strong", "--seconds", "1", "--output", str(file)]
    assert lab(monkeypatch, *words) == 0
    assert lab(monkeypatch, "trace", "show", str(file), "--plot", str(tmp_path / "x.bmp")) == 2
    assert "a name that ends in .svg, .png, .pdf" in capsys.readouterr().err
    assert lab(monkeypatch, "trace", "make", "strong", "--seconds", "1e9") == 2
    assert "at most 86400" in capsys.readouterr().err


def test_played_link_has_the_traces_delay_and_loss(tmp_path: Path) -> None:
    trace = make(scene("thesis-mobility"), 4.0, 3)
    write(trace.rate_trace(), tmp_path / "rate.trace")
    link = played_link(trace, tmp_path / "rate.trace", 2.0)
    (config,) = tomllib.loads(configuration([link], seed=1))["link"]
    changes = [entry for entry in config["schedule"] if "delay_ms" in entry]
    assert changes == tomllib.loads(schedule(trace, delay_ms=1.0))["link"]["schedule"]
    for entry in changes:
        step = round(entry["at_s"] / trace.step_s)
        assert entry["delay_ms"] == pytest.approx(1.0 + trace.extra_delay_ms[step], abs=1e-4)
        assert entry["loss"] == pytest.approx(trace.loss[step], abs=1e-5)


def test_allowed_goodput_is_the_rates() -> None:
    trace = make(scene("strong"), 3.5, 1)
    allowed = allowed_mbps(trace, 3.0)
    assert len(allowed) == 3
    assert np.mean(allowed) == pytest.approx(trace.rate_mbps[:300].mean() * 1448 / 1500)


@pytest.mark.system
def test_a_trace_is_played(tmp_path: Path) -> None:
    """A stream through the emulator carries at most what the trace allows, and most of it."""
    if not have("sumrate-link"):
        pytest.skip("sumrate-link is not built: run `make build`")
    path = tmp_path / "x.parquet"
    write_link_trace(make(scene("thesis-nlos"), 6.0, 1), path)

    def scenario(scratch: Path) -> None:
        answer = scratch / "answer.json"
        with answer.open("w") as out:
            sys.stdout = out
            status = play_isolated(read_link_trace(path), Playing(5.0), as_json=True)
            sys.stdout = sys.__stdout__
        found = json.loads(answer.read_text())
        assert status == (1 if found["emulator_late"] else 0)
        assert found["goodput_mbps"] <= 1.05 * found["allowed_mbps"]
        assert found["goodput_mbps"] > 0.3 * found["allowed_mbps"]

    isolated(scenario)
