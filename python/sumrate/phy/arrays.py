"""Planar phased arrays: elements, steering vectors, array factor, gain."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumrate.phy.decibels import decibels
from sumrate.phy.parameters import Floats, ParameterError, angle, positive, whole, within

Complexes = NDArray[np.complex128]
"""An array of complex numbers: weights, steering vectors."""


class Element(Protocol):
    """The pattern of one antenna element."""

    def gain_dbi(self, azimuth: Floats, elevation: Floats) -> Floats:
        """Gain in dBi towards directions in radians of the array's frame; shapes broadcast."""
        ...


@dataclass(frozen=True)
class Isotropic:
    """An element with 0 dBi in all directions."""

    def gain_dbi(self, azimuth: Floats, elevation: Floats) -> Floats:
        """0 dBi everywhere; shapes broadcast."""
        return np.zeros(np.broadcast_shapes(np.shape(azimuth), np.shape(elevation)))


@dataclass(frozen=True)
class PatchElement:
    """3GPP's patch element: parabolas in dB with a floor towards the sides and the back.

    A = peak - min(12 (azimuth/width)^2 + 12 (elevation/width)^2, front to back ratio); source:
    3GPP TR 38.901 table 7.3-1, with 8 dBi, 65 degrees and 30 dB. The default element has 5 dBi. It
    is wider, so it radiates the same share of its power (two thirds) as the table's element.
    """

    peak_dbi: float = 5.0
    width: float = float(np.deg2rad(100.0))
    """Half-power beam width in radians, in azimuth and in elevation."""
    front_to_back_db: float = 30.0

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("peak_dbi", self.peak_dbi, -10.0, 15.0)
        within("width", self.width, 0.0, 2 * np.pi, open_low=True)
        within("front_to_back_db", self.front_to_back_db, 0.0, 100.0)

    def gain_dbi(self, azimuth: Floats, elevation: Floats) -> Floats:
        """Gain in dBi towards directions in radians; azimuth within [-pi, pi], shapes broadcast."""
        lost = 12.0 * (np.square(azimuth / self.width) + np.square(elevation / self.width))
        return np.asarray(self.peak_dbi - np.minimum(lost, self.front_to_back_db))


TR38901_ELEMENT = PatchElement(8.0, float(np.deg2rad(65.0)), 30.0)
"""The element of 3GPP TR 38.901 table 7.3-1."""


@dataclass(frozen=True)
class PlanarArray:
    """A rectangular array in the plane across its boresight: columns along y, rows along z.

    Raises:
        ParameterError: columns or rows are not whole, or the spacing is not positive.

    """

    columns: int = 8
    rows: int = 4
    spacing: float = 0.5
    """Distance between neighbouring elements, in wavelengths."""
    element: Element = field(default_factory=PatchElement)

    def __post_init__(self) -> None:
        """Checks the parameters."""
        whole("columns", self.columns, 1, 1024)
        whole("rows", self.rows, 1, 1024)
        positive("spacing", self.spacing)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.columns * self.rows

    @property
    def array_gain_db(self) -> float:
        """Gain over one element with all elements in phase: 10 log10(elements)."""
        return float(10.0 * np.log10(self.elements))

    @property
    def peak_dbi(self) -> float:
        """Gain at boresight with all elements in phase, in dBi."""
        zero = np.zeros(())
        return self.array_gain_db + float(self.element.gain_dbi(zero, zero))

    def positions(self) -> Floats:
        """Offsets of the elements from the centre along y and z in wavelengths: (elements, 2)."""
        across = (np.arange(self.columns) - (self.columns - 1) / 2) * self.spacing
        upward = (np.arange(self.rows) - (self.rows - 1) / 2) * self.spacing
        y, z = np.meshgrid(across, upward, indexing="ij")
        return np.column_stack([y.ravel(), z.ravel()])

    def steering(self, azimuth: ArrayLike, elevation: ArrayLike) -> Complexes:
        """Phases of a plane wave at the elements: shape (..., elements), each of magnitude 1.

        Args:
            azimuth: of the wave's source in the array's frame, radians; shapes broadcast.
            elevation: likewise.

        """
        az, el = angle("azimuth", azimuth), angle("elevation", elevation)
        along_y = np.sin(az) * np.cos(el)
        along_z = np.broadcast_to(np.sin(el), along_y.shape)
        directions = np.stack([along_y, along_z], axis=-1)
        return np.asarray(np.exp(2j * np.pi * (directions @ self.positions().T)))

    def weights_towards(self, azimuth: ArrayLike, elevation: ArrayLike) -> Complexes:
        """Weights, shape (..., elements), norm 1, whose gain peaks in the directions given."""
        return np.asarray(np.conj(self.steering(azimuth, elevation)) / np.sqrt(self.elements))

    def array_factor(
        self, weights: Complexes, azimuth: ArrayLike, elevation: ArrayLike
    ) -> Complexes:
        """Sum of the elements' signals: shape (beams, ...).

        Args:
            weights: shape (beams, elements); normalised to norm 1 here.
            azimuth: radians in the array's frame, shapes broadcast to (...).
            elevation: likewise.

        Raises:
            ParameterError: the weights have the wrong shape, or are all zero.

        """
        given = np.atleast_2d(np.asarray(weights, dtype=np.complex128))
        if given.ndim != 2 or given.shape[1] != self.elements:
            raise ParameterError("shape of weights", given.shape, f"(beams, {self.elements})")
        norm = np.linalg.norm(given, axis=1, keepdims=True)
        if not (norm > 0).all():
            raise ParameterError("weights", "all zero in a beam", "at least one element in use")
        return np.tensordot(given / norm, self.steering(azimuth, elevation), axes=([1], [-1]))

    def gain_dbi(self, weights: Complexes, azimuth: ArrayLike, elevation: ArrayLike) -> Floats:
        """Gain in dBi, element and array factor: shape (beams, ...).

        Args:
            weights: shape (beams, elements).
            azimuth: radians in the array's frame, shapes broadcast to (...).
            elevation: likewise.

        """
        factor = self.array_factor(weights, azimuth, elevation)
        element = self.element.gain_dbi(
            np.asarray(azimuth, dtype=np.float64), np.asarray(elevation, dtype=np.float64)
        )
        return decibels(np.square(np.abs(factor))) + element


def radiated_share(element: Element, steps: int = 721) -> float:
    """Mean gain of an element over the sphere, linear; 1 without loss."""
    elevation = np.linspace(-np.pi / 2, np.pi / 2, steps)
    azimuth = np.linspace(-np.pi, np.pi, 2 * steps)[:, np.newaxis]
    gain = np.power(10.0, element.gain_dbi(azimuth, elevation[np.newaxis, :]) / 10.0)
    over_azimuth = np.trapezoid(gain, azimuth[:, 0], axis=0)
    total = np.trapezoid(over_azimuth * np.cos(elevation), elevation)
    return float(total / (4 * np.pi))
