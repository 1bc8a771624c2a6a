"""Which quality each tile of a GOP gets, and in which order they are sent.

Three policies share one budget of bytes. `fix` treats all tiles alike: one quality, row by row.
`ordered` sends the same tiles, the likeliest to be seen first. `viewport` first sends all tiles at
the worst quality, so that nothing is missing however the rate falls, and then better ones where a
byte is expected to lower the error in the viewport most, in that order.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POLICIES = ("fix", "ordered", "viewport")


@dataclass(frozen=True)
class Plan:
    """What is sent of a GOP."""

    sends: tuple[tuple[int, int], ...]
    """Tile and level (0 is the best), in the order in which they are sent. Of a tile that is there
    twice, the better one is shown."""

    def total_bytes(self, sizes: NDArray[np.int64]) -> int:
        """Of everything. `sizes` are bytes by level and tile."""
        return int(sum(sizes[level, tile] for tile, level in self.sends))

    def best(self) -> dict[int, int]:
        """The best level of each tile."""
        found: dict[int, int] = {}
        for tile, level in self.sends:
            found[tile] = min(level, found.get(tile, level))
        return found


def plan(
    policy: str,
    sizes: NDArray[np.int64],
    errors: NDArray[np.float64],
    likelihood: NDArray[np.float64],
    budget_bytes: float,
) -> Plan:
    """The plan of one GOP.

    Args:
        policy: one of `POLICIES`.
        sizes: bytes by level (0 is the best) and tile.
        errors: squared errors by level and tile; only their ratios count.
        likelihood: the share of the viewport that each tile is expected to cover.
        budget_bytes: of the whole GOP; the worst level is sent even if it is more than that.

    Raises:
        ValueError: there is no such policy.

    """
    if policy not in POLICIES:
        raise ValueError(f"no policy is called {policy!r}: use {', '.join(POLICIES)}")
    likeliest = [int(tile) for tile in np.argsort(-likelihood, kind="stable")]
    if policy == "viewport":
        base = [(tile, len(sizes) - 1) for tile in likeliest]
        return Plan((*base, *_better(sizes, errors, likelihood, budget_bytes)))
    fitting = [level for level, row in enumerate(sizes) if row.sum() <= budget_bytes]
    level = fitting[0] if fitting else len(sizes) - 1
    order = likeliest if policy == "ordered" else range(sizes.shape[1])
    return Plan(tuple((tile, level) for tile in order))


def _better(
    sizes: NDArray[np.int64],
    errors: NDArray[np.float64],
    likelihood: NDArray[np.float64],
    budget_bytes: float,
) -> list[tuple[int, int]]:
    """The tiles that are sent again, better: those first that gain most for each byte.

    Greedy: the step of any tile that lowers the expected error most for each byte is taken, until
    no step fits any more.
    """
    worst, tiles = len(sizes) - 1, sizes.shape[1]
    levels = [worst] * tiles
    left = budget_bytes - float(sizes[worst].sum())
    size, error = sizes.T.tolist(), (errors * likelihood).T.tolist()
    candidates: list[tuple[float, int, int]] = []

    def cost(tile: int, step: int) -> int:
        """Of the step: what the tile at its better level was to cost is not sent then."""
        before = 0 if levels[tile] == worst else size[tile][levels[tile]]
        return int(size[tile][step] - before)

    def offer(tile: int, best: int = 0) -> None:
        """Puts up the step from this tile's level, to `best` at most, that gains most by byte."""
        level = levels[tile]
        found = [
            ((error[tile][step] - error[tile][level]) / cost(tile, step), tile, step)
            for step in range(best, level)
            if cost(tile, step) > 0 and error[tile][step] < error[tile][level]
        ]
        if found:
            heapq.heappush(candidates, min(found))

    for tile in range(tiles):
        offer(tile)
    while candidates:
        _, tile, step = heapq.heappop(candidates)
        if cost(tile, step) > left:
            offer(tile, step + 1)  # a smaller step of the same tile may still fit
            continue
        left -= cost(tile, step)
        levels[tile] = step
        offer(tile)
    chosen = [(tile, level) for tile, level in enumerate(levels) if level != worst]

    def gain(send: tuple[int, int]) -> float:
        tile, level = send
        return float((error[tile][worst] - error[tile][level]) / size[tile][level])

    return sorted(chosen, key=gain, reverse=True)


def harmonic_mean(rates: Sequence[float]) -> float:
    """Of the rates of the last GOPs: slow ones count more, as they take longer."""
    return len(rates) / sum(1.0 / max(rate, 1e-3) for rate in rates)
