"""Rays between a transmitter and a receiver, the result of every channel model."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.codebook import Pattern
from sumrate.phy.decibels import decibels, linear
from sumrate.phy.directions import Orientation
from sumrate.phy.parameters import Floats, Integers, ParameterError, finite, positive, whole, within

ABSENT_DB = -300.0
"""Gain of an absent ray, where links have different numbers of rays."""


@dataclass(frozen=True, eq=False)
class Rays:
    """Rays of one link, or of many: every field has the shape (..., rays).

    Directions are the world's, in radians, pointing away from the device: departure as seen from
    the transmitter, arrival as seen from the receiver. Gains are between isotropic antennas.

    Raises:
        ParameterError: shapes differ.

    """

    gain_db: Floats
    """Power gain in dB, negative; `ABSENT_DB` for an absent ray."""
    delay_s: Floats
    departure_azimuth: Floats
    departure_elevation: Floats
    arrival_azimuth: Floats
    arrival_elevation: Floats
    phase: Floats
    """Phase at the carrier, radians."""
    order: Integers
    """Reflections on the way; 0 is the line of sight."""
    vertices: Floats | None = None
    """Corners of the way, with transmitter and receiver: (..., rays, corners, 3).

    The last corner is repeated to equal length. None in models without geometry.
    """

    def __post_init__(self) -> None:
        """Checks the parameters."""
        shape = np.shape(self.gain_db)
        if len(shape) < 1 or shape[-1] < 1:
            raise ParameterError("shape of gain_db", shape, "(..., rays) with at least one ray")
        names = ["delay_s", "phase", "order"]
        names += [
            f"{end}_{a}" for end in ("departure", "arrival") for a in ("azimuth", "elevation")
        ]
        for name in names:
            if np.shape(getattr(self, name)) != shape:
                raise ParameterError(f"shape of {name}", np.shape(getattr(self, name)), str(shape))

    @property
    def rays(self) -> int:
        """Number of rays of each link."""
        return int(self.gain_db.shape[-1])

    def attenuated(self, loss_db: ArrayLike) -> "Rays":
        """The rays with a further loss in dB; shapes broadcast to (..., rays)."""
        lost = np.broadcast_to(finite("loss_db", loss_db), self.gain_db.shape)
        return replace(self, gain_db=np.maximum(self.gain_db - lost, ABSENT_DB))

    def link(self, index: int | tuple[int, ...]) -> "Rays":
        """The rays of one of many links."""
        vertices = None if self.vertices is None else self.vertices[index]
        return Rays(
            self.gain_db[index],
            self.delay_s[index],
            self.departure_azimuth[index],
            self.departure_elevation[index],
            self.arrival_azimuth[index],
            self.arrival_elevation[index],
            self.phase[index],
            self.order[index],
            vertices,
        )

    def total_gain_db(self) -> Floats:
        """Power gain of all rays together, between isotropic antennas: shape (...)."""
        return decibels(linear(self.gain_db).sum(axis=-1))

    def departure_gain_dbi(self, pattern: Pattern, facing: Orientation) -> Floats:
        """Gain of every transmit beam towards every ray: shape (beams, ..., rays)."""
        return pattern.gain_dbi(*facing.local(self.departure_azimuth, self.departure_elevation))

    def arrival_gain_dbi(self, pattern: Pattern, facing: Orientation) -> Floats:
        """Gain of every receive beam towards every ray: shape (beams, ..., rays)."""
        return pattern.gain_dbi(*facing.local(self.arrival_azimuth, self.arrival_elevation))

    def beam_gain_db(
        self,
        transmit: Pattern,
        receive: Pattern,
        transmit_facing: Orientation | None = None,
        receive_facing: Orientation | None = None,
    ) -> Floats:
        """Power gain of every pair of beams: shape (transmit beams, receive beams, ...).

        Powers of the rays add up: a channel of 2 GHz resolves delays of half a nanosecond, so rays
        do not cancel over the whole band.
        """
        sent = linear(self.departure_gain_dbi(transmit, transmit_facing or Orientation()))
        received = linear(self.arrival_gain_dbi(receive, receive_facing or Orientation()))
        return decibels(np.einsum("t...r,...r,s...r->ts...", sent, linear(self.gain_db), received))

    def band_gain_db(
        self,
        weights: ArrayLike = 1.0,
        bandwidth_hz: float = 1.76e9,
        points: int = 64,
    ) -> Floats:
        """Power gain of all rays with their phases, averaged over a band: shape (...).

        Rays with delays closer than the band's resolution add up or cancel over the whole band, as
        the reflection off a distant floor does.

        Args:
            weights: power gain of the antennas towards each ray, linear; broadcast to (..., rays).
            bandwidth_hz: of the band around the carrier.
            points: frequencies over which the power is averaged.

        """
        band = float(positive("bandwidth_hz", bandwidth_hz))
        offsets = (np.arange(whole("points", points)) + 0.5) / points - 0.5
        amplitude = np.sqrt(linear(self.gain_db) * within("weights", weights, 0.0))
        late = self.delay_s - self.delay_s.min(axis=-1, keepdims=True)
        turned = self.phase[..., np.newaxis] - 2 * np.pi * band * offsets * late[..., np.newaxis]
        total = (amplitude[..., np.newaxis] * np.exp(1j * turned)).sum(axis=-2)
        return decibels(np.square(np.abs(total)).mean(axis=-1))

    def delay_spread_s(self) -> Floats:
        """Root mean square spread of the delays, weighted with power: shape (...)."""
        weight = linear(self.gain_db)
        weight = weight / weight.sum(axis=-1, keepdims=True)
        mean = (weight * self.delay_s).sum(axis=-1, keepdims=True)
        return np.asarray(np.sqrt((weight * np.square(self.delay_s - mean)).sum(axis=-1)))
