"""Movement and rotation of a device over time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.directions import Orientation, points, wrap
from sumrate.phy.parameters import (
    Floats,
    ParameterError,
    angle,
    finite,
    one_of,
    positive,
    within,
)


@dataclass(frozen=True, eq=False)
class Track:
    """Positions and directions over time.

    Raises:
        ParameterError: shapes differ, or times do not rise.

    """

    times_s: Floats
    """Rising, shape (n,)."""
    positions_m: Floats
    """Shape (n, 3)."""
    yaw: Floats
    """Direction of the boresight, radians, shape (n,)."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        times = finite("times_s", self.times_s)
        if times.ndim != 1 or times.size < 1 or (np.diff(times) <= 0).any():
            raise ParameterError("times_s", "not rising", "rising times, shape (n,)")
        shape = points("positions_m", self.positions_m).shape
        if shape != (times.size, 3) or np.shape(self.yaw) != times.shape:
            given = (times.shape, shape, np.shape(self.yaw))
            raise ParameterError("shapes of times, positions, yaw", given, "(n,), (n, 3), (n,)")

    @property
    def steps_m(self) -> Floats:
        """Distance from each time to the next: shape (n - 1,)."""
        return np.asarray(np.linalg.norm(np.diff(self.positions_m, axis=0), axis=1))

    def orientation(self, index: int) -> Orientation:
        """Orientation of the device at one of the times."""
        return Orientation(float(wrap(self.yaw[index])))


LONGEST_S = 86_400.0
"""A day; a longer time is probably in the wrong unit."""


def times(seconds: float, step_s: float = 0.01) -> Floats:
    """Times from 0 in equal steps, shape (n,); the last is one step before the end.

    Raises:
        ParameterError: no step, or more than a day.

    """
    step = float(positive("step_s", step_s))
    within("seconds", positive("seconds", seconds), 0.0, LONGEST_S)
    count = round(float(seconds) / step)
    if count < 1:
        raise ParameterError("seconds", seconds, f"at least one step of {step} s")
    return np.asarray(np.arange(count) * step)


def stationary(times_s: ArrayLike, position_m: ArrayLike, yaw: float = 0.0) -> Track:
    """A device that does not move, metres (3,) and radians, at times in seconds, shape (n,)."""
    return rotating(times_s, position_m, yaw, 0.0)


def rotating(times_s: ArrayLike, position_m: ArrayLike, yaw: float, rate_rad_per_s: float) -> Track:
    """A device that turns on the spot, as on a robot (37 degrees a second in the thesis).

    At a place in metres, shape (3,); times in seconds, shape (n,).
    """
    instants = finite("times_s", times_s)
    place = points("position_m", position_m)
    turned = float(angle("yaw", yaw)) + float(finite("rate_rad_per_s", rate_rad_per_s)) * instants
    return Track(instants, np.tile(place, (instants.size, 1)), turned)


@dataclass(frozen=True)
class Rectangle:
    """Laps of a rectangle with quarter turns on the spot; the device faces its direction.

    The first side leads along `heading`; each turn is to the left or to the right.

    Raises:
        ParameterError: a length or time is not positive, or the turning is unknown.

    """

    corner_m: tuple[float, float, float]
    length_m: float
    width_m: float
    lap_s: float
    turn_s: float = 0.5
    """Time of each quarter turn, part of the lap's time."""
    heading: float = 0.0
    turning: str = "left"

    def __post_init__(self) -> None:
        """Checks the parameters."""
        positive("length_m", self.length_m)
        positive("width_m", self.width_m)
        positive("lap_s", self.lap_s)
        within("turn_s", self.turn_s, 0.0, self.lap_s / 4 * 0.999)
        angle("heading", self.heading)
        one_of("turning", self.turning, ("left", "right"))

    def track(self, times_s: ArrayLike, start_s: float = 0.0) -> Track:
        """Position and direction at times in seconds, shape (n,), `start_s` into the first lap."""
        instants = finite("times_s", times_s)
        sides = np.array([self.length_m, self.width_m] * 2)
        driving = (self.lap_s - 4 * self.turn_s) * sides / sides.sum()
        ends = np.cumsum(np.column_stack([driving, np.full(4, self.turn_s)]).ravel())
        within_lap = np.mod(instants + start_s, self.lap_s)
        phase = np.minimum(np.searchsorted(ends, within_lap, side="right"), 7)
        begun = np.concatenate([[0.0], ends])[phase]
        lasts = np.maximum(np.concatenate([[ends[0]], np.diff(ends)])[phase], 1e-12)
        share = np.clip((within_lap - begun) / lasts, 0.0, 1.0)
        side, turns = phase // 2, phase % 2 == 1
        sign = 1.0 if self.turning == "left" else -1.0
        yaw = self.heading + sign * np.pi / 2 * (side + np.where(turns, share, 0.0))
        corners = self._corners(sign)
        going = np.where(turns, 1.0, share)[:, np.newaxis]
        places = corners[side] + going * (corners[side + 1] - corners[side])
        return Track(instants, places, yaw)

    def _corners(self, sign: float) -> Floats:
        headings = self.heading + sign * np.pi / 2 * np.arange(4)
        sides = np.array([self.length_m, self.width_m] * 2)[:, np.newaxis]
        ways = sides * np.column_stack([np.cos(headings), np.sin(headings), np.zeros(4)])
        start = np.array([self.corner_m])
        return np.concatenate([start, start + np.cumsum(ways, axis=0)])


def random_waypoint(
    times_s: ArrayLike,
    area_m: tuple[tuple[float, float], tuple[float, float]],
    height_m: float,
    generator: np.random.Generator,
    *,
    speed_m_per_s: tuple[float, float] = (0.5, 1.5),
    pause_s: tuple[float, float] = (0.0, 5.0),
) -> Track:
    """A walk between random places of a rectangle, with pauses.

    Args:
        times_s: seconds, rising, shape (n,).
        area_m: least and largest x, least and largest y.
        height_m: of the device.
        generator: of places, speeds and pauses.
        speed_m_per_s: least and largest speed, drawn for each way.
        pause_s: least and largest pause, drawn at each place.

    Raises:
        ParameterError: the area has no extent, or a speed is not positive.

    """
    instants = finite("times_s", times_s)
    low, high = np.array(area_m, dtype=np.float64).T
    if (high <= low).any():
        raise ParameterError("area_m", area_m, "least and largest x, then y, each with extent")
    positive("speed_m_per_s", speed_m_per_s)
    within("pause_s", pause_s, 0.0)
    knots, places, headings = [0.0], [generator.uniform(low, high)], [0.0]
    while knots[-1] <= instants[-1]:
        goal = generator.uniform(low, high)
        way = goal - places[-1]
        heading = float(np.arctan2(way[1], way[0]))
        arrival = knots[-1] + float(np.linalg.norm(way)) / generator.uniform(*speed_m_per_s)
        knots += [arrival, arrival + generator.uniform(*pause_s) + 1e-9]
        places += [goal, goal]
        headings += [heading, heading]
    where = np.array(places)
    position = np.column_stack(
        [np.interp(instants, knots, where[:, axis]) for axis in (0, 1)]
        + [np.full(instants.size, float(finite("height_m", height_m)))]
    )
    ahead = np.clip(np.searchsorted(knots, instants, side="right"), 1, len(knots) - 1)
    return Track(instants, position, np.array(headings)[ahead])
