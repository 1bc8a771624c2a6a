"""Blockage model A of 3GPP TR 38.901 (section 7.6.4.1): blockers as ranges of directions."""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.directions import wrap
from sumrate.phy.parameters import (
    Booleans,
    Floats,
    ParameterError,
    angle,
    one_of,
    positive,
    whole,
    within,
)
from sumrate.phy.propagation import CARRIER_HZ, wavelength

SELF_BLOCKING_DB = 30.0
_SELF_REGIONS = {
    "portrait": (260.0, 120.0, 100.0, 80.0),
    "landscape": (40.0, 160.0, 110.0, 75.0),
}
"""Centre and width in azimuth, centre and width in zenith, degrees (table 7.6.4.1-1)."""


def self_blocking_db(azimuth: ArrayLike, elevation: ArrayLike, held: str = "portrait") -> Floats:
    """Loss in dB behind the user's body, by direction in the device's frame (radians).

    Args:
        azimuth: radians, any shape.
        elevation: radians; shapes broadcast.
        held: `portrait` or `landscape`.

    """
    centre, width, zenith, height = np.deg2rad(_SELF_REGIONS[one_of("held", held, _SELF_REGIONS)])
    away = np.abs(wrap(angle("azimuth", azimuth) - centre))
    above = np.abs(np.pi / 2 - angle("elevation", elevation) - zenith)
    return np.where((away < width / 2) & (above < height / 2), SELF_BLOCKING_DB, 0.0)


@dataclass(frozen=True, eq=False)
class AngularBlockers:
    """Directions of blockers: fields of shape (..., blockers), radians in the world's frame."""

    azimuth: Floats
    width: Floats
    height: Floats
    distance_m: float
    frequency_hz: float = CARRIER_HZ

    def loss_db(self, azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
        """Loss in dB of all blockers together towards directions in radians.

        L = -20 log10(1 - (F_A1 + F_A2)(F_Z1 + F_Z2)) for each blocker (equation 7.6-22).

        Args:
            azimuth: shape (..., rays), where ... is that of the blockers.
            elevation: likewise.

        Returns:
            Shape (..., rays).

        """
        away = wrap(angle("azimuth", azimuth)[..., np.newaxis] - self.azimuth[..., np.newaxis, :])
        above = np.broadcast_to(angle("elevation", elevation)[..., np.newaxis], away.shape)
        width = np.broadcast_to(self.width[..., np.newaxis, :], away.shape)
        height = np.broadcast_to(self.height[..., np.newaxis, :], away.shape)
        near: Booleans = np.asarray((np.abs(away) < width) & (np.abs(above) < height))
        across = self._edges(away, width)
        upright = self._edges(above, height)
        left = np.clip(1.0 - across * upright, 1e-6, None)
        lost = np.where(near, -20 * np.log10(left), 0.0)
        return np.asarray(lost.sum(axis=-1))

    def _edges(self, offset: Floats, size: Floats) -> Floats:
        """Sum of F over the two edges of one axis; positive for a hidden direction."""
        total = np.zeros_like(offset)
        for side in (-1.0, 1.0):
            edge = side * offset + size / 2
            detour = 1 / np.maximum(np.cos(np.clip(edge, -1.5, 1.5)), 1e-6) - 1
            shadow = np.sqrt(np.pi / wavelength(self.frequency_hz) * self.distance_m * detour)
            total += np.sign(edge) * np.arctan(np.pi / 2 * shadow) / np.pi
        return total


@dataclass(frozen=True)
class AngularBlockage:
    """Number of blockers and their change along a way (table 7.6.4.1-2, indoor).

    Raises:
        ParameterError: the number of blockers is not whole, or a distance not positive.

    """

    blockers: int = 4
    distance_m: float = 2.0
    correlation_m: float = 5.0
    """Correlation distance: the receiver meets new blockers after it."""
    width_deg: tuple[float, float] = (15.0, 45.0)
    height_deg: tuple[float, float] = (5.0, 15.0)
    frequency_hz: float = CARRIER_HZ

    def __post_init__(self) -> None:
        """Checks the parameters."""
        whole("blockers", self.blockers, 0, 1000)
        positive("distance_m", self.distance_m)
        positive("correlation_m", self.correlation_m)
        for name in ("width_deg", "height_deg"):
            low, high = within(name, getattr(self, name), 0.0, 180.0)
            if low > high:
                raise ParameterError(name, (low, high), "the least first")

    def draw(self, links: int, generator: np.random.Generator) -> AngularBlockers:
        """Independent blockers for links: fields of shape (links, blockers)."""
        shape = (whole("links", links), self.blockers)
        return self._placed(generator.random((3, *shape)))

    def along(self, steps_m: ArrayLike, generator: np.random.Generator) -> AngularBlockers:
        """Blockers that change along a way of n steps: fields of shape (n + 1, blockers).

        Each of azimuth, width and height is uniform everywhere and correlated over the distance as
        exp(-distance / correlation distance), by way of a normal process.
        """
        steps = within("steps_m", steps_m, 0.0)
        if steps.ndim != 1:
            raise ParameterError("shape of steps_m", steps.shape, "(n,)")
        kept = np.exp(-steps / self.correlation_m)
        normal = generator.normal(size=(steps.size + 1, 3, self.blockers))
        for i in range(steps.size):
            fresh = sqrt(1 - kept[i] ** 2)
            normal[i + 1] = kept[i] * normal[i] + fresh * normal[i + 1]
        return self._placed(np.moveaxis(_uniform(normal), 1, 0))

    def _placed(self, uniform: Floats) -> AngularBlockers:
        """Blockers of uniform numbers: shape (3, ..., blockers)."""

        def scaled(values: Floats, span: tuple[float, float]) -> Floats:
            return np.asarray(np.deg2rad(span[0] + (span[1] - span[0]) * values))

        return AngularBlockers(
            scaled(uniform[0], (-180.0, 180.0)),
            scaled(uniform[1], self.width_deg),
            scaled(uniform[2], self.height_deg),
            self.distance_m,
            self.frequency_hz,
        )


def _uniform(normal: Floats) -> Floats:
    """Normal values turned into uniform ones between 0 and 1."""
    return np.asarray(
        np.vectorize(lambda x: 0.5 * (1 + erf(x / sqrt(2))))(normal), dtype=np.float64
    )
