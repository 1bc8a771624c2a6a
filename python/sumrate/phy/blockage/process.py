"""Blockage by passing people, as a random process in time."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.parameters import Floats, ParameterError, finite, one_of, positive, within

DURATIONS = ("exponential", "lognormal", "fixed")


def arrival_rate_per_s(
    density_per_m2: float,
    speed_m_per_s: float,
    distance_m: ArrayLike,
    *,
    blocker_height_m: float = 1.7,
    receiver_height_m: float = 1.0,
    transmitter_height_m: float = 2.5,
) -> Floats:
    """Rate at which walking people enter the line of sight.

    (2/pi) density x speed x (hB - hR)/(hT - hR) x distance (Jain et al., "The Impact of Mobile
    Blockers on Millimeter Wave Cellular Systems", equation 4). The height factor is 1 if the
    transmitter is below people's heads.

    Raises:
        ParameterError: a negative density, speed or distance.

    """
    distance = within("distance_m", distance_m, 0.0)
    density = within("density_per_m2", density_per_m2, 0.0)
    speed = within("speed_m_per_s", speed_m_per_s, 0.0)
    hidden = blocker_height_m - receiver_height_m
    above = transmitter_height_m - receiver_height_m
    share = 0.0 if hidden <= 0 else min(1.0, hidden / above) if above > 0 else 1.0
    return np.asarray(2 / np.pi * density * speed * share * distance)


class Events(NamedTuple):
    """Blockages in the order of their starts; fields of shape (events,)."""

    start_s: Floats
    duration_s: Floats
    depth_db: Floats

    def loss_db(self, times_s: ArrayLike, edge_s: float = 0.0) -> Floats:
        """Loss at times, any shape, of the deepest blockage of each moment; edges linear in dB.

        Args:
            times_s: seconds.
            edge_s: time of the fall before an event, and of the rise after it.

        """
        times = finite("times_s", times_s)
        edge = max(float(within("edge_s", edge_s, 0.0)), 1e-9)
        loss = np.zeros(times.shape)
        for start, duration, depth in zip(*self, strict=True):
            inside = np.minimum(times - start, start + duration - times)
            share = np.clip(inside / edge + 1.0, 0.0, 1.0)
            loss = np.maximum(loss, depth * share)
        return loss


@dataclass(frozen=True)
class BlockageProcess:
    """Independent arrivals, each with a duration and a depth.

    Raises:
        ParameterError: a rate, depth or deviation is negative, or a duration not positive.

    """

    rate_per_s: float
    duration_s: float = 0.5
    """Mean; 1/mu with mu = 2 per second is half a second."""
    depth_db: float = 14.0
    """Mean; measured fades at 73 GHz were 12 to 16 dB deep and 0.26 to 0.30 s long."""
    depth_deviation_db: float = 2.0
    law: str = "exponential"
    """Distribution of the durations: `exponential`, `lognormal` or `fixed`."""
    lognormal_sigma: float = 0.5
    edge_s: float = 0.05

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("rate_per_s", self.rate_per_s, 0.0)
        positive("duration_s", self.duration_s)
        within("depth_db", self.depth_db, 0.0, 200.0)
        within("depth_deviation_db", self.depth_deviation_db, 0.0, 50.0)
        within("lognormal_sigma", self.lognormal_sigma, 0.0, 5.0)
        within("edge_s", self.edge_s, 0.0)
        one_of("law", self.law, DURATIONS)

    @property
    def blocked_share(self) -> float:
        """Share of blocked time: 1 - exp(-rate x mean duration)."""
        return float(-np.expm1(-self.rate_per_s * self.duration_s))

    def events(self, seconds: float, generator: np.random.Generator) -> Events:
        """Events from 0 to `seconds`, with events that began earlier and still last."""
        positive("seconds", seconds)
        # Events that reach into the span began at most this long before it.
        before = 20.0 * self.duration_s
        count = int(generator.poisson(self.rate_per_s * (seconds + before)))
        start = np.sort(generator.uniform(-before, seconds, count))
        duration = self._durations(count, generator)
        depth = np.maximum(generator.normal(self.depth_db, self.depth_deviation_db, count), 0.0)
        seen = start + duration + self.edge_s > 0
        return Events(start[seen], duration[seen], depth[seen])

    def _durations(self, count: int, generator: np.random.Generator) -> Floats:
        if self.law == "exponential":
            return generator.exponential(self.duration_s, count)
        if self.law == "lognormal":
            sigma = self.lognormal_sigma
            return generator.lognormal(np.log(self.duration_s) - sigma**2 / 2, sigma, count)
        return np.full(count, self.duration_s)

    def loss_db(self, times_s: ArrayLike, generator: np.random.Generator) -> Floats:
        """Loss in dB at rising times, shape (n,), of one course of the process."""
        times = finite("times_s", times_s)
        if times.ndim != 1 or times.size < 1 or (np.diff(times) < 0).any() or times[0] < 0:
            raise ParameterError("times_s", "not rising from 0", "rising times, shape (n,)")
        return self.events(float(times[-1]) + 1e-9, generator).loss_db(times, self.edge_s)
