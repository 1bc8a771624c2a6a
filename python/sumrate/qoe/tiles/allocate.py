"""Which quality each tile of a GOP gets, and in which order they are sent.

Policies get a budget of bytes. `fix` treats all tiles alike: one quality, row by row. `ordered`
sends the same tiles, the likeliest to be seen first. `allocated` has qualities of their own for
all tiles, where a byte is expected to raise the viewport's PSNR most: first the best of them, then
every other tile that may be seen at the worst quality, so that it is not missing however the rate
falls, then better ones, and last the tiles that nobody is expected to see. `viewport` plans the
same, but the sender asks for more than the rate and anew within the second.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POLICIES = ("fix", "ordered", "allocated", "viewport")
NOTHING = -1
"""The level of a tile of which nothing was sent."""
CORE = 0.5
"""Of the budget: tiles for so much of it are sent before others have their worst quality."""
LEAST_SEEN = 0.001
"""Tiles that are expected to cover less of the viewport come last."""
ROUNDS = 3
"""How often errors are weighed anew by what the last plan leaves: PSNR is a logarithm."""
LOW, NORMAL, HIGH = range(3)


@dataclass(frozen=True)
class Plan:
    """What is sent of a GOP."""

    sends: tuple[tuple[int, int], ...]
    """Tile and level (0 is the best), in the order in which they are sent. Of a tile that is there
    twice, the better one is shown."""
    importance: tuple[int, ...] = ()
    """Of each of them: `LOW`, `NORMAL` or `HIGH`."""

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
    encodes: tuple[NDArray[np.int64], NDArray[np.float64]],
    views: NDArray[np.float64],
    budget_bytes: float,
    sent: NDArray[np.int64] | None = None,
) -> Plan:
    """The plan of one GOP, or of what is left of it.

    Args:
        policy: one of `POLICIES`.
        encodes: bytes, and squared errors, of which only the ratios count; both by level (0 is the
            best) and tile.
        views: the share of the viewport that each tile covers, by view that may come and tile; all
            are as likely as each other.
        budget_bytes: of the whole plan; the worst level is sent even if it is more than that.
        sent: the best level of each tile that was sent already, or `NOTHING`; for the last two.

    Raises:
        ValueError: there is no such policy.

    """
    if policy not in POLICIES:
        raise ValueError(f"no policy is called {policy!r}: use {', '.join(POLICIES)}")
    sizes, errors = encodes
    views = np.atleast_2d(views)
    there = np.full(sizes.shape[1], NOTHING) if sent is None else sent
    if policy in ("allocated", "viewport"):
        return _by_gain(sizes, errors, views, budget_bytes, there)
    fitting = [level for level, row in enumerate(sizes) if row.sum() <= budget_bytes]
    level = fitting[0] if fitting else len(sizes) - 1
    count = sizes.shape[1]
    if policy == "fix":
        return Plan(tuple((tile, level) for tile in range(count)), (NORMAL,) * count)
    thirds = tuple(HIGH - min(HIGH, 3 * place // count) for place in range(count))
    return Plan(tuple((tile, level) for tile in _likeliest(views.mean(axis=0))), thirds)


def _likeliest(likelihood: NDArray[np.float64]) -> list[int]:
    return [int(tile) for tile in np.argsort(-likelihood, kind="stable")]


def _by_gain(
    sizes: NDArray[np.int64],
    errors: NDArray[np.float64],
    views: NDArray[np.float64],
    budget_bytes: float,
    there: NDArray[np.int64],
) -> Plan:
    """The plan of `allocated` and `viewport`.

    What counts is the mean PSNR over the views, not that of the mean error: in each view an error
    is weighed by the geometric mean of that view's whole error before the plan and after it, which
    is close to what makes its fall a difference of logarithms.
    """
    likelihood = weights = views.mean(axis=0)
    start, every = np.where(there == NOTHING, len(sizes) - 1, there), np.arange(sizes.shape[1])
    before = views @ errors[start, every]
    chosen = Plan(())
    for _ in range(ROUNDS):
        chosen = _chosen(sizes, errors * weights, likelihood, budget_bytes, there)
        best = start.copy()
        for tile, level in chosen.sends:
            best[tile] = min(level, best[tile])
        middle = np.sqrt(before * (views @ errors[best, every]))
        weights = (views / np.maximum(middle, before.max() * 1e-9 + 1e-300)[:, None]).mean(axis=0)
    return chosen


def _chosen(
    sizes: NDArray[np.int64],
    errors: NDArray[np.float64],
    likelihood: NDArray[np.float64],
    budget_bytes: float,
    there: NDArray[np.int64],
) -> Plan:
    """The plan for errors that are weighed by tile."""
    worst = len(sizes) - 1
    unsent = there == NOTHING
    levels = np.where(unsent, worst, there).tolist()

    def total(sends: Sequence[tuple[int, int]]) -> float:
        return float(sum(sizes[level, tile] for tile, level in sends))

    spare = budget_bytes - float(sizes[worst][unsent].sum())
    core = _better(sizes, errors, levels, max(0.0, min(CORE * budget_bytes, spare)))
    taken = {tile for tile, _ in core}
    bases = [(t, worst) for t in _likeliest(likelihood) if unsent[t] and t not in taken]
    rest = _better(sizes, errors, levels, budget_bytes - total(core) - total(bases))
    seen = [send for send in bases if likelihood[send[0]] >= LEAST_SEEN]
    last = [send for send in bases if likelihood[send[0]] < LEAST_SEEN]
    grades = [HIGH] * len(core) + [NORMAL] * len(seen) + [LOW] * (len(rest) + len(last))
    return Plan((*core, *seen, *rest, *last), tuple(grades))


def _better(
    sizes: NDArray[np.int64],
    errors: NDArray[np.float64],
    levels: list[int],
    budget_bytes: float,
) -> list[tuple[int, int]]:
    """The tiles that are sent better than at `levels`: those first that gain most for each byte.

    Greedy: the step of any tile that lowers its weighed error most for each byte is taken, until
    no step fits any more. `levels` are then those that they have.
    """
    tiles, before = sizes.shape[1], list(levels)
    left = budget_bytes
    size, error = sizes.T.tolist(), errors.T.tolist()
    candidates: list[tuple[float, int, int]] = []

    def cost(tile: int, step: int) -> int:
        """Of the step: what the tile at its better level was to cost is not sent then."""
        saved = 0 if levels[tile] == before[tile] else size[tile][levels[tile]]
        return int(size[tile][step] - saved)

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
    chosen = [(tile, levels[tile]) for tile in range(tiles) if levels[tile] != before[tile]]

    def gain(send: tuple[int, int]) -> float:
        tile, level = send
        return float((error[tile][before[tile]] - error[tile][level]) / size[tile][level])

    return sorted(chosen, key=gain, reverse=True)


def harmonic_mean(rates: Sequence[float]) -> float:
    """Of the rates of the last GOPs: slow ones count more, as they take longer."""
    return len(rates) / sum(1.0 / max(rate, 1e-3) for rate in rates)
