"""Directions, orientations and their frames."""

import numpy as np
import pytest

from sumrate.phy.directions import Orientation, angles_of, unit_vectors, wrap
from sumrate.phy.parameters import ParameterError


def test_angles_and_vectors_are_inverse() -> None:
    generator = np.random.default_rng(1)
    azimuth = generator.uniform(-np.pi, np.pi, (4, 7))
    elevation = generator.uniform(-1.5, 1.5, (4, 7))
    vectors = unit_vectors(azimuth, elevation)
    found = angles_of(3.0 * vectors)
    assert vectors.shape == (4, 7, 3)
    assert found[0] == pytest.approx(azimuth)
    assert found[1] == pytest.approx(elevation)


def test_boresight_is_the_zero_direction_of_the_device() -> None:
    turned = Orientation(yaw=0.7, pitch=-0.3)
    azimuth, elevation = turned.local(0.7, -0.3)
    assert (float(azimuth), float(elevation)) == pytest.approx((0.0, 0.0), abs=1e-12)
    left, _ = Orientation(yaw=0.5).local(0.9, 0.0)
    assert float(left) == pytest.approx(0.4)
    matrix = turned.matrix()
    assert matrix @ matrix.T == pytest.approx(np.eye(3))
    assert np.linalg.det(matrix) == pytest.approx(1.0)


def test_a_device_points_at_another() -> None:
    facing = Orientation.towards([1.0, 1.0, 2.0], [4.0, 5.0, 1.0])
    azimuth, elevation = facing.local(*angles_of(np.array([3.0, 4.0, -1.0])))
    assert (float(azimuth), float(elevation)) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_wrapping_keeps_the_direction() -> None:
    angles = np.array([0.0, 3.5, -3.5, 9.0])
    wrapped = wrap(angles)
    assert ((wrapped >= -np.pi) & (wrapped < np.pi)).all()
    assert np.exp(1j * wrapped) == pytest.approx(np.exp(1j * angles))


def test_bad_directions_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"yaw is 90.*radians"):
        Orientation(yaw=90)
    with pytest.raises(ParameterError, match=r"shape of vectors is \(2,\)"):
        angles_of([1.0, 2.0])
    with pytest.raises(ParameterError, match="length 0"):
        angles_of([0.0, 0.0, 0.0])
