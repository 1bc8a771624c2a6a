"""What a real encode's GOPs weigh and look like, and how they become a video of a target rate."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from sumrate.qoe.video.playback import PlaybackError, Video

SCHEMA = "sumrate.qoe.clip.v1"


def interleaved(sizes: Sequence[int]) -> list[int]:
    """The GOPs' numbers in an order in which any few that follow each other have about the mean.

    The largest first, then the smallest ones until they have made up for it, and so on: the sum is
    never further from the mean's than the most unusual GOP. A run shows a part of the clip; in the
    order of the scenes the part would decide how much has to be downloaded. Of equal large GOPs
    the earlier comes first, of equal small ones the later.
    """
    above = [size * len(sizes) - sum(sizes) for size in sizes]
    left = sorted(range(len(sizes)), key=lambda index: (above[index], -index))
    order: list[int] = []
    balance = 0
    while left:
        order.append(left.pop(0 if balance > 0 else -1))
        balance += above[order[-1]]
    return order


@dataclass(frozen=True)
class Clip:
    """An encode, measured GOP by GOP."""

    sources: tuple[str, ...]
    """Names of the files that were encoded, one after the other."""
    sha256: str
    """Of the sources, the command and the encoder's version: the same encode has the same."""
    encoder: str
    """Version of the encoder, in one line."""
    arguments: tuple[str, ...]
    """Of the encoder, without files."""
    width: int
    height: int
    frames_per_gop: int
    gop_bytes: tuple[int, ...]
    psnr_db: tuple[float, ...]
    """Luma PSNR of each GOP against its source, over all of its frames."""
    frozen_psnr_db: tuple[float, ...]
    """Luma PSNR of each GOP's last decoded frame against the source's frames of the next GOP of its
    clip, in whatever order they are played: the clip's own is that of a film."""

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def read(cls, text: str) -> "Clip":
        """From JSON.

        Raises:
            ValueError: it is no clip.

        """
        found: dict[str, Any] = json.loads(text)
        if found.pop("schema", None) != SCHEMA:
            raise ValueError(f"this is no clip of schema {SCHEMA}")
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found.items()
        }
        return cls(**fields)

    @property
    def variation(self) -> float:
        """Standard deviation of the GOPs' sizes over their mean."""
        mean = sum(self.gop_bytes) / len(self.gop_bytes)
        squares = sum((size - mean) ** 2 for size in self.gop_bytes)
        return float((squares / len(self.gop_bytes)) ** 0.5 / mean)

    def scale(self, mbps: float, gop_s: float) -> float:
        """What sizes are multiplied by, so that the clip's mean rate is `mbps`."""
        mean = sum(self.gop_bytes) / len(self.gop_bytes)
        return mbps * 125e3 * gop_s / mean

    def video(self, mbps: float, gop_s: float, gops: int, seed: int) -> Video:
        """`gops` GOPs of this clip over and over, at a mean rate of `mbps`.

        GOPs come in one fixed order, in which any few that follow each other have about the mean
        size (`interleaved`); the seed says with which the video begins.

        Raises:
            PlaybackError: the rate or the number of GOPs is not above 0.

        """
        if not mbps > 0 or gops < 1:
            raise PlaybackError(f"a video has a rate and GOPs, not {mbps} Mbit/s and {gops}")
        count, factor = len(self.gop_bytes), self.scale(mbps, gop_s)
        first = Random(f"clip {seed}").randrange(count)
        turns = interleaved(self.gop_bytes)
        order = [turns[(first + number) % count] for number in range(gops)]
        return Video(
            gop_bytes=tuple(max(1, round(self.gop_bytes[index] * factor)) for index in order),
            gop_s=gop_s,
            psnr_db=tuple(self.psnr_db[index] for index in order),
            frozen_psnr_db=tuple(self.frozen_psnr_db[index] for index in order),
        )
