"""Which quality each tile of a GOP gets, and in which order they are sent.

Three policies share one budget of bytes. `fix` treats all tiles alike: one quality, row by row.
`ordered` sends the same tiles, the likeliest to be seen first. `viewport` also spends the bytes
where they are expected to be seen: what is minimised is the expected error in the viewport.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POLICIES = ("fix", "ordered", "viewport")


@dataclass(frozen=True)
class Plan:
    """The tiles of a GOP, in the order in which they are sent."""

    order: tuple[int, ...]
    levels: tuple[int, ...]
    """Quality of each tile, by tile; 0 is the best."""

    def total_bytes(self, sizes: NDArray[np.int64]) -> int:
        """Of all tiles. `sizes` are bytes by level and tile."""
        return int(sum(sizes[level, tile] for tile, level in enumerate(self.levels)))


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
        errors: sum of squared errors by level and tile.
        likelihood: the share of the viewport that each tile is expected to cover.
        budget_bytes: of the whole GOP; the worst level is sent even if it is more than that.

    Raises:
        ValueError: there is no such policy.

    """
    if policy not in POLICIES:
        raise ValueError(f"no policy is called {policy!r}: use {', '.join(POLICIES)}")
    tiles = sizes.shape[1]
    likeliest = tuple(int(t) for t in np.argsort(-likelihood, kind="stable"))
    if policy == "viewport":
        return Plan(likeliest, _expected_best(sizes, errors, likelihood, budget_bytes))
    fitting = [level for level, row in enumerate(sizes) if row.sum() <= budget_bytes]
    level = fitting[0] if fitting else len(sizes) - 1
    order = likeliest if policy == "ordered" else tuple(range(tiles))
    return Plan(order, (level,) * tiles)


def _expected_best(
    sizes: NDArray[np.int64],
    errors: NDArray[np.float64],
    likelihood: NDArray[np.float64],
    budget_bytes: float,
) -> tuple[int, ...]:
    """Raises the quality of one tile after the other, where a byte lowers the error most."""
    worst, tiles = len(sizes) - 1, sizes.shape[1]
    levels = [worst] * tiles
    left = budget_bytes - float(sizes[worst].sum())
    candidates: list[tuple[float, int, int]] = []

    def offer(tile: int) -> None:
        """Puts up the step up from this tile's level that gains most for each byte."""
        found = [
            (-(gain / cost), tile, level)
            for level in range(levels[tile])
            if (cost := float(sizes[level, tile] - sizes[levels[tile], tile])) > 0
            and (gain := likelihood[tile] * (errors[levels[tile], tile] - errors[level, tile])) > 0
        ]
        if found:
            heapq.heappush(candidates, min(found))

    for tile in range(tiles):
        offer(tile)
    while candidates:
        _, tile, level = heapq.heappop(candidates)
        cost = float(sizes[level, tile] - sizes[levels[tile], tile])
        if cost > left:
            nearer = level + 1
            if nearer < levels[tile]:  # a smaller step of the same tile may still fit
                heapq.heappush(candidates, (0.0, tile, nearer))
            continue
        left -= cost
        levels[tile] = level
        offer(tile)
    return tuple(levels)


def harmonic_mean(rates: Sequence[float]) -> float:
    """Of the rates of the last GOPs: slow ones count more, as they take longer."""
    return len(rates) / sum(1.0 / max(rate, 1e-3) for rate in rates)
