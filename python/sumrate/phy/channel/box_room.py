"""A box-shaped room, by the method of images: all rays up to a number of reflections."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.arrays import Complexes
from sumrate.phy.channel.rays import ABSENT_DB, Rays
from sumrate.phy.decibels import decibels
from sumrate.phy.directions import angles_of, points
from sumrate.phy.materials import material
from sumrate.phy.parameters import Booleans, Floats, Integers, ParameterError, positive, whole
from sumrate.phy.propagation import CARRIER_HZ, SPEED_OF_LIGHT, oxygen_loss_db, wavelength

WALLS = ("west", "east", "south", "north", "floor", "ceiling")
"""At x = 0 and x = length, y = 0 and y = width, z = 0 and z = height."""
OFFICE = {
    "west": "plasterboard",
    "east": "plasterboard",
    "south": "plasterboard",
    "north": "plasterboard",
    "floor": "floorboard",
    "ceiling": "ceiling-board",
}
"""An office with dry walls."""
OPENING = "open"
"""Material of a missing wall, which reflects nothing."""


@dataclass(frozen=True)
class BoxRoom:
    """A box from (0, 0, 0) to its size, in metres, with a material on every wall.

    Antennas are polarised vertically. The field is followed through every reflection with Fresnel's
    coefficients across and in the plane of incidence (ITU-R P.2040).

    Raises:
        ParameterError: a size is not positive, or a wall or material is unknown.

    """

    size_m: tuple[float, float, float]
    materials: Mapping[str, str] = field(default_factory=lambda: OFFICE)
    """Material of each wall, by name; `open` for a missing wall."""
    max_order: int = 2
    """Most reflections of a ray."""
    frequency_hz: float = CARRIER_HZ
    thickness_m: float | None = None
    """Thickness of all walls; None: only their front reflects."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        if np.shape(self.size_m) != (3,):
            raise ParameterError("shape of size_m", np.shape(self.size_m), "(3,)")
        positive("size_m", self.size_m)
        whole("max_order", self.max_order, 0, 6)
        if set(self.materials) != set(WALLS):
            raise ParameterError("walls", sorted(self.materials), f"each of {', '.join(WALLS)}")
        for name in self.materials.values():
            if name != OPENING:
                material(name)

    def images(self) -> Integers:
        """Reflections along each axis, signed by the side of the first: shape (rays, 3)."""
        reach = range(-self.max_order, self.max_order + 1)
        found = [n for n in product(reach, repeat=3) if sum(map(abs, n)) <= self.max_order]
        return np.array(sorted(found, key=lambda n: (sum(map(abs, n)), n)), dtype=np.int64)

    def rays(self, transmitter: ArrayLike, receiver: ArrayLike) -> Rays:
        """All rays between two points in the room, the line of sight first.

        Args:
            transmitter: metres, shape (..., 3).
            receiver: metres, shape (..., 3); shapes broadcast.

        Raises:
            ParameterError: a point is outside of the room, or both are the same.

        """
        start, end = np.broadcast_arrays(
            self._inside("transmitter", transmitter), self._inside("receiver", receiver)
        )
        images = self.images()
        parts = [self._image(start, end, image) for image in images]
        gain, length, phase, vertices = (
            np.stack([part[i] for part in parts], axis=start.ndim - 1) for i in range(4)
        )
        departure = angles_of(vertices[..., 1, :] - vertices[..., 0, :])
        last = _last_corner(vertices)
        arrival = angles_of(last - vertices[..., -1, :])
        order = np.broadcast_to(np.abs(images).sum(axis=1), gain.shape)
        return Rays(
            gain, length / SPEED_OF_LIGHT, *departure, *arrival, phase, order.copy(), vertices
        )

    def _inside(self, name: str, values: ArrayLike) -> Floats:
        found = points(name, values)
        outside = ((found <= 0) | (found >= np.array(self.size_m))).any(axis=-1)
        if outside.any():
            size = " x ".join(f"{side:g}" for side in self.size_m)
            given = tuple(found.reshape(-1, 3)[outside.ravel()][0].tolist())
            raise ParameterError(name, given, f"a point inside of the room of {size} m")
        return found

    def _image(self, start: Floats, end: Floats, image: Integers) -> tuple[Floats, ...]:
        """Gain in dB, length, phase and corners of the ray of one image of the receiver."""
        size = np.array(self.size_m)
        target = image * size + np.where(image % 2 == 0, end, size - end)
        way = target - start
        length = np.linalg.norm(way, axis=-1)
        if not (length > 0).all():
            raise ParameterError("distance of receiver from transmitter", 0.0, "more than 0")
        bounces = _crossings(image)
        # Position on the unfolded way at which it crosses each plane, and the order of the planes.
        at = np.empty((*length.shape, len(bounces)))
        for which, (axis, plane) in enumerate(bounces):
            at[..., which] = (plane * size[axis] - start[..., axis]) / way[..., axis]
        sequence = np.argsort(at, axis=-1)
        corners = [start]
        for step in range(len(bounces)):
            share = np.take_along_axis(at, sequence[..., step : step + 1], axis=-1)
            corners.append(_folded(start + share * way, size))
        corners += [end] * (self.max_order + 2 - len(corners))
        field_gain = self._followed(way / length[..., np.newaxis], bounces, sequence)
        spread = wavelength(self.frequency_hz) / (4 * np.pi * length)
        loss = oxygen_loss_db(length, self.frequency_hz)
        gain = np.maximum(decibels(np.square(np.abs(field_gain) * spread)) - loss, ABSENT_DB)
        turned = -2 * np.pi * length / wavelength(self.frequency_hz) + np.angle(field_gain)
        return gain, length, turned, np.stack(corners, axis=-2)

    def _followed(
        self, direction: Floats, bounces: list[tuple[int, int]], sequence: Integers
    ) -> Complexes:
        """Received field per transmitted field, in the receiver's polarisation; shape (...)."""
        heading = direction.copy()
        electric = _vertical(heading).astype(np.complex128)
        for step in range(len(bounces)):
            electric_next = np.empty_like(electric)
            heading_next = np.empty_like(heading)
            for which, (axis, plane) in enumerate(bounces):
                here = sequence[..., step] == which
                if here.any():
                    wall = WALLS[2 * axis + plane % 2]
                    electric_next[here], heading_next[here] = self._reflected(
                        electric[here], heading[here], axis, wall
                    )
            electric, heading = electric_next, heading_next
        return np.asarray((electric * _vertical(heading)).sum(axis=-1))

    def _reflected(
        self,
        electric: Complexes,
        heading: Floats,
        axis: int,
        wall: str,
    ) -> tuple[Complexes, Floats]:
        """Field and direction after a wall; shapes (rays, 3)."""
        onward = heading.copy()
        onward[:, axis] *= -1
        name = self.materials[wall]
        if name == OPENING:
            return np.zeros_like(electric), onward
        normal = np.zeros(3)
        normal[axis] = 1.0
        across = np.cross(heading, normal)
        length = np.linalg.norm(across, axis=-1, keepdims=True)
        # At normal incidence, any direction in the wall serves as perpendicular.
        other = np.roll(normal, 1)
        across = np.where(length > 1e-12, across / np.maximum(length, 1e-12), other)
        te, tm = material(name).reflection(
            np.abs(heading[:, axis]), self.frequency_hz, self.thickness_m
        )
        part_te = te * (electric * across).sum(axis=-1)
        part_tm = tm * (electric * np.cross(across, heading)).sum(axis=-1)
        reflected = part_te[:, np.newaxis] * across + part_tm[:, np.newaxis] * np.cross(
            across, onward
        )
        return reflected, onward


