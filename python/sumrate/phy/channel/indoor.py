"""The indoor office of 3GPP TR 38.901: path loss, shadowing, clusters of rays.

Source: TR 38.901 V16.1, sections 7.4 and 7.5 (steps 1 to 9, with tables 7.5-6 and 7.5-3). Left out:
cross-correlation of the large-scale parameters, polarisation, the two strongest clusters' further
delays.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.channel.rays import Rays
from sumrate.phy.decibels import decibels, linear
from sumrate.phy.directions import angles_of, points, wrap
from sumrate.phy.parameters import Booleans, Floats, ParameterError, one_of
from sumrate.phy.propagation import (
    CARRIER_HZ,
    INDOOR_ENVIRONMENTS,
    INDOOR_SHADOWING_LOS_DB,
    INDOOR_SHADOWING_NLOS_DB,
    SPEED_OF_LIGHT,
    indoor_los_probability,
    indoor_loss_db,
    oxygen_loss_db,
)

_OFFSETS = np.array(
    [0.0447, 0.1413, 0.2492, 0.3715, 0.5129, 0.6797, 0.8844, 1.1481, 1.5195, 2.1551]
)
RAY_OFFSETS: Floats = np.stack([_OFFSETS, -_OFFSETS], axis=1).ravel()
"""Angle offsets of the 20 rays of a cluster, for a spread of 1 (table 7.5-3)."""


@dataclass(frozen=True)
class _Spreads:
    """Large-scale parameters of one state (table 7.5-6): mean and deviation of log10 values."""

    clusters: int
    delay: tuple[float, float]
    departure_azimuth: tuple[float, float]
    arrival_azimuth: tuple[float, float]
    departure_zenith: tuple[float, float]
    arrival_zenith: tuple[float, float]
    delay_scaling: float
    cluster_shadowing_db: float
    within_departure: float
    within_arrival: float
    within_zenith: float
    azimuth_scaling: float
    zenith_scaling: float


def _spreads(line_of_sight: bool, frequency_hz: float) -> _Spreads:
    log_f = float(np.log10(1 + frequency_hz / 1e9))
    if line_of_sight:
        return _Spreads(
            clusters=15,
            delay=(-0.01 * log_f - 7.692, 0.18),
            departure_azimuth=(1.60, 0.18),
            arrival_azimuth=(-0.19 * log_f + 1.781, 0.12 * log_f + 0.119),
            departure_zenith=(-1.43 * log_f + 2.228, 0.13 * log_f + 0.30),
            arrival_zenith=(-0.26 * log_f + 1.44, -0.04 * log_f + 0.264),
            delay_scaling=3.6,
            cluster_shadowing_db=6.0,
            within_departure=5.0,
            within_arrival=8.0,
            within_zenith=9.0,
            azimuth_scaling=1.211,
            zenith_scaling=1.1088,
        )
    return _Spreads(
        clusters=19,
        delay=(-0.28 * log_f - 7.173, 0.10 * log_f + 0.055),
        departure_azimuth=(1.62, 0.25),
        arrival_azimuth=(-0.11 * log_f + 1.863, 0.12 * log_f + 0.059),
        departure_zenith=(1.08, 0.36),
        arrival_zenith=(-0.15 * log_f + 1.387, -0.09 * log_f + 0.746),
        delay_scaling=3.0,
        cluster_shadowing_db=3.0,
        within_departure=5.0,
        within_arrival=11.0,
        within_zenith=9.0,
        azimuth_scaling=1.273,
        zenith_scaling=1.184,
    )


_K_FACTOR_DB = (7.0, 4.0)
_MOST_AZIMUTH_DEG = 104.0
_MOST_ZENITH_DEG = 52.0


@dataclass(frozen=True)
class IndoorOffice:
    """Realisations of the office's channel.

    Raises:
        ParameterError: an unknown environment.

    """

    environment: str = "mixed"
    frequency_hz: float = CARRIER_HZ
    line_of_sight: bool | None = None
    """Line of sight of all links; None: drawn with the probability of the distance."""
    shadowing: bool = True

    def __post_init__(self) -> None:
        """Checks the parameters."""
        one_of("environment", self.environment, INDOOR_ENVIRONMENTS)

    def sight(self, distance_m: ArrayLike, generator: np.random.Generator) -> Booleans:
        """Draws which links have a line of sight, by horizontal distance; any shape."""
        chance = indoor_los_probability(distance_m, self.environment)
        if self.line_of_sight is not None:
            return np.full(chance.shape, self.line_of_sight)
        return np.asarray(generator.random(chance.shape) < chance)

    def rays(
        self, transmitter: ArrayLike, receivers: ArrayLike, generator: np.random.Generator
    ) -> list[Rays]:
        """One `Rays` for each receiver; with and without sight they have different numbers of rays.

        Args:
            transmitter: metres, shape (3,).
            receivers: metres, shape (links, 3).
            generator: of all random numbers.

        Raises:
            ParameterError: wrong shapes, or a distance of 0 or beyond 150 m.

        """
        start = points("transmitter", transmitter)
        ends = np.atleast_2d(points("receivers", receivers))
        if start.shape != (3,) or ends.ndim != 2:
            given = (start.shape, ends.shape)
            raise ParameterError("shapes of transmitter and receivers", given, "(3,) and (n, 3)")
        way = ends - start
        distance = np.linalg.norm(way, axis=-1)
        sight = self.sight(np.hypot(way[:, 0], way[:, 1]), generator)
        loss = indoor_loss_db(distance, sight, self.frequency_hz)
        if self.shadowing:
            deviation = np.where(sight, INDOOR_SHADOWING_LOS_DB, INDOOR_SHADOWING_NLOS_DB)
            loss = loss + generator.normal(0.0, deviation)
        loss = loss + oxygen_loss_db(distance, self.frequency_hz)
        return [
            self._link(way[i], float(distance[i]), bool(sight[i]), float(loss[i]), generator)
            for i in range(len(ends))
        ]

    def _link(
        self,
        way: Floats,
        distance: float,
        sight: bool,
        loss_db: float,
        generator: np.random.Generator,
    ) -> Rays:
        spread = _spreads(sight, self.frequency_hz)
        k_db = float(generator.normal(*_K_FACTOR_DB)) if sight else -np.inf
        delay, power = _clusters(spread, sight, k_db, generator)
        # Angles follow from powers that include the line of sight (step 7).
        shown = _with_sight(power, k_db) if sight else power
        departure, arrival = angles_of(way), angles_of(-way)

        def azimuths(centre: float, law: tuple[float, float], inside: float) -> Floats:
            degrees = min(10 ** generator.normal(*law), _MOST_AZIMUTH_DEG)
            return _azimuths(
                shown,
                spread_deg=degrees,
                k_db=k_db,
                centre=centre,
                inside_deg=inside,
                spread=spread,
                generator=generator,
            )

        def elevations(centre: float, law: tuple[float, float]) -> Floats:
            degrees = min(10 ** generator.normal(*law), _MOST_ZENITH_DEG)
            return _elevations(
                shown,
                spread_deg=degrees,
                k_db=k_db,
                centre=centre,
                spread=spread,
                generator=generator,
            )

        angles: tuple[Floats, ...] = (
            azimuths(float(departure[0]), spread.departure_azimuth, spread.within_departure),
            elevations(float(departure[1]), spread.departure_zenith),
            azimuths(float(arrival[0]), spread.arrival_azimuth, spread.within_arrival),
            elevations(float(arrival[1]), spread.arrival_zenith),
        )
        rays = np.repeat(power / 20, 20)
        late = np.repeat(delay, 20) + distance / SPEED_OF_LIGHT
        order = np.ones(rays.size, dtype=np.int64)
        if sight:
            k = linear(k_db)
            rays = np.concatenate([[k / (k + 1)], rays / (k + 1)])
            late = np.concatenate([[distance / SPEED_OF_LIGHT], late])
            order = np.concatenate([[0], order])
            exact = (*departure, *arrival)
            angles = tuple(
                np.concatenate([[float(e)], a]) for e, a in zip(exact, angles, strict=True)
            )
        phase = generator.uniform(-np.pi, np.pi, rays.size)
        from_az, from_el, to_az, to_el = angles
        return Rays(decibels(rays) - loss_db, late, from_az, from_el, to_az, to_el, phase, order)


def _clusters(
    spread: _Spreads, sight: bool, k_db: float, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Delays in seconds and powers, sum 1, of the clusters (steps 5 and 6)."""
    delay_spread = 10 ** generator.normal(*spread.delay)
    scale = spread.delay_scaling
    delays = -scale * delay_spread * np.log(generator.random(spread.clusters))
    delays = np.sort(delays - delays.min())
    shadow = 10 ** (-generator.normal(0.0, spread.cluster_shadowing_db, delays.size) / 10)
    power = np.exp(-delays * (scale - 1) / (scale * delay_spread)) * shadow
    power = power / power.sum()
    if sight:
        held = float(np.clip(k_db, -5.0, 18.0))
        delays = delays / (0.7705 - 0.0433 * held + 0.0002 * held**2 + 0.000017 * held**3)
    return delays, power


