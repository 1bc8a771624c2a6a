"""The viewport by blocks against ffmpeg's own v360, on real encodes of a small picture."""

from pathlib import Path

import numpy as np
import pytest

from sumrate.qoe.tiles.ladder import block_errors
from sumrate.qoe.tiles.viewport import Grid, View
from sumrate.qoe.video import ffmpeg

pytest.importorskip("imageio_ffmpeg")
GRID = Grid(768, 384, 6, 4)
SIDE = 192


def rendered(path: Path, yaw: float, pitch: float) -> np.ndarray:
    """The viewport of a file's first frame, by v360."""
    view = f"v360=e:flat:interp=near:h_fov=90:v_fov=90:yaw={yaw}:pitch={pitch}:w={SIDE}:h={SIDE}"
    return next(iter(ffmpeg.luma(["-i", str(path), "-frames:v", "1", "-vf", view], SIDE, SIDE)))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A picture with detail everywhere, and a coarse encode of it."""
    folder = tmp_path_factory.mktemp("v360")
    source, coded = folder / "source.y4m", folder / "coded.mkv"
    pattern = f"testsrc2=size={GRID.width}x{GRID.height}:rate=1:duration=1"
    grain = "noise=alls=12:all_seed=7"
    ffmpeg.run(["-f", "lavfi", "-i", pattern, "-vf", grain, "-pix_fmt", "yuv420p", str(source)])
    ffmpeg.run(["-i", str(source), "-c:v", "libx264", "-qp", "36", str(coded)])
    return source, coded


@pytest.mark.parametrize(
    ("yaw", "pitch"), [(0, 0), (30, 0), (-75, 0), (170, 0), (0, 40), (120, -35), (-150, 20)]
)
def test_viewport_psnr_is_that_of_v360(pair: tuple[Path, Path], yaw: float, pitch: float) -> None:
    source, coded = pair
    one, other = rendered(source, yaw, pitch), rendered(coded, yaw, pitch)
    direct = ffmpeg.psnr_db(float(np.mean((one.astype(np.float64) - other) ** 2)))
    frames = [next(iter(ffmpeg.luma(["-i", str(path)], GRID.width, GRID.height))) for path in pair]
    weights = View().weights(GRID, yaw, pitch)
    blocks = ffmpeg.psnr_db(float(weights @ block_errors(*frames).astype(np.float64)))
    assert blocks == pytest.approx(direct, abs=0.25)


def test_a_viewport_looks_where_v360_looks(pair: tuple[Path, Path]) -> None:
    """Pixel by pixel the rays hit what v360 shows, up to rounding to a neighbour."""
    source, _ = pair
    frame = next(iter(ffmpeg.luma(["-i", str(source)], GRID.width, GRID.height)))
    for yaw, pitch in ((20.0, 0.0), (-100.0, 30.0)):
        row, column = View(rays=SIDE).pixels(GRID, yaw, pitch)
        ours = frame[row, column].reshape(SIDE, SIDE).astype(np.float64)
        theirs = rendered(source, yaw, pitch).astype(np.float64)
        mirrored = theirs[:, ::-1]
        assert np.mean(np.abs(ours - theirs)) < 0.6 * np.mean(np.abs(ours - mirrored))
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.9
