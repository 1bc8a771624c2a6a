"""The player against the thesis's rule, in virtual time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sumrate.qoe.video.playback import (
    Playback,
    PlaybackError,
    Video,
    average_psnr_db,
    expected_pause_share,
    fluid,
    least_pause_share,
)

STEP_S = 0.01


def constant(gops: int, size: int = 1000) -> Video:
    return Video((size,) * gops, 1.0)


def watch(video: Video, rate: float, seconds: float, capacity: int | None = None) -> Playback:
    """Feeds bytes at `rate` times the video's mean, as far as the buffer takes them."""
    player = Playback(video, capacity or 100 * max(video.gop_bytes))
    step = sum(video.gop_bytes) / len(video.gop_bytes) / video.gop_s * rate * STEP_S
    owed = 0.0
    for number in range(1, round(seconds / STEP_S) + 1):
        owed = min(owed + step, 2 * step)
        count = min(int(owed), player.space(number * STEP_S))
        if count > 0:
            player.add(number * STEP_S, count)
            owed -= count
    return player


@pytest.mark.parametrize("rate", [0.33, 0.45, 0.67, 0.93, 0.96])
def test_pauses_are_one_minus_rate_over_video_rate(rate: float) -> None:
    found = watch(constant(1000), rate, 400.0).watched(400.0)
    assert found.pause_share == pytest.approx(expected_pause_share(rate, 1.0), abs=0.01)
    assert found.failed_share == pytest.approx(found.pause_share, abs=0.015)


@pytest.mark.parametrize("rate", [1.0, 1.01, 2.0])
def test_a_link_as_fast_as_the_video_never_pauses(rate: float) -> None:
    found = watch(constant(1000), rate, 100.0).watched(100.0)
    assert found.pause_share == pytest.approx(0.0, abs=1e-6)
    assert found.failed_checks == 0


def test_published_pairs_of_pauses_and_psnr() -> None:
    """Figures 4.7a and 4.7b: each pair lies on the line, to what the thesis rounds away."""
    pairs = [(0, 55), (0.33, 42), (0.55, 34), (0.07, 52), (0.67, 30), (0.30, 44), (0.24, 46)]
    for pause, psnr in [*pairs, (0.04, 53.5)]:
        assert average_psnr_db(pause) == pytest.approx(psnr, abs=0.55)


def test_one_late_gop_is_one_pause_of_its_lateness() -> None:
    player = Playback(constant(4), 10_000)
    for at, count in ((0.5, 1000), (1.0, 1000), (3.25, 2000)):
        player.add(at, count)
    found = player.watched(10.0)
    assert (found.startup_s, found.pauses) == (0.5, 1)
    assert found.pause_s == pytest.approx(0.75)
    assert found.watched_s == pytest.approx(4.75)  # four GOPs and the pause: the video ends then
    assert found.shown == 4


def test_the_check_of_the_thesis_pauses_for_whole_gops() -> None:
    player = Playback(constant(4), 10_000)
    for at, count in ((0.5, 1000), (1.0, 1000), (3.25, 2000)):
        player.add(at, count)
    found = player.watched(10.0)
    # Checks at 0.5, 1.5, 2.5 (nothing), 3.5, 4.5; it counts a whole GOP where 0.75 s are lost.
    assert (found.checks, found.failed_checks) == (5, 1)


def test_a_pause_that_lasts_to_the_end_counts() -> None:
    player = Playback(constant(4), 10_000)
    player.add(1.0, 1500)
    found = player.watched(5.0)
    assert found.pause_s == pytest.approx(3.0)
    assert found.longest_pause_s == pytest.approx(3.0)


def test_what_was_before_the_time_that_counts_does_not() -> None:
    player = Playback(Video((1000, 1000, 2000, 1000), 1.0, (40.0,) * 4, (20.0,) * 4), 10_000)
    for at, count in ((0.5, 1000), (3.0, 1000), (6.0, 2000), (6.5, 1000)):
        player.add(at, count)
    # GOPs at 0.5, 3, 6 and 7; pauses 1.5 to 3 and 4 to 6.
    found = player.watched(8.0, 5.0)
    assert (found.startup_s, found.watched_s, found.pauses) == (0.5, 3.0, 1)
    assert found.pause_s == pytest.approx(1.0)
    assert found.shown_mbps == pytest.approx(4000 * 8e-6 / 3), "the one on the screen at 5 s, too"
    assert found.measured_psnr_db == pytest.approx((20 + 40 + 40) / 3)
    whole = player.watched(8.0)
    assert (whole.pauses, whole.checks) == (2, player.watched(8.0, 0.5).checks)
    assert player.watched(8.0, 9.0).pause_share == 1.0


def test_the_stock_is_what_came_and_was_not_shown() -> None:
    player = Playback(constant(10), 10_000)
    for at, count in ((0.0, 1000), (0.2, 1500), (0.4, 1250), (6.5, 800)):
        player.add(at, count)
    # Three GOPs and three quarters have come by 0.4 s, and begin at 0, 1 and 2 s.
    assert player.watched(8.0).stock_s == pytest.approx(1.0), "the first one, and nothing of it"
    assert player.watched(8.0, 0.5).stock_s == pytest.approx(3.75 - 0.5)
    assert player.watched(8.0, 2.5).stock_s == pytest.approx(3.75 - 2.5)
    assert player.watched(8.0, 5.0).stock_s == pytest.approx(0.75), "in a pause, a part of a GOP"
    assert player.watched(8.0, 7.0).stock_s == pytest.approx(4.55 - 3.5)


