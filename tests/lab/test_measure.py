"""Goodput and stalls of curves that are known exactly."""

import pytest

from sumrate.lab.blockage import describe, sum_ratio, undisturbed
from sumrate.lab.measure import Curve, Stall

SAMPLE_S = 0.005


def curve(rate_mbps: float, seconds: float, dark: tuple[float, float] = (0.0, 0.0)) -> Curve:
    """A constant rate, with nothing inside `dark`."""
    times, sizes, received = [100.0], [1], 1.0
    for i in range(1, int(seconds / SAMPLE_S) + 1):
        now = i * SAMPLE_S
        if dark[0] < now <= dark[1]:
            continue
        received += rate_mbps * 1e6 / 8 * SAMPLE_S
        times.append(100.0 + now)
        sizes.append(int(received))
    return Curve(times, sizes)


def test_goodput_of_a_constant_rate() -> None:
    steady = curve(800.0, 5.0)
    assert steady.duration_s == pytest.approx(5.0)
    assert steady.goodput_mbps() == pytest.approx(800.0, rel=1e-3)
    assert steady.goodput_mbps((1.0, 2.0), (3.0, 4.0)) == pytest.approx(800.0, rel=1e-3)
    assert all(g == pytest.approx(800.0, rel=1e-2) for _, g in steady.series())
    assert len(steady.series()) == 50


def test_a_stall_is_not_smeared_over_its_neighbours() -> None:
    broken = curve(800.0, 5.0, dark=(2.0, 3.0))
    stall = broken.longest_stall()
    assert stall.at_s == pytest.approx(2.0, abs=2 * SAMPLE_S)
    assert stall.length_s == pytest.approx(1.0, abs=2 * SAMPLE_S)
    assert broken.goodput_mbps((2.01, 2.99)) == 0.0
    assert broken.goodput_mbps((3.0, 5.0)) == pytest.approx(800.0, rel=0.01)


def test_stalls_elsewhere_do_not_count() -> None:
    broken = curve(800.0, 5.0, dark=(2.0, 3.0))
    assert broken.longest_stall((3.5, 4.5)).length_s < 2 * SAMPLE_S
    assert broken.longest_stall((2.9, 4.5)).length_s > 0.9


def test_a_single_sample_has_no_goodput_and_no_stall() -> None:
    point = Curve([3.0], [1000])
    assert point.goodput_mbps() == 0.0
    assert point.series() == []
    assert point.longest_stall() == Stall(0.0, 0.0)


def test_empty_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        Curve([], [])


def test_recovery_of_a_lone_link_is_not_counted_in_its_sum() -> None:
    """A lone TCP that wakes up at 5.2 s counts from 5.7 s on: the sum of the links is not low."""
    wigig = curve(1800.0, 12.0, dark=(2.0, 5.2))
    outside = undisturbed(wigig, blocked=True, margin_s=0.5)
    assert outside[0] == (0.5, 2.0)
    assert outside[1][0] == pytest.approx(5.7, abs=0.02)
    assert describe(wigig, "wigig")["goodput_outside_blockage_mbps"] == pytest.approx(
        1800, rel=0.01
    )


def test_sum_ratio_of_perfect_addition_is_one() -> None:
    curves = {
        "wifi": curve(600.0, 20.0),
        "wigig": curve(1800.0, 12.0, dark=(2.0, 5.0)),
        "sumrate": curve(2400.0, 8.0),
    }
    assert sum_ratio(curves, 0.5) == pytest.approx(1.0, rel=0.01)
    del curves["wigig"]
    assert sum_ratio(curves, 0.5) is None


def test_short_transfers_have_only_the_time_before_the_blockage() -> None:
    (only,) = undisturbed(curve(600.0, 1.2), blocked=True, margin_s=0.5)
    assert only == pytest.approx((0.5, 1.2))


def test_transfers_that_end_at_once_have_no_ratio() -> None:
    curves = {name: curve(600.0, 0.3) for name in ("wifi", "wigig", "sumrate")}
    assert sum_ratio(curves, 0.5) is None
