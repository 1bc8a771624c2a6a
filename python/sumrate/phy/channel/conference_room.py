"""The conference room of IEEE 802.11 TGad, access point and stations: a statistical channel.

Source: Maltsev et al., "Channel Models for 60 GHz WLAN Systems", IEEE 802.11-09/0334: losses,
shares and times of its conference room. The published tables of cluster angles came out of tracing
rays in that room (3 x 4.5 x 3 m) over random places; here the four first-order and eight
second-order clusters of the walls are traced for each realisation instead of being drawn from those
tables.
Polarisation is not modelled.
"""

from dataclasses import dataclass

import numpy as np

from sumrate.phy.channel.rays import ABSENT_DB, Rays
from sumrate.phy.decibels import decibels, linear
from sumrate.phy.directions import angles_of, points, wrap
from sumrate.phy.parameters import Booleans, Floats, Integers, positive, whole, within
from sumrate.phy.propagation import SPEED_OF_LIGHT

SIZE_M = (3.0, 4.5, 3.0)
ACCESS_POINT_M = (1.5, 0.3, 2.9)
"""Near the ceiling, at the middle of a short wall."""
TABLE_M = ((0.5, 2.5), (1.0, 3.5), (1.0, 1.0))
"""Places of stations: least and largest x, y and z."""
WAVELENGTH_M = 5e-3

_IMAGES: Integers = np.array(
    [
        *([0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]),
        *([-2, 0], [2, 0], [0, -2], [0, 2], [-1, -1], [-1, 1], [1, -1], [1, 1]),
    ],
    dtype=np.int64,
)
_REFLECTION_DB = ((0.0, 0.0), (-10.0, 4.0), (-16.0, 5.0))
"""Mean and deviation by order, truncated at `_REFLECTION_MAX_DB`."""
_REFLECTION_MAX_DB = -2.0
_FREE_FIRST_ORDER = 0.874
"""Probability that no person blocks the one first-order cluster within their reach."""
_FREE_SECOND_ORDER = 0.93
_INTRA = (("before", 10.0, 3.7, 0.37), ("after", 14.2, 4.5, 0.31))
"""Rays before and after a cluster's centre: K-factor dB, decay ns, arrival per ns."""
_INTRA_DEVIATION = float(np.deg2rad(5.0))


