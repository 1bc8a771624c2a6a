"""What of an equirectangular picture a viewer sees, in blocks of 8 by 8 pixels.

The viewport is the rectilinear (`flat`) projection of ffmpeg's filter v360: a plane in front of the
viewer. Rays through its pixels hit the sphere; where they come from in the equirectangular picture
is counted by block. The error of a viewport is then the mean of the blocks' errors with these
weights: exact for nearest-neighbour sampling up to the variation of the error within a block, and
compared with v360 itself in the tests.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK = 8
"""Pixels along each side of a block."""

Weights = NDArray[np.float64]
"""Share of the viewport that each block covers; they add up to 1. Row by row."""


@dataclass(frozen=True)
class Grid:
    """An equirectangular picture cut into tiles of equal size."""

    width: int
    height: int
    columns: int
    rows: int

    def __post_init__(self) -> None:
        """Refuses a cut that does not fall between blocks.

        Raises:
            ValueError: tiles are not whole blocks.

        """
        if self.width % (self.columns * BLOCK) or self.height % (self.rows * BLOCK):
            raise ValueError(
                f"{self.columns} x {self.rows} tiles of {self.width} x {self.height} pixels are "
                f"not whole blocks of {BLOCK}: choose multiples of {BLOCK} per tile"
            )

    @property
    def tiles(self) -> int:
        """How many there are, counted row by row."""
        return self.columns * self.rows

    @property
    def blocks(self) -> tuple[int, int]:
        """Rows and columns of blocks."""
        return self.height // BLOCK, self.width // BLOCK

    def tile_of_block(self) -> NDArray[np.intp]:
        """The tile that each block belongs to."""
        down, across = self.blocks
        rows = np.arange(down) * self.rows // down
        columns = np.arange(across) * self.columns // across
        return np.asarray(rows[:, None] * self.columns + columns[None, :]).ravel()

    def by_tile(self, blocks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the blocks of each tile."""
        return np.asarray(
            np.bincount(self.tile_of_block(), weights=blocks, minlength=self.tiles), np.float64
        )


@dataclass(frozen=True)
class View:
    """The field of view of a headset, in degrees, and how many rays stand for it."""

    horizontal_deg: float = 90.0
    vertical_deg: float = 90.0
    rays: int = 96
    """Along each side."""

    def directions(self) -> NDArray[np.float64]:
        """Unit vectors of the rays: right, down, forward; straight ahead is (0, 0, 1)."""
        middle = (np.arange(self.rays) + 0.5) / self.rays * 2 - 1
        across = middle * np.tan(np.radians(self.horizontal_deg / 2))
        down = middle * np.tan(np.radians(self.vertical_deg / 2))
        x, y = np.meshgrid(across, down)
        rays = np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3)
        return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True))

    def pixels(
        self, grid: Grid, yaw_deg: float, pitch_deg: float
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row and column in the equirectangular picture of every ray.

        Yaw turns to the right, pitch up; yaw 0 looks at the picture's middle.
        """
        yaw, pitch = np.radians([yaw_deg, pitch_deg])
        x, y, z = self.directions().T
        y, z = y * np.cos(pitch) - z * np.sin(pitch), y * np.sin(pitch) + z * np.cos(pitch)
        x, z = x * np.cos(yaw) + z * np.sin(yaw), z * np.cos(yaw) - x * np.sin(yaw)
        longitude, latitude = np.arctan2(x, z), np.arcsin(np.clip(y, -1, 1))
        column = ((longitude / np.pi + 1) / 2 * grid.width).astype(np.intp) % grid.width
        row = ((latitude / np.pi + 0.5) * grid.height).astype(np.intp)
        return np.clip(row, 0, grid.height - 1), column

    def weights(self, grid: Grid, yaw_deg: float, pitch_deg: float) -> Weights:
        """The share of the viewport that each block covers."""
        row, column = self.pixels(grid, yaw_deg, pitch_deg)
        down, across = grid.blocks
        block = row // BLOCK * across + column // BLOCK
        return np.bincount(block, minlength=down * across) / block.size


def views(
    grid: Grid, view: View, yaw_deg: float, pitch_deg: float, moves: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share of the viewport that each tile covers, by move and tile.

    Args:
        grid: the tiles.
        view: the viewport.
        yaw_deg: where the viewer looks now.
        pitch_deg: the same, up.
        moves: possible displacements until the tiles are shown, as rows of yaw and pitch.

    """
    coarse = View(view.horizontal_deg, view.vertical_deg, rays=12)
    found = np.zeros((len(moves), grid.tiles))
    tile_of = grid.tile_of_block()
    across = grid.blocks[1]
    for number, (yaw, pitch) in enumerate(moves):
        row, column = coarse.pixels(grid, yaw_deg + yaw, pitch_deg + pitch)
        seen = tile_of[row // BLOCK * across + column // BLOCK]
        found[number] = np.bincount(seen, minlength=grid.tiles) / seen.size
    return found