def _crossings(image: Integers) -> list[tuple[int, int]]:
    """Axis and number of every plane that the unfolded way to an image crosses."""
    found = []
    for axis, count in enumerate(image.tolist()):
        planes = range(1, count + 1) if count > 0 else range(0, count, -1)
        found += [(axis, plane) for plane in planes]
    return found


def _folded(unfolded: Floats, size: Floats) -> Floats:
    """Points of the unfolded way, where they are in the room."""
    twice = np.mod(unfolded, 2 * size)
    return np.asarray(np.where(twice > size, 2 * size - twice, twice))


def _vertical(heading: Floats) -> Floats:
    """Direction of the field of a vertical antenna for directions of travel, shape (..., 3)."""
    level = np.hypot(heading[..., 0], heading[..., 1])
    held = np.maximum(level, 1e-12)
    return np.stack(
        [
            -heading[..., 2] * heading[..., 0] / held,
            -heading[..., 2] * heading[..., 1] / held,
            level,
        ],
        axis=-1,
    )


def _last_corner(vertices: Floats) -> Floats:
    """The corner before the receiver of every ray: shape (..., rays, 3)."""
    final = vertices[..., -1:, :]
    differs: Booleans = np.asarray((np.abs(vertices - final) > 1e-12).any(axis=-1))
    last = vertices.shape[-2] - 1 - np.argmax(differs[..., ::-1], axis=-1)
    index = np.broadcast_to(last[..., np.newaxis, np.newaxis], (*last.shape, 1, 3))
    return np.asarray(np.take_along_axis(vertices, index, axis=-2)[..., 0, :])