def _with_sight(power: Floats, k_db: float) -> Floats:
    k = float(linear(k_db))
    shown = power / (k + 1)
    shown[0] += k / (k + 1)
    return shown


def _azimuths(
    power: Floats,
    *,
    spread_deg: float,
    k_db: float,
    centre: float,
    inside_deg: float,
    spread: _Spreads,
    generator: np.random.Generator,
) -> Floats:
    """Azimuths of all rays in radians, shape (clusters * 20,) (equations 7.5-9 to 7.5-13)."""
    sight, k = np.isfinite(k_db), float(np.clip(k_db, -5.0, 18.0))
    scaling = spread.azimuth_scaling
    if sight:
        scaling *= 1.1035 - 0.028 * k - 0.002 * k**2 + 0.0001 * k**3
    away = 2 * (spread_deg / 1.4) * np.sqrt(-np.log(power / power.max())) / scaling
    away = away * generator.choice([-1.0, 1.0], power.size)
    away = away + generator.normal(0.0, spread_deg / 7, power.size)
    if sight:
        away = away - away[0]
    rays = away[:, np.newaxis] + inside_deg * generator.permuted(
        np.tile(RAY_OFFSETS, (power.size, 1)), axis=1
    )
    return wrap(centre + np.deg2rad(rays.ravel()))


def _elevations(
    power: Floats,
    *,
    spread_deg: float,
    k_db: float,
    centre: float,
    spread: _Spreads,
    generator: np.random.Generator,
) -> Floats:
    """Elevations of all rays in radians, shape (clusters * 20,) (equations 7.5-14 to 7.5-18)."""
    sight, k = np.isfinite(k_db), float(np.clip(k_db, -5.0, 18.0))
    scaling = spread.zenith_scaling
    if sight:
        scaling *= 1.3086 + 0.0339 * k - 0.0077 * k**2 + 0.0002 * k**3
    away = -spread_deg * np.log(power / power.max()) / scaling
    away = away * generator.choice([-1.0, 1.0], power.size)
    away = away + generator.normal(0.0, spread_deg / 7, power.size)
    if sight:
        away = away - away[0]
    rays = away[:, np.newaxis] + spread.within_zenith * generator.permuted(
        np.tile(RAY_OFFSETS, (power.size, 1)), axis=1
    )
    zenith = np.mod(90.0 - np.rad2deg(centre) + rays.ravel(), 360.0)
    zenith = np.where(zenith > 180.0, 360.0 - zenith, zenith)
    return np.asarray(np.deg2rad(90.0 - zenith))
