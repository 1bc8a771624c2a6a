"""What runs of one point or one experiment are compared with."""

from pathlib import Path

import pytest

from sumrate.lab.experiment import video
from sumrate.lab.experiment.by_method import VideoCondition, expect
from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.tiles import add_tile_gains
from sumrate.lab.experiment.topology import links_of, links_shown, seconds_of, traced_links
from sumrate.lab.experiment.video import add_pause_bounds
from sumrate.qoe.video.playback import Video
from sumrate.traces import read

EXPERIMENT = load("video")
CONDITION = next(c for c in EXPERIMENT.conditions if c.name == "mobility-1750")
LINKS = links_of(EXPERIMENT, CONDITION)
SECONDS = seconds_of(EXPERIMENT, CONDITION)


def played(scheme: str, mbps: float, pause: float, *, void: bool = False) -> Run:
    run = Run(scheme, CONDITION.name, "cubic", "default", 0, 1, void)
    run.add("download_mbps", mbps, "Mbit/s")
    run.add("pause_share", pause, "ratio")
    run.add("psnr_db", 55 - 37.8 * pause, "dB")
    run.series = [(0.1 * i + 0.05, mbps) for i in range(round(SECONDS * 10))]
    return run


@pytest.fixture(autouse=True)
def _without_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """GOPs of equal size at the condition's rate: no encoder is needed."""
    made = (None, Video((round(875e6 / 8),) * 60, 1.0), 1_093_750_000)
    monkeypatch.setattr(video, "video_of", lambda *_: made)


def values(run: Run) -> dict[str, float]:
    return {metric.name: metric.value for metric in run.metrics}


def test_pauses_are_set_beside_the_sum_of_the_links() -> None:
    runs = [played("wifi", 250, 0.7), played("wigig", 450, 0.49), played("sumrate", 695, 0.21)]
    add_pause_bounds(EXPERIMENT, CONDITION, runs, LINKS)
    found = values(runs[2])
    assert found["pause_bound"] == pytest.approx(0.2)
    assert found["pause_excess"] == pytest.approx(0.01)
    # Fed with 700 Mbit/s from the first byte on; a run is short, and its first GOP is no pause.
    assert found["ideal_pause_share"] == pytest.approx(0.2, abs=0.05)
    assert found["pause_over_ideal"] == pytest.approx(0.21 - found["ideal_pause_share"])
    assert found["psnr_over_wifi_db"] == pytest.approx(37.8 * 0.49)
    assert "ideal_pause_share" not in values(runs[0])


def test_pauses_are_judged_by_the_gops_that_were_shown() -> None:
    runs = [played("wifi", 250, 0.7), played("wigig", 450, 0.49), played("sumrate", 695, 0.12)]
    runs[2].add("shown_mbps", 800.0, "Mbit/s")
    add_pause_bounds(EXPERIMENT, CONDITION, runs, LINKS)
    assert values(runs[2])["pause_bound"] == pytest.approx(1 - 700 / 800)
    assert values(runs[2])["pause_excess"] == pytest.approx(0.12 - 0.125)
    assert values(runs[0])["pause_bound"] == pytest.approx(1 - 250 / 875), "it showed others"


def test_a_stock_of_before_lowers_the_bound_of_the_run_that_has_it() -> None:
    runs = [played("wifi", 250, 0.7), played("wigig", 450, 0.49), played("sumrate", 695, 0.12)]
    runs[2].add("stock_s", 2.0, "s")
    add_pause_bounds(EXPERIMENT, CONDITION, runs, LINKS)
    counted_s = SECONDS - expect(CONDITION, VideoCondition).counted_from_s
    # 0.8 of a GOP is there whenever one has been shown: only the rest spares pauses.
    assert values(runs[2])["pause_bound"] == pytest.approx(0.2 - (2.0 - 0.8) / counted_s)
    assert values(runs[2])["pause_excess"] == pytest.approx(0.12 - 0.2 + 1.2 / counted_s)
    assert values(runs[0])["pause_bound"] == pytest.approx(1 - 250 / 875), "it had none"


def test_links_that_carry_the_video_allow_no_pause() -> None:
    runs = [played("wifi", 300, 0.6), played("wigig", 650, 0.2), played("sumrate", 875, 0.02)]
    add_pause_bounds(EXPERIMENT, CONDITION, runs, LINKS)
    assert values(runs[2])["pause_bound"] == 0.0
    assert values(runs[2])["pause_over_ideal"] == pytest.approx(0.02)
    assert values(runs[2])["pause_over_links"] == pytest.approx(0.02)


def test_no_sum_of_links_can_play_what_both_lack_for_longer_than_the_buffer_lasts() -> None:
    """Their mean is as fast as the video; for 14 s they carry a twentieth of it."""
    runs = [played("wifi", 300, 0.6), played("wigig", 650, 0.2), played("sumrate", 875, 0.3)]
    for run in runs[:2]:
        run.series = [
            (at, 0.05 * mbps if 17.0 < at < 31.0 else 3.0 * mbps) for at, mbps in run.series
        ]
    add_pause_bounds(EXPERIMENT, CONDITION, runs, LINKS)
    found = values(runs[2])
    assert found["pause_bound"] == 0.0
    assert found["pause_excess"] == pytest.approx(0.3)
    assert found["ideal_pause_share"] > 0.1
    assert found["pause_over_links"] == pytest.approx(0.3 - found["ideal_pause_share"])


