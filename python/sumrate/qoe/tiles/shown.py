"""What a viewer saw of a tiled video: viewport PSNR from what had come when each GOP was due."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumrate.qoe.tiles.head import Movement
from sumrate.qoe.tiles.ladder import Ladder
from sumrate.qoe.tiles.viewport import View
from sumrate.qoe.video.ffmpeg import psnr_db

MISSING = -1
"""The level of a tile that had not come in time."""


@dataclass(frozen=True)
class Seen:
    """One GOP as it was seen."""

    psnr_db: float
    """Viewport PSNR, mean over its frames (not of their errors)."""
    missing_share: float
    """Share of the viewport in tiles that had not come."""


def see(
    ladder: Ladder,
    view: View,
    movement: Movement,
    levels: Sequence[Sequence[int]],
    begins_at_s: Sequence[float],
) -> list[Seen]:
    """The viewport of every GOP.

    A tile that is missing shows its last frame that came, at the level at which it came, or the
    worst if none ever did. A frame that is older than three GOPs counts as that of three GOPs ago.

    Args:
        ladder: the encodes; the clip repeats.
        view: the viewport.
        movement: where the viewer looks.
        levels: of each GOP, the level of every tile, or `MISSING`.
        begins_at_s: when each GOP is shown, in the movement's time. It lasts 1 s.

    """
    tile_of = ladder.grid.tile_of_block()
    worst, frozen_most = len(ladder.frozen) - 1, ladder.frozen.shape[1]
    stale = np.full(ladder.grid.tiles, frozen_most)
    shown = np.full(ladder.grid.tiles, worst)
    found = []
    for number, (tiles, begin_s) in enumerate(zip(levels, begins_at_s, strict=True)):
        gop = number % ladder.gops
        level = np.asarray(tiles)
        stale = np.where(level == MISSING, np.minimum(stale + 1, frozen_most), 0)
        shown = np.where(level == MISSING, shown, level)
        chosen, last, lags = level[tile_of], shown[tile_of], stale[tile_of] - 1
        missing = chosen == MISSING
        block = np.arange(tile_of.size)
        psnrs, shares = [], []
        for frame in range(ladder.frames):
            yaw, pitch = movement.at(begin_s + frame / ladder.frames)
            weights = view.weights(ladder.grid, yaw, pitch)
            errors = np.where(
                missing,
                ladder.frozen[last, lags, gop, frame, block],
                ladder.errors[chosen, gop, frame, block],
            )
            psnrs.append(psnr_db(float(weights @ errors)))
            shares.append(float(weights[missing].sum()))
        found.append(Seen(float(np.mean(psnrs)), float(np.mean(shares))))
    return found


def mean_level(levels: Sequence[Sequence[int]]) -> float | None:
    """Mean quantiser step of the tiles that came; None if none did."""
    came: NDArray[np.intp] = np.asarray([v for row in levels for v in row if v != MISSING])
    return float(came.mean()) if came.size else None
