"""Blockage model B of 3GPP TR 38.901 (section 7.6.4.2): people as screens with four edges."""

from dataclasses import dataclass

import numpy as np

from sumrate.phy.channel.rays import Rays
from sumrate.phy.parameters import Floats, ParameterError, finite, positive
from sumrate.phy.propagation import CARRIER_HZ, wavelength


@dataclass(frozen=True)
class Person:
    """A person who stands on the floor: 0.3 m wide and 1.7 m high (table 7.6.4.2-5).

    Raises:
        ParameterError: a size is not positive.

    """

    x_m: float
    y_m: float
    width_m: float = 0.3
    height_m: float = 1.7

    def __post_init__(self) -> None:
        """Checks the parameters."""
        finite("x_m", self.x_m)
        finite("y_m", self.y_m)
        positive("width_m", self.width_m)
        positive("height_m", self.height_m)


def edge_loss_db(below: Floats, above: Floats, left: Floats, right: Floats) -> Floats:
    """Loss of a screen in dB of the terms F of its edges (equations 7.6-25 to 7.6-27)."""
    kept = np.clip(1.0 - (below + above) * (left + right), 1e-6, None)
    return np.asarray(np.maximum(-20 * np.log10(kept), 0.0))


def _edge(offset: Floats, before: Floats, after: Floats, frequency_hz: float) -> Floats:
    """F of an edge at an offset beyond the ray; negative offset: the ray passes outside."""
    detour = np.hypot(before, offset) + np.hypot(after, offset) - before - after
    shadow = np.sqrt(np.pi / wavelength(frequency_hz) * np.maximum(detour, 0.0))
    return np.asarray(np.sign(offset) * np.arctan(np.pi / 2 * shadow) / np.pi)


def segment_loss_db(
    start: Floats, end: Floats, person: Person, frequency_hz: float = CARRIER_HZ
) -> Floats:
    """Loss in dB of straight ways behind a person, a screen that faces the way.

    Args:
        start: metres, shape (..., 3).
        end: metres, shape (..., 3).
        person: the screen.
        frequency_hz: carrier.

    Returns:
        Shape (...); 0 unless the person is between the ends.

    """
    way = end - start
    level = np.hypot(way[..., 0], way[..., 1])
    held = np.maximum(level, 1e-9)
    ahead = way[..., :2] / held[..., np.newaxis]
    to_person = np.array([person.x_m, person.y_m]) - start[..., :2]
    along = (to_person * ahead).sum(axis=-1)
    aside = ahead[..., 0] * to_person[..., 1] - ahead[..., 1] * to_person[..., 0]
    share = np.clip(along / held, 1e-9, 1 - 1e-9)
    length = np.linalg.norm(way, axis=-1)
    before, after = share * length, (1 - share) * length
    height = start[..., 2] + share * way[..., 2]

    def edge(offset: Floats) -> Floats:
        return _edge(offset, before, after, frequency_hz)

    half = person.width_m / 2
    loss = edge_loss_db(
        edge(height), edge(person.height_m - height), edge(half - aside), edge(half + aside)
    )
    between = (along > 0) & (along < level) & (level > 1e-9)
    return np.where(between, loss, 0.0)


def rays_loss_db(
    rays: Rays, people: tuple[Person, ...], frequency_hz: float = CARRIER_HZ
) -> Floats:
    """Loss in dB of every ray behind people, summed over its segments and all people.

    Shape of the rays' gains.

    Raises:
        ParameterError: the channel model has no geometry.

    """
    if rays.vertices is None:
        raise ParameterError("rays", "without vertices", "rays of free space or of a box room")
    start, end = rays.vertices[..., :-1, :], rays.vertices[..., 1:, :]
    total = np.zeros(rays.gain_db.shape)
    for person in people:
        total += segment_loss_db(start, end, person, frequency_hz).sum(axis=-1)
    return total