def test_a_void_link_compares_nothing() -> None:
    runs = [
        played("wifi", 300, 0.6, void=True),
        played("wigig", 650, 0.2),
        played("sumrate", 875, 0.02),
    ]
    add_pause_bounds(EXPERIMENT, CONDITION, runs, LINKS)
    assert "pause_bound" not in values(runs[2])


def seen(condition: str, scheme: str, repetition: int, psnr: float, *, void: bool = False) -> Run:
    run = Run(scheme, condition, "cubic", "default", repetition, 1, void)
    run.add("viewport_psnr_db", psnr, "dB")
    return run


def test_gains_are_of_the_same_repetition() -> None:
    runs = [
        seen("mobility-fix", "mptcp", 0, 30.0), seen("mobility-fix", "sumrate", 0, 31.0),
        seen("mobility-fix", "mptcp", 1, 20.0), seen("mobility-fix", "sumrate", 1, 22.5),
        seen("mobility-viewport", "sumrate", 0, 38.0),
        seen("mobility-viewport", "sumrate", 1, 30.5, void=True),
    ]  # fmt: skip
    add_tile_gains(load("tiles"), runs)
    gains = [run.value("gain_over_mptcp_db") for run in runs if run.scheme == "sumrate"]
    assert gains == [1.0, 2.5, None, None]
    assert runs[4].value("gain_over_policy_db") == 7.0
    assert runs[5].value("gain_over_policy_db") is None


def test_a_gain_stands_beside_what_nothing_lacking_would_have() -> None:
    runs = [
        seen("mobility-fix", "sumrate", 0, 31.0),
        seen("mobility-viewport", "sumrate", 0, 34.0),
        seen("los-viewport", "sumrate", 0, 34.0),
    ]
    for run, ideal in zip(runs, (32.0, 36.5, 40.0), strict=True):
        run.add("ideal_psnr_db", ideal, "dB")
    add_tile_gains(load("tiles"), runs)
    gains = [run.value("ideal_gain_over_policy_db") for run in runs]
    assert gains == [None, 4.5, None]


def test_a_link_alone_that_stands_for_itself_brings_no_ideal_of_other_traces() -> None:
    runs = [
        seen("mobility-fix", "sumrate", 0, 31.0),
        seen("mobility-fix", "wifi", 0, 20.0),
        seen("mobility-viewport", "sumrate", 0, 34.0),
    ]
    for run, ideal in zip(runs, (32.0, 50.0, 36.5), strict=True):
        run.add("ideal_psnr_db", ideal, "dB")
    runs[1].detail["measured_in"] = "los-fix"
    runs.append(Run("mptcp", "mobility-fix", "cubic", "default", 0, 1, detail={"error": "a crash"}))
    add_tile_gains(load("tiles"), runs)
    assert runs[2].value("ideal_gain_over_policy_db") == 4.5


def test_a_scaled_trace_has_scaled_rates(tmp_path: Path) -> None:
    wifi, wigig = traced_links(EXPERIMENT, CONDITION, 1, tmp_path)
    assert wifi.down.trace is not None
    assert wigig.down.trace is not None
    assert 270 < read(wifi.down.trace).mean_rate_mbps < 320
    shown = [s for s in links_shown(EXPERIMENT) if s["condition"] == CONDITION.name]
    assert [s["trace"] for s in shown] == [
        "wifi-los, rates times 0.615",
        "wigig-mobility, rates times 0.59",
    ]


@pytest.mark.parametrize(
    ("experiment", "old", "new", "said"),
    [
        ("video", "video_mbps = 875.0", "video_mbps = 0.0", "Expected `float` > 0.0"),
        ("video", "counted_from_s = 16.5", "counted_from_s = 30.0", "at least four GOPs"),
        ("video", "buffer_s = 10.0", "buffer_s = 1.0", "at least four GOPs"),
        ("video", 'clips = ["bigbuckbunny.mp4", "bikes.mp4"]', "clips = []", "of length >= 1"),
        ("video", 'method = "video"', 'method = "stream"', "unknown field `video`"),
        ("video", "trace_scale = 0.615", "trace_scale = 0.0", "Expected `float` >= 0.01"),
        ("tiles", 'tiles_over = "los-fix"', 'tiles_over = "los"', "is no condition"),
        ("tiles", "best_mbps = 4000.0", "best_mbps = 0.0", "best_mbps"),
        ("tiles", 'tiles = "ordered"', 'tiles = "best"', "tiles"),
        ("player", 'clips = ["bigbuckbunny.mp4", "bikes.mp4"]', "clips = []", "of length >= 1"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    tmp_path: Path, experiment: str, old: str, new: str, said: str
) -> None:
    folder = Path(__file__).parents[2] / "experiments"
    text = (folder / f"{experiment}.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / f"{experiment}.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ExperimentError, match=said):
        load(experiment, tmp_path)