def human_attenuation_db(shape: int | tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Loss in dB (positive) behind a person: a mixture of two normals, truncated at 0."""
    body = generator.normal(18.2, 8.3, shape)
    more = generator.normal(47.2, 10.0, shape)
    return np.asarray(np.maximum(np.where(generator.random(shape) < 0.83, body, more), 0.0))


@dataclass(frozen=True)
class ConferenceRoom:
    """Realisations of the channel from the access point to stations at random places.

    Raises:
        ParameterError: a probability or a number of rays is out of range.

    """

    los_blocked: float = 0.0
    """Probability that a person stands in the line of sight."""
    rays_per_side: int = 3
    """Number of rays before the centre of each cluster, and of rays after it."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("los_blocked", self.los_blocked, 0.0, 1.0)
        whole("rays_per_side", self.rays_per_side, 0, 100)

    def draw(self, realisations: int, generator: np.random.Generator) -> Rays:
        """Stations at random places on the table: fields of shape (realisations, rays)."""
        whole("realisations", realisations)
        low, high = np.array(TABLE_M).T
        return self.rays(generator.uniform(low, high, (realisations, 3)), generator)

    def rays(self, stations: Floats, generator: np.random.Generator) -> Rays:
        """Stations at the places given, shape (links, 3), in metres from the room's corner."""
        places = np.atleast_2d(points("stations", stations))
        for axis in range(3):
            within(f"stations' coordinate {axis}", places[:, axis], 0.0, SIZE_M[axis])
        size = np.array(SIZE_M[:2])
        ends = places[:, np.newaxis, :2]
        target = np.empty((len(places), len(_IMAGES), 3))
        target[..., :2] = _IMAGES * size + np.where(_IMAGES % 2 == 0, ends, size - ends)
        target[..., 2] = places[:, np.newaxis, 2]
        way = target - np.array(ACCESS_POINT_M)
        length = np.linalg.norm(way, axis=-1)
        positive("distance_m", length)
        departure, arrival = angles_of(way), angles_of(_mirrored(-way))
        order = np.broadcast_to(np.abs(_IMAGES).sum(axis=1), length.shape)
        gain = -20 * np.log10(4 * np.pi * length / WAVELENGTH_M)
        gain = gain + _reflection(order, generator) - self._people(order, generator)
        phase = generator.uniform(-np.pi, np.pi, length.shape)
        centre = Rays(gain, length / SPEED_OF_LIGHT, *departure, *arrival, phase, order.copy())
        return self._spread(centre, generator)

    def _people(self, order: Integers, generator: np.random.Generator) -> Floats:
        """Loss of every cluster behind people, dB: shape (links, clusters)."""
        chance = generator.random(order.shape)
        blocked: Booleans = np.where(order == 0, chance < self.los_blocked, False)
        blocked |= (order == 2) & (chance >= _FREE_SECOND_ORDER)
        exposed = generator.integers(1, 5, len(order))
        row = np.arange(len(order))
        blocked[row, exposed] = chance[row, exposed] >= _FREE_FIRST_ORDER
        return np.where(blocked, human_attenuation_db(order.shape, generator), 0.0)

    def _spread(self, centre: Rays, generator: np.random.Generator) -> Rays:
        """Adds the rays around the centre of every reflected cluster."""
        parts = [centre]
        links, clusters = centre.gain_db.shape
        shape = (links, clusters, self.rays_per_side)
        for side, k_db, decay_ns, per_ns in _INTRA if self.rays_per_side else ():
            offset = np.cumsum(generator.exponential(1.0 / per_ns, shape), axis=-1)
            # K is the power of the centre over that of all rays on this side.
            power = linear(-k_db) * np.exp(-offset / decay_ns) * generator.exponential(1.0, shape)
            power /= np.exp(-offset / decay_ns).sum(axis=-1, keepdims=True)
            delay = centre.delay_s[..., np.newaxis] + offset * (1e-9 if side == "after" else -1e-9)
            # No ray arrives before the line of sight, which has no rays around it.
            exists = (centre.order[..., np.newaxis] > 0) & (delay > centre.delay_s[:, :1, None])
            gain = np.where(exists, centre.gain_db[..., np.newaxis] + decibels(power), ABSENT_DB)
            parts.append(_around(centre, gain, delay, generator))
        return Rays(
            *(
                np.concatenate([getattr(part, name) for part in parts], axis=-1)
                for name in (
                    "gain_db",
                    "delay_s",
                    "departure_azimuth",
                    "departure_elevation",
                    "arrival_azimuth",
                    "arrival_elevation",
                    "phase",
                    "order",
                )
            )
        )


def _around(centre: Rays, gain: Floats, delay: Floats, generator: np.random.Generator) -> Rays:
    """Rays a few degrees from their centres; fields of shape (links, clusters * rays)."""
    shape = gain.shape

    def scattered(angle: Floats) -> Floats:
        return angle[..., np.newaxis] + generator.normal(0.0, _INTRA_DEVIATION, shape)

    def flat(values: Floats) -> Floats:
        return values.reshape(shape[0], -1)

    half = np.pi / 2
    return Rays(
        flat(np.maximum(gain, ABSENT_DB)),
        flat(delay),
        flat(wrap(scattered(centre.departure_azimuth))),
        flat(np.clip(scattered(centre.departure_elevation), -half, half)),
        flat(wrap(scattered(centre.arrival_azimuth))),
        flat(np.clip(scattered(centre.arrival_elevation), -half, half)),
        flat(generator.uniform(-np.pi, np.pi, shape)),
        np.repeat(centre.order, shape[2], axis=1),
    )


def _mirrored(way: Floats) -> Floats:
    """Directions in the room towards images: every odd reflection mirrors an axis."""
    sign = np.ones_like(way)
    sign[..., :2] = np.where(_IMAGES % 2 == 0, 1.0, -1.0)
    return way * sign


def _reflection(order: Integers, generator: np.random.Generator) -> Floats:
    """Gain of the reflections in dB: truncated normals, shape of the orders."""
    gain = np.zeros(order.shape)
    for number in (1, 2):
        mean, deviation = _REFLECTION_DB[number]
        here = order == number
        drawn = generator.normal(mean, deviation, int(here.sum()))
        while (beyond := drawn > _REFLECTION_MAX_DB).any():
            drawn[beyond] = generator.normal(mean, deviation, int(beyond.sum()))
        gain[here] = drawn
    return gain
