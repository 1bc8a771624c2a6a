"""The bit rates of the player's stream."""

from pathlib import Path

import pytest

from sumrate.qoe.video.ffmpeg import EncoderError
from sumrate.qoe.video.hls import LADDER_MBPS, level_name, refuse_off_rate


def segments(folder: Path, *, wrong: float = 0.0, by: float = 1.0) -> Path:
    """Two seconds of segments at the declared rates, but one."""
    for mbps in LADDER_MBPS:
        size = round(mbps * 125e3 * (by if mbps == wrong else 1.05))
        for number in range(2):
            (folder / f"{level_name(mbps)}-{number:03}.m4s").write_bytes(bytes(size))
    return folder


def test_encodes_about_as_large_as_declared_are_played(tmp_path: Path) -> None:
    refuse_off_rate(segments(tmp_path), 2)


@pytest.mark.parametrize("by", [0.85, 1.15])
def test_an_encode_that_is_off_its_declared_rate_is_refused(tmp_path: Path, by: float) -> None:
    with pytest.raises(EncoderError, match=r"for 9 Mbit/s has .* more than 10% off"):
        refuse_off_rate(segments(tmp_path, wrong=9.0, by=by), 2)
