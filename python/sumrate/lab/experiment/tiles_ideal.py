"""What a viewer would see over a transport that has all that the links' traces let through.

How much a policy gains depends on the film, the viewer and the rates; how much of it a transport
can add is seen beside this.
"""

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from sumrate.lab.links import Link
from sumrate.lab.tiles.sender import planned, possible_moves, slots_of
from sumrate.lab.tiles.task import Task
from sumrate.lab.tiles.viewer import RATES
from sumrate.qoe.tiles.allocate import Plan, harmonic_mean
from sumrate.qoe.tiles.head import movement
from sumrate.qoe.tiles.ladder import Ladder
from sumrate.qoe.tiles.shown import MISSING, see
from sumrate.qoe.tiles.viewport import View
from sumrate.traces import GOODPUT_SHARE, read

PARTS = 2
"""Of a second: a GOP is planned at the beginning of one."""


def sum_of_traces(links: Sequence[Link], seconds: int) -> tuple[float, ...]:
    """TCP payload in Mbit/s that all links together let through in each part of a run's seconds."""
    total = np.zeros(seconds * PARTS)
    for link in links:
        if link.down.trace is None:
            total += link.down.rate_mbps
            continue
        trace = read(link.down.trace)
        unit = gcd(round(trace.step_ms), 1000 // PARTS)
        rates = np.repeat(trace.rates_mbps, round(trace.step_ms) // unit)
        parts = np.resize(rates, seconds * 1000 // unit).reshape(seconds * PARTS, -1)
        total += parts.mean(axis=1)
    return tuple(float(rate) * GOODPUT_SHARE for rate in total)


def in_time(
    chosen: Plan, sizes: NDArray[np.int64], budget_bytes: float, levels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The level of each tile of which all came, in the plan's order, within so many bytes more."""
    found = levels.copy()
    left = budget_bytes
    for tile, level in chosen.sends:
        left -= float(sizes[level, tile])
        if left < 0:
            break
        found[tile] = level if found[tile] == MISSING else min(level, found[tile])
    return found


def ideal_levels(task: Task, rates_mbps: tuple[float, ...]) -> list[list[int]]:
    """The levels of the tiles of each GOP that are there when it is due.

    Args:
        task: what is planned and sent.
        rates_mbps: of each part of the seconds, as `sum_of_traces` has them.

    """
    head = movement(task.seed, task.gops + 2.0)
    moves = possible_moves(task.policy, task.seed)
    parts = np.reshape(rates_mbps, (task.gops, PARTS))
    slots = [round(begin_s * PARTS) for begin_s in slots_of(task.policy)]
    found = []
    for number in range(task.gops):
        sizes = task.sizes[number % len(task.sizes)]
        levels = np.full(sizes.shape[1], MISSING)
        for slot, (begin, end) in enumerate(zip(slots, [*slots[1:], PARTS], strict=True)):
            # A viewer knows the rate of what has come.
            known = [float(row.mean()) for row in parts[:number]]
            known += [float(parts[number][:begin].mean())] if begin else []
            rate = harmonic_mean(known[-RATES:]) if known else 0.0
            at_s = number + begin / PARTS
            look = (at_s, *head.at(at_s), rate)
            chosen = planned(task, (number, slot), look, moves[slot], levels)
            budget = float(parts[number][begin:end].sum()) * 125e3 / PARTS
            levels = in_time(chosen, sizes, budget, levels)
        found.append([int(level) for level in levels])
    return found


class Ideals:
    """Computes the viewport PSNR once for the runs that have it in common."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._known: dict[tuple[object, ...], float] = {}

    def psnr_db(
        self, task: Task, encodes: Ladder, rates_mbps: tuple[float, ...], settling: int
    ) -> float:
        """Mean over the GOPs that count, which are those behind the first `settling`."""
        key = (task.policy, task.seed, task.gops, encodes.about["sha256"], rates_mbps)
        if key not in self._known:
            levels = ideal_levels(task, rates_mbps)
            head = movement(task.seed, task.gops + 2.0)
            begins = [number + 1.0 for number in range(task.gops)]
            seen = see(encodes, View(), head, levels, begins)[settling:]
            self._known[key] = sum(gop.psnr_db for gop in seen) / len(seen)
        return self._known[key]


IDEALS = Ideals()
"""Those of this process: every scheme of a repetition has the same."""
