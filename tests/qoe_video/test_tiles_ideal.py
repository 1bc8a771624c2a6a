"""What a viewer would see if nothing of the links' traces were lacking."""

from pathlib import Path

import numpy as np
import pytest

from sumrate.lab.experiment.tiles_ideal import IDEALS, ideal_levels, in_time, sum_of_traces
from sumrate.lab.scene import radio
from sumrate.lab.tiles.task import Task
from sumrate.qoe.tiles.allocate import Plan
from sumrate.qoe.tiles.ladder import GRID, Ladder
from sumrate.qoe.tiles.shown import MISSING
from sumrate.traces import GOODPUT_SHARE, Trace, write


def made_up(gops: int = 4, frames: int = 2) -> Ladder:
    """Two levels with errors of 1 and 100, frozen tiles with 1000."""
    down, across = GRID.blocks
    shape = (gops, frames, down * across)
    errors = np.stack([np.full(shape, 1.0), np.full(shape, 100.0)]).astype(np.float32)
    frozen = np.full((2, 1, *shape), 1000.0).astype(np.float16)
    sizes = np.tile(np.array([[1000], [100]]), (gops, 1, GRID.tiles)).astype(np.int64)
    about = {"sha256": "made up"}
    return Ladder(GRID, sizes.reshape(gops, 2, GRID.tiles), errors, frozen, about)


def test_links_add_up_by_half_a_second(tmp_path: Path) -> None:
    path = tmp_path / "wigig.trace"
    write(Trace(500.0, (100.0, 300.0, 0.0, 400.0, 800.0, 800.0)), path)
    links = [radio("wifi", 1, 50.0, 3.0), radio("wigig", 2, 900.0, 2.0).with_trace(path)]
    expected = [150.0, 350.0, 50.0, 450.0, 850.0, 850.0, 150.0, 350.0]
    assert sum_of_traces(links, 4) == pytest.approx([v * GOODPUT_SHARE for v in expected])


def test_tiles_come_in_the_plans_order_as_far_as_the_bytes_go() -> None:
    sizes = np.array([[100, 100, 100], [10, 10, 10]])
    chosen = Plan(((2, 1), (1, 1), (2, 0), (0, 0)))
    nothing = np.full(3, MISSING)
    assert in_time(chosen, sizes, 125.0, nothing).tolist() == [MISSING, 1, 0]
    assert in_time(chosen, sizes, 1000.0, nothing).tolist() == [0, 1, 0]
    assert in_time(chosen, sizes, 5.0, nothing).tolist() == [MISSING] * 3
    assert in_time(chosen, sizes, 5.0, np.array([1, 0, MISSING])).tolist() == [1, 0, MISSING]


def test_nothing_is_missing_at_a_steady_rate_and_a_faster_one_is_no_worse() -> None:
    encodes = made_up()
    errors = np.stack([encodes.tile_errors(gop) for gop in range(encodes.gops)])
    task = Task("fix", 1, 6, 0.9, encodes.sizes, errors)
    slow = float(encodes.sizes[:, 1].sum(axis=1).max()) * 8e-6 / 0.9 * 1.01
    levels = ideal_levels(task, (slow,) * 12)
    assert all(level != MISSING for row in levels[2:] for level in row)
    assert len(levels[0]) == GRID.tiles
    fast = float(encodes.sizes[:, 0].sum(axis=1).max()) * 8e-6 / 0.9 * 1.01
    worse, better = (IDEALS.psnr_db(task, encodes, (mbps,) * 12, 2) for mbps in (slow, fast))
    assert [worse, better] == pytest.approx([28.1, 48.1], abs=0.1)
    assert IDEALS.psnr_db(task, encodes, (slow,) * 12, 2) == worse


def test_what_is_planned_by_gain_is_planned_anew_from_what_has_come() -> None:
    encodes = made_up()
    errors = np.stack([encodes.tile_errors(gop) for gop in range(encodes.gops)])
    task = Task("viewport", 1, 6, 0.9, encodes.sizes, errors)
    worst = float(encodes.sizes[0, 1].sum()) * 8e-6
    best = float(encodes.sizes[0, 0].sum()) * 8e-6
    # In each second's first half little more than the worst quality, in its second half plenty.
    levels = ideal_levels(task, (2.4 * worst, 6.0 * best) * 6)
    assert all(level != MISSING for row in levels[2:] for level in row)
    shown = [sum(level == 0 for level in row) for row in levels[2:]]
    assert min(shown) > GRID.tiles // 4, "better ones with what the second half brought"