def fed(rates: list[tuple[float, float]], seconds: float, from_s: float) -> tuple[float, float]:
    """Pause share and least one by the last rate: times until which, and V times as many bytes."""
    steps = [STEP_S * (number + 1) for number in range(round(seconds / STEP_S))]
    arrivals = [
        (at, 1000 * STEP_S * next(rate for until, rate in rates if at <= until)) for at in steps
    ]
    found = fluid(constant(100), 100_000, arrivals, seconds, from_s)
    least = least_pause_share(
        rates[-1][1], 1.0, stock_s=found.stock_s, counted_s=found.watched_s, gop_s=1.0
    )
    return found.pause_share, least


@pytest.mark.parametrize("rate", [0.33, 0.45, 0.67, 0.93])
@pytest.mark.parametrize("from_s", [8.0, 8.3, 8.7, 9.1, 10.0])
def test_a_constant_rate_pauses_for_the_least_time_and_a_part_of_a_gop(
    rate: float, from_s: float
) -> None:
    share, least = fed([(99.0, rate)], 26.5, from_s)
    assert -0.002 <= share - least <= (1 - rate) / (26.5 - from_s) + 0.002


def test_a_stock_spares_pauses_and_lowers_the_least_share_by_as_much() -> None:
    share, least = fed([(5.0, 2.0), (99.0, 0.5)], 26.5, 5.0)
    expected = expected_pause_share(0.5, 1.0)
    assert share < expected - 0.2, "about 5 s of 21.5"
    assert least < expected - 0.2
    assert 0.0 <= share - least <= 0.5 / 21.5 + 0.002


def test_a_stock_never_makes_the_least_share_longer_or_negative() -> None:
    stocks = [least_pause_share(0.8, 1.0, stock_s=s, counted_s=10.0, gop_s=1.0) for s in range(9)]
    assert stocks[:2] == pytest.approx([0.2, 0.2 - 0.2 / 10.0])
    assert stocks == sorted(stocks, reverse=True)
    assert stocks[-1] == 0.0
    assert least_pause_share(0.8, 1.0, stock_s=5.0, counted_s=0.0, gop_s=1.0) == pytest.approx(0.2)


def test_nothing_shown_is_all_pause() -> None:
    found = Playback(constant(4), 10_000).watched(5.0)
    assert found.shown == 0
    assert found.pause_share == 1.0
    assert found.measured_psnr_db is None


def test_the_buffer_is_circular() -> None:
    player = Playback(constant(10), 3000)
    player.add(0.0, 3000)
    assert player.space(0.5) == 1000  # the first GOP left when it began to be shown
    assert player.next_release_s(0.5) == 1.0
    player.add(0.5, 1000)
    assert player.space(0.9) == 0
    assert player.space(1.0) == 1000


def test_a_full_buffer_always_says_when_it_has_room() -> None:
    video = Video((900, 100, 1000, 50, 700, 900), 1.0)
    player = Playback(video, 2000)
    now = 0.0
    while not player.finished:
        if (space := player.space(now)) > 0:
            player.add(now, space)
        else:
            release = player.next_release_s(now)
            assert release is not None
            now = release
    assert len(player.complete_at_s) == 6


def test_a_buffer_without_room_for_two_gops_is_refused() -> None:
    with pytest.raises(PlaybackError, match="at least 2000"):
        Playback(constant(3), 1999)


@pytest.mark.parametrize(
    "wrong", [{"gop_bytes": ()}, {"gop_bytes": (5, 0)}, {"gop_s": 0.0}, {"psnr_db": (40.0,)}]
)
def test_a_video_that_cannot_be_played_is_refused(wrong: dict[str, object]) -> None:
    good: dict[str, object] = {"gop_bytes": (10, 20), "gop_s": 1.0}
    with pytest.raises(PlaybackError):
        Video(**(good | wrong))  # type: ignore[arg-type]


def test_measured_psnr_weighs_pauses_with_the_frozen_frame() -> None:
    video = Video((1000,) * 3, 1.0, psnr_db=(40.0, 50.0, 45.0), frozen_psnr_db=(20.0, 10.0, 15.0))
    player = Playback(video, 10_000)
    player.add(0.0, 1000)
    player.add(2.0, 2000)
    # GOP 0 for 1 s, frozen for 1 s, GOPs 1 and 2 for 1 s each.
    assert player.watched(4.0).measured_psnr_db == pytest.approx((40 + 20 + 50 + 45) / 4)


def test_fluid_links_that_add_up_to_the_video_do_not_pause() -> None:
    video = constant(100)
    arrivals = [(0.1 * (i + 1), 100.0) for i in range(500)]
    assert fluid(video, 10_000, arrivals, 50.0).pause_share == pytest.approx(0.0, abs=1e-6)
    halved = [(at, count / 2) for at, count in arrivals]
    assert fluid(video, 10_000, halved, 50.0).pause_share == pytest.approx(0.5, abs=0.03)


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=30),
    gaps=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=60),
    end=st.floats(0.1, 100.0),
)
def test_time_is_shown_or_paused(sizes: list[int], gaps: list[float], end: float) -> None:
    """Whatever comes when: the time watched is pauses and GOPs, and the buffer never overflows."""
    player = Playback(Video(tuple(sizes), 1.0), 2 * max(sizes))
    now = 0.0
    for gap in gaps:
        now += gap
        space = player.space(now)
        assert 0 <= space <= player.capacity_bytes
        player.add(now, space)
    found = player.watched(end)
    assert 0.0 <= found.pause_share <= 1.0
    shown_s = found.watched_s - found.pause_s
    assert shown_s <= found.shown + 1e-6
    assert found.failed_checks <= found.checks
