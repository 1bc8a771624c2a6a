"""From an encode to a video of a target rate."""

from pathlib import Path

import numpy as np
import pytest

from sumrate.qoe.video import ffmpeg
from sumrate.qoe.video.clip import Clip, interleaved
from sumrate.qoe.video.playback import PlaybackError

CLIP = Clip(
    sources=("a.mp4",), sha256="0" * 64, encoder="x", arguments=("-crf", "14"), width=16,
    height=16, frames_per_gop=25, gop_bytes=(1000, 3000, 2000), psnr_db=(40.0, 41.0, 42.0),
    frozen_psnr_db=(20.0, 21.0, 22.0),
)  # fmt: skip


def test_whole_rounds_have_the_target_rate() -> None:
    video = CLIP.video(1750.0, 1.0, 9, seed=3)
    assert video.mbps == pytest.approx(1750.0, rel=1e-6)
    assert max(video.gop_bytes) / min(video.gop_bytes) == pytest.approx(3.0, rel=1e-5)
    assert CLIP.scale(1750.0, 1.0) == pytest.approx(1750e6 / 8 / 2000)


def test_any_few_gops_that_follow_each_other_have_about_the_mean_size() -> None:
    sizes = [100 * number for number in range(1, 16)]
    turns = interleaved(sizes)
    assert sorted(turns) == list(range(15))
    assert interleaved(sizes) == turns, "the same order each time"
    rounds = [sizes[turn] for turn in turns] * 2
    for first in range(15):
        for few in (4, 8, 12):
            mean = sum(rounds[first : first + few]) / few
            assert mean == pytest.approx(800, rel=1.0 / few), (first, few)


def test_gops_come_in_one_order_with_their_psnr() -> None:
    video = CLIP.video(100.0, 1.0, 7, seed=5)
    following = {41.0: 40.0, 40.0: 42.0, 42.0: 41.0}
    assert all(following[a] == b for a, b in zip(video.psnr_db, video.psnr_db[1:], strict=False))
    light = min(video.gop_bytes)
    assert {p for s, p in zip(video.gop_bytes, video.psnr_db, strict=True) if s == light} == {40.0}


def test_seeds_begin_elsewhere_and_repeat() -> None:
    videos = {CLIP.video(100.0, 1.0, 3, seed=seed).gop_bytes for seed in range(20)}
    assert len(videos) == 3
    assert CLIP.video(100.0, 1.0, 3, seed=4) == CLIP.video(100.0, 1.0, 3, seed=4)


def test_a_clip_survives_its_file() -> None:
    assert Clip.read(CLIP.text()) == CLIP
    with pytest.raises(ValueError, match="no clip"):
        Clip.read('{"schema": "other"}')


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(PlaybackError):
        CLIP.video(0.0, 1.0, 3, seed=1)


def test_gops_are_sums_of_their_packets() -> None:
    assert ffmpeg.gop_bytes([10, 1, 1, 20, 2, 2, 5], 3) == [12, 24]


def test_psnr_of_a_known_error() -> None:
    assert ffmpeg.psnr_db(0.0) == 100.0
    assert ffmpeg.psnr_db(255.0**2) == pytest.approx(0.0)
    assert ffmpeg.psnr_db(6.5025) == pytest.approx(40.0)


def test_luma_gives_whole_frames() -> None:
    pytest.importorskip("imageio_ffmpeg")
    frames = list(
        ffmpeg.luma(["-f", "lavfi", "-i", "color=gray:size=32x16:rate=5:duration=1"], 32, 16)
    )
    assert len(frames) == 5
    assert frames[0].shape == (16, 32)
    assert np.ptp(frames[0]) == 0


def test_packets_of_a_real_encode_are_the_files_bytes(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "x.mkv"
    source = ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=3"]
    ffmpeg.run([*source, "-c:v", "libx264", "-g", "10", "-sc_threshold", "0", str(path)])
    packets = ffmpeg.packet_bytes(path)
    assert [len(stream) for stream in packets] == [30]
    gops = ffmpeg.gop_bytes(packets[0], 10)
    assert len(gops) == 3
    assert sum(gops) < path.stat().st_size < 2 * sum(gops) + 4000
