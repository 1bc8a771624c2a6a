"""Head, viewport, plan and what is seen, against what can be worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sumrate.lab.tiles.wire import Chunk, Reader, chunks
from sumrate.qoe.tiles.allocate import HIGH, LOW, NORMAL, NOTHING, harmonic_mean, plan
from sumrate.qoe.tiles.head import displacements, movement
from sumrate.qoe.tiles.ladder import Ladder, block_errors
from sumrate.qoe.tiles.shown import MISSING, mean_level, see
from sumrate.qoe.tiles.viewport import BLOCK, Grid, View, views

GRID = Grid(192, 96, 6, 4)


def made_up(gops: int = 4, frames: int = 2) -> Ladder:
    """Two levels with errors of 1 and 100; frozen, of 1000, 2000 and 3000, or ten times that."""
    down, across = GRID.blocks
    shape = (gops, frames, down * across)
    errors = np.stack([np.full(shape, 1.0), np.full(shape, 100.0)]).astype(np.float32)
    best = np.stack([np.full(shape, 1000.0 * lag) for lag in (1, 2, 3)])
    frozen = np.stack([best, 10 * best]).astype(np.float16)
    sizes = np.tile(np.array([[1000], [100]]), (gops, 1, GRID.tiles)).astype(np.int64)
    return Ladder(GRID, sizes.reshape(gops, 2, GRID.tiles), errors, frozen, {})


def test_a_movement_is_its_seed() -> None:
    assert np.array_equal(movement(3, 5.0).yaw_deg, movement(3, 5.0).yaw_deg)
    assert not np.array_equal(movement(3, 5.0).yaw_deg, movement(4, 5.0).yaw_deg)


def test_heads_turn_as_people_do() -> None:
    """Not still, not spinning, mostly near the horizon."""
    speeds = []
    for seed in range(8):
        found = movement(seed, 30.0)
        speeds.append(np.abs(np.diff(found.yaw_deg)) * 60)
        assert np.abs(found.pitch_deg).max() < 75
    everything = np.concatenate(speeds)
    assert 5 < np.median(everything) + everything.mean() < 80
    assert np.percentile(everything, 99) < 400


def test_predictions_get_worse_with_time() -> None:
    near = displacements((0.1,), viewers=5, seconds=10.0)[:, 0].std()
    far = displacements((2.0,), viewers=5, seconds=10.0)[:, 0].std()
    assert near < far / 3


def test_tiles_that_do_not_fall_between_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="not whole blocks"):
        Grid(100, 96, 6, 4)


def test_a_viewport_covers_what_is_in_front() -> None:
    weights = View().weights(GRID, 0.0, 0.0)
    assert weights.sum() == pytest.approx(1.0)
    by_tile = GRID.by_tile(weights).reshape(4, 6)
    assert by_tile[1:3, 2:4].sum() > 0.6  # the picture's middle
    assert by_tile[:, 0].sum() == by_tile[:, 5].sum() == 0.0  # what is behind
    behind = GRID.by_tile(View().weights(GRID, 180.0, 0.0)).reshape(4, 6)
    assert behind[:, 2:4].sum() == pytest.approx(0.0, abs=0.01)


def test_up_is_up_and_right_is_right() -> None:
    up = GRID.by_tile(View().weights(GRID, 0.0, 60.0)).reshape(4, 6)
    assert up[:2].sum() > 0.9
    right = GRID.by_tile(View().weights(GRID, 60.0, 0.0)).reshape(4, 6)
    assert right[:, 3:].sum() > 0.9


def test_what_may_be_seen_spreads_with_the_displacements() -> None:
    still = views(GRID, View(), 0.0, 0.0, np.zeros((1, 2)))
    turned = views(GRID, View(), 0.0, 0.0, np.array([[-60.0, 0.0], [60.0, 0.0]]))
    assert still.shape == (1, GRID.tiles)
    assert still.sum() == pytest.approx(1.0)
    assert turned.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert still.max() > turned.mean(axis=0).max()


def uneven() -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    sizes = np.array([[900] * 4, [300] * 4, [100] * 4])
    errors = np.array([[1.0] * 4, [10.0] * 4, [100.0] * 4])
    return sizes, errors, np.array([0.0, 0.7, 0.2, 0.1])


def test_fix_treats_all_alike_and_goes_row_by_row() -> None:
    sizes, errors, likelihood = uneven()
    found = plan("fix", (sizes, errors), likelihood, 1300.0)
    assert found.sends == ((0, 1), (1, 1), (2, 1), (3, 1))
    assert set(plan("fix", (sizes, errors), likelihood, 50.0).best().values()) == {2}
    assert set(plan("fix", (sizes, errors), likelihood, 1e6).best().values()) == {0}


def test_ordered_is_fix_with_the_likeliest_first() -> None:
    sizes, errors, likelihood = uneven()
    found = plan("ordered", (sizes, errors), likelihood, 1300.0)
    assert found.sends == ((1, 1), (2, 1), (3, 1), (0, 1))


def test_viewport_sends_the_best_then_what_may_not_be_missing_then_more() -> None:
    sizes, errors, likelihood = uneven()
    found = plan("viewport", (sizes, errors), likelihood, 2000.0)
    # Half of the budget; then what is left for better ones; nobody will see tile 0.
    assert found.sends == ((1, 1), (2, 1), (3, 1), (1, 0), (0, 2))
    assert found.importance == (HIGH, HIGH, HIGH, LOW, LOW)
    assert found.best() == {0: 2, 1: 0, 2: 1, 3: 1}
    assert found.total_bytes(sizes) == 1900
    worst = plan("viewport", (sizes, errors), likelihood, 1.0)
    assert worst.sends == ((1, 2), (2, 2), (3, 2), (0, 2))
    assert worst.importance == (NORMAL, NORMAL, NORMAL, LOW)
    some = plan("viewport", (sizes, errors), likelihood, 800.0)
    assert some.sends == ((1, 1), (2, 2), (3, 2), (0, 2)), "none is missing for a better one"


def test_viewport_goes_on_from_what_was_sent() -> None:
    sizes, errors, likelihood = uneven()
    sent = np.array([NOTHING, 1, 2, NOTHING])
    found = plan("viewport", (sizes, errors), likelihood, 500.0, sent)
    assert found.sends == ((3, 2), (2, 1), (0, 2))


def test_viewport_lowers_where_psnr_rises_most_and_not_where_the_error_falls_most() -> None:
    sizes = np.array([[100, 100], [1, 1]])
    errors = np.array([[5e5, 1.0], [1e6, 10.0]])
    views = np.eye(2)  # the one tile or the other
    found = plan("viewport", (sizes, errors), views, 102.0)
    assert found.best() == {0: 1, 1: 0}, "10 dB in one view rather than 3 dB in the other"


def test_allocated_plans_a_budget_like_viewport() -> None:
    sizes, errors, likelihood = uneven()[:3]
    assert plan("allocated", (sizes, errors), likelihood, 800.0) == plan(
        "viewport", (sizes, errors), likelihood, 800.0
    )


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="fix, ordered, allocated, viewport"):
        plan("best", uneven()[:2], uneven()[2], 1.0)


@given(
    seed=st.integers(0, 1000),
    budget=st.floats(0.0, 5000.0),
)
def test_a_plan_keeps_to_its_budget(seed: int, budget: float) -> None:
    """Never above it, unless the worst level alone is; never worse than treating all alike."""
    source = np.random.default_rng(seed)
    sizes = np.sort(source.integers(1, 200, (5, 8)), axis=0)[::-1]
    errors = np.sort(source.uniform(1, 500, (5, 8)), axis=0)
    likelihood = source.dirichlet(np.ones(8))
    chosen = plan("viewport", (sizes, errors), likelihood, budget)
    assert sorted(chosen.best()) == list(range(8))
    assert chosen.total_bytes(sizes) <= max(budget, float(sizes[-1].sum()))


def test_all_tiles_in_time_show_their_level() -> None:
    ladder = made_up()
    best, worst = [0] * GRID.tiles, [1] * GRID.tiles
    found = see(ladder, View(), movement(1, 4.0), [best, worst], [1.0, 2.0])
    assert [round(gop.psnr_db, 2) for gop in found] == [48.13, 28.13]
    assert all(gop.missing_share == 0 for gop in found)


def test_missing_tiles_show_what_came_last() -> None:
    """1, 2, then for ever 3 GOPs old; a tile that comes is whole again."""
    ladder = made_up()
    best, none = [0] * GRID.tiles, [MISSING] * GRID.tiles
    begins = [float(n + 1) for n in range(6)]
    found = see(ladder, View(), movement(1, 8.0), [best, none, none, none, none, best], begins)
    expected = [1.0, 1000.0, 2000.0, 3000.0, 3000.0, 1.0]
    assert [gop.psnr_db for gop in found] == pytest.approx(
        [10 * np.log10(255**2 / error) for error in expected], abs=0.01
    )
    assert found[1].missing_share == pytest.approx(1.0)
    rough = see(ladder, View(), movement(1, 8.0), [[1] * GRID.tiles, none], begins[:2])
    assert rough[1].psnr_db == pytest.approx(10 * np.log10(255**2 / 10_000), abs=0.01)


def test_mean_level_is_of_what_came() -> None:
    assert mean_level([[0, MISSING], [2, 4]]) == pytest.approx(2.0)
    assert mean_level([[MISSING]]) is None


def test_block_errors_are_means_of_squares() -> None:
    one = np.zeros((2 * BLOCK, BLOCK), np.uint8)
    other = one.copy()
    other[BLOCK:, :] = 10
    assert block_errors(one, other).tolist() == [0.0, 100.0]


def test_slow_gops_count_more() -> None:
    assert harmonic_mean([100.0, 300.0]) == pytest.approx(150.0)


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=6), st.integers(997, 70_000))
def test_chunks_survive_any_cut(sizes: list[int], cut: int) -> None:
    sent = [c for tile, size in enumerate(sizes) for c in chunks(7, tile, 3, size)]
    data = b"".join(chunk.head() + bytes(chunk.length) for chunk in sent)
    reader, found = Reader(), list[Chunk]()
    for start in range(0, len(data), cut):
        found += reader.feed(memoryview(data[start : start + cut]))
    assert found == sent
    assert sum(chunk.last for chunk in found) == len(sizes)


def test_a_stream_without_tiles_is_refused() -> None:
    with pytest.raises(ValueError, match="no tiles"):
        list(Reader().feed(memoryview(bytes(100))))
