"""Directions and orientations.

Coordinates are right-handed, in metres, z up. Azimuth turns from x towards y, elevation from the
horizontal plane towards z, both in radians. The boresight of an array is the x axis of its own
frame. An orientation turns this frame into the world's: yaw about z, then pitch of the boresight.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.parameters import Floats, ParameterError, angle, finite


def unit_vectors(azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
    """Unit vectors, shape (..., 3), of directions in radians, shape (...)."""
    az, el = angle("azimuth", azimuth), angle("elevation", elevation)
    az, el = np.broadcast_arrays(az, el)
    return np.stack([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)], axis=-1)


def angles_of(vectors: ArrayLike) -> tuple[Floats, Floats]:
    """Azimuth and elevation in radians, shape (...), of vectors, shape (..., 3), of any length.

    Raises:
        ParameterError: the last axis is not 3 long, or a vector has no length.

    """
    found = points("vectors", vectors)
    length = np.linalg.norm(found, axis=-1)
    if not (length > 0).all():
        raise ParameterError("vectors", "a vector of length 0", "vectors that have a direction")
    azimuth = np.arctan2(found[..., 1], found[..., 0])
    return azimuth, np.arcsin(np.clip(found[..., 2] / length, -1.0, 1.0))


def points(name: str, values: ArrayLike) -> Floats:
    """Points or vectors, shape (..., 3).

    Raises:
        ParameterError: the last axis is not 3 long, or a value is not finite.

    """
    found = finite(name, values)
    if found.ndim == 0 or found.shape[-1] != 3:
        raise ParameterError(f"shape of {name}", found.shape, "(..., 3)")
    return found


def wrap(azimuth: ArrayLike) -> Floats:
    """Angles in radians, brought into [-pi, pi)."""
    return np.mod(np.asarray(azimuth, dtype=np.float64) + np.pi, 2 * np.pi) - np.pi


@dataclass(frozen=True)
class Orientation:
    """Orientation of a device; angles in radians."""

    yaw: float = 0.0
    """About the vertical axis, from x towards y."""
    pitch: float = 0.0
    """Lifts the boresight above the horizontal plane."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        angle("yaw", self.yaw)
        angle("pitch", self.pitch)

    def matrix(self) -> Floats:
        """Rotation from the device's frame into the world's, shape (3, 3)."""
        cos_yaw, sin_yaw = np.cos(self.yaw), np.sin(self.yaw)
        cos_pitch, sin_pitch = np.cos(self.pitch), np.sin(self.pitch)
        about_z = np.array([[cos_yaw, -sin_yaw, 0], [sin_yaw, cos_yaw, 0], [0, 0, 1.0]])
        about_y = np.array([[cos_pitch, 0, -sin_pitch], [0, 1.0, 0], [sin_pitch, 0, cos_pitch]])
        return np.asarray(about_z @ about_y, dtype=np.float64)

    def local(self, azimuth: ArrayLike, elevation: ArrayLike) -> tuple[Floats, Floats]:
        """Directions of the world in the device's frame; radians, shapes kept."""
        return angles_of(unit_vectors(azimuth, elevation) @ self.matrix())

    @staticmethod
    def towards(origin: ArrayLike, target: ArrayLike) -> "Orientation":
        """The orientation whose boresight points from one point, shape (3,), to another."""
        azimuth, elevation = angles_of(points("target", target) - points("origin", origin))
        return Orientation(float(azimuth), float(elevation))
