"""Tracks go where they say."""

import numpy as np
import pytest

from sumrate.phy.mobility import Rectangle, Track, random_waypoint, rotating, stationary, times
from sumrate.phy.parameters import ParameterError


def test_a_device_that_stays_or_turns() -> None:
    instants = times(2.0, 0.5)
    assert instants.tolist() == [0.0, 0.5, 1.0, 1.5]
    still = stationary(instants, [1.0, 2.0, 1.0], 0.3)
    assert (still.positions_m == [1.0, 2.0, 1.0]).all()
    assert still.steps_m.tolist() == [0.0, 0.0, 0.0]
    turning = rotating(instants, [0.0, 0.0, 0.0], 0.0, np.deg2rad(37.0))
    assert np.rad2deg(turning.yaw) == pytest.approx([0.0, 18.5, 37.0, 55.5])
    assert turning.orientation(2).yaw == pytest.approx(np.deg2rad(37))


def test_many_turns_are_one_orientation() -> None:
    turning = rotating(times(100.0, 1.0), [0.0, 0.0, 0.0], 0.0, np.pi / 4)
    assert turning.orientation(97).yaw == pytest.approx(np.pi / 4)


def test_a_rectangle_closes_with_four_quarter_turns() -> None:
    course = Rectangle((1.0, 2.0, 1.0), 1.8, 0.6, lap_s=16.0, turn_s=1.0)
    track = course.track(times(32.0, 0.01))
    lap = 1600
    assert track.positions_m[lap] == pytest.approx([1.0, 2.0, 1.0], abs=1e-6)
    assert track.positions_m[:lap, :2].max(axis=0) == pytest.approx([2.8, 2.6], abs=0.01)
    assert track.positions_m[:lap, :2].min(axis=0) == pytest.approx([1.0, 2.0], abs=0.01)
    assert track.steps_m[:lap].sum() == pytest.approx(4.8, abs=0.01)
    quarters = np.unique(
        np.round(track.yaw[:lap][np.concatenate([[False], track.steps_m[: lap - 1] > 1e-9])], 6)
    )
    assert quarters == pytest.approx([0, np.pi / 2, np.pi, 3 * np.pi / 2])
    right = Rectangle((1.0, 2.0, 1.0), 1.8, 0.6, lap_s=16.0, turning="right").track(times(16.0))
    assert right.positions_m[:, 1].min() == pytest.approx(1.4, abs=0.01)
    shifted = course.track(times(4.0, 0.01), start_s=8.0)
    assert shifted.positions_m[0] == pytest.approx(track.positions_m[800])


def test_walks_keep_their_area_and_speed() -> None:
    generator = np.random.default_rng(4)
    track = random_waypoint(times(300.0, 0.1), ((1.0, 6.0), (0.5, 4.0)), 1.2, generator)
    assert (track.positions_m.min(axis=0) >= [1.0, 0.5, 1.2]).all()
    assert (track.positions_m.max(axis=0) <= [6.0, 4.0, 1.2]).all()
    speed = track.steps_m / 0.1
    assert speed.max() <= 1.5 + 1e-6
    assert speed[speed > 0.01].mean() > 0.5
    moving = track.steps_m > 0.02
    way = np.diff(track.positions_m, axis=0)[moving]
    heading = np.arctan2(way[:, 1], way[:, 0])
    agrees = np.cos(heading - track.yaw[:-1][moving]) > 0.999
    assert agrees.mean() > 0.9


def test_bad_tracks_are_refused() -> None:
    with pytest.raises(ParameterError, match="seconds is 0"):
        times(0.0)
    with pytest.raises(ParameterError, match="times_s is not rising"):
        Track(np.array([0.0, 0.0]), np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ParameterError, match="turn_s is 5"):
        Rectangle((0.0, 0.0, 1.0), 2.0, 1.0, lap_s=16.0, turn_s=5.0)
    with pytest.raises(ParameterError, match="area_m"):
        random_waypoint(times(1.0), ((3.0, 1.0), (0.0, 1.0)), 1.0, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="shapes of times"):
        Track(np.arange(3.0), np.zeros((2, 3)), np.zeros(3))
