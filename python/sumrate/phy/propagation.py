"""Path loss, oxygen absorption, shadowing and noise at 60 GHz."""

from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumrate.phy.parameters import Booleans, Floats, ParameterError, positive, within

Course = TypeVar("Course", NDArray[np.float64], NDArray[np.complex128])
"""Real or complex values over steps."""
SPEED_OF_LIGHT = 299_792_458.0
"""m/s."""
CARRIER_HZ = 60e9
"""Default carrier."""
BANDWIDTH_HZ = 2e9
"""Default noise bandwidth; channels are 2.16 GHz apart."""
NOISE_FIGURE_DB = 7.0
THERMAL_DBM_PER_HZ = float(10 * np.log10(1.380649e-23 * 290.0 * 1e3))
"""Noise density at 290 K: -173.98 dBm/Hz."""


def wavelength(frequency_hz: float = CARRIER_HZ) -> float:
    """Wavelength in metres."""
    return SPEED_OF_LIGHT / float(within("frequency_hz", frequency_hz, 1e9, 3e12))


def free_space_loss_db(distance_m: ArrayLike, frequency_hz: float = CARRIER_HZ) -> Floats:
    """Friis: 20 log10(4 pi d / wavelength), in dB, shape of the distances.

    Raises:
        ParameterError: a distance is not positive.

    """
    distance = positive("distance_m", distance_m)
    return np.asarray(20 * np.log10(4 * np.pi * distance / wavelength(frequency_hz)))


def log_distance_loss_db(
    distance_m: ArrayLike, exponent: float, frequency_hz: float = CARRIER_HZ
) -> Floats:
    """Close-in model: free space up to 1 m, then 10 n log10(d), in dB, shape of the distances.

    Raises:
        ParameterError: a distance is not positive, or the exponent is not from 0.5 to 8.

    """
    distance = positive("distance_m", distance_m)
    n = within("exponent", exponent, 0.5, 8.0)
    return np.asarray(free_space_loss_db(1.0, frequency_hz) + 10 * n * np.log10(distance))


_OXYGEN_GHZ = np.arange(52.0, 69.0)
_OXYGEN_DB_PER_KM = np.array(
    [0, 1, 2.2, 4, 6.6, 9.7, 12.6, 14.6, 15, 14.6, 14.3, 10.5, 6.8, 3.9, 1.9, 1, 0]
)


def oxygen_loss_db(distance_m: ArrayLike, frequency_hz: float = CARRIER_HZ) -> Floats:
    """Absorption by oxygen in dB (3GPP TR 38.901 table 7.6.1-1), shape of the distances.

    Raises:
        ParameterError: a distance is negative.

    """
    distance = within("distance_m", distance_m, 0.0)
    ghz = float(within("frequency_hz", frequency_hz, 1e9, 3e12)) / 1e9
    return np.asarray(distance / 1e3 * np.interp(ghz, _OXYGEN_GHZ, _OXYGEN_DB_PER_KM))


def autoregressive(fresh: Course, kept: ArrayLike) -> Course:
    """A first-order autoregressive course: value = kept x value before + fresh, shape (n,).

    Args:
        fresh: innovations, shape (n,), the first of which is the first value.
        kept: share of each value in the next one, a number or shape (n - 1,).

    """
    values = fresh.tolist()
    for step, share in enumerate(np.broadcast_to(kept, (len(values) - 1,)).tolist()):
        values[step + 1] += share * values[step]
    return cast(Course, np.asarray(values))


@dataclass(frozen=True)
class LogNormalShadowing:
    """Shadowing in dB: normal, with an exponential correlation over distance.

    Raises:
        ParameterError: the deviation is negative, or the correlation distance not positive.

    """

    deviation_db: float
    correlation_m: float = 6.0

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("deviation_db", self.deviation_db, 0.0, 40.0)
        positive("correlation_m", self.correlation_m)

    def draw(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> Floats:
        """Independent values in dB, of the shape given."""
        return generator.normal(0.0, self.deviation_db, shape)

    def along(self, steps_m: ArrayLike, generator: np.random.Generator) -> Floats:
        """Values in dB along a way: shape (n + 1,) for n steps of the lengths given, shape (n,)."""
        steps = within("steps_m", steps_m, 0.0)
        if steps.ndim != 1:
            raise ParameterError("shape of steps_m", steps.shape, "(n,)")
        kept = np.exp(-steps / self.correlation_m)
        fresh = generator.normal(0.0, self.deviation_db, steps.size + 1)
        fresh[1:] *= np.sqrt(1 - np.square(kept))
        return autoregressive(fresh, kept)


def noise_dbm(
    bandwidth_hz: float = BANDWIDTH_HZ, noise_figure_db: float = NOISE_FIGURE_DB
) -> float:
    """Noise power in dBm: k 290 K B and the receiver's noise figure; -74.0 with the defaults.

    Raises:
        ParameterError: the bandwidth is not positive (hertz, not GHz), or the figure is negative.

    """
    bandwidth = within("bandwidth_hz", bandwidth_hz, 1e3, 1e12)
    figure = within("noise_figure_db", noise_figure_db, 0.0, 50.0)
    return float(THERMAL_DBM_PER_HZ + 10 * np.log10(bandwidth) + figure)


INDOOR_ENVIRONMENTS = ("mixed", "open")
"""Offices of 3GPP TR 38.901 section 7.2."""


def indoor_los_probability(distance_m: ArrayLike, environment: str = "mixed") -> Floats:
    """Probability of a line of sight over the horizontal distance (TR 38.901 table 7.4.2-1).

    Args:
        distance_m: horizontal distance, any shape.
        environment: `mixed` or `open` office.

    """
    d = within("distance_m", distance_m, 0.0)
    if environment == "mixed":
        near, far = (1.2, 4.7, 1.0), (6.5, 32.6, 0.32)
    elif environment == "open":
        near, far = (5.0, 70.8, 1.0), (49.0, 211.7, 0.54)
    else:
        raise ParameterError("environment", repr(environment), ", ".join(INDOOR_ENVIRONMENTS))
    middle = near[2] * np.exp(-(d - near[0]) / near[1])
    beyond = far[2] * np.exp(-(d - far[0]) / far[1])
    return np.asarray(np.where(d <= near[0], 1.0, np.where(d < far[0], middle, beyond)))


INDOOR_SHADOWING_LOS_DB = 3.0
INDOOR_SHADOWING_NLOS_DB = 8.03


def indoor_loss_db(
    distance_m: ArrayLike, line_of_sight: ArrayLike, frequency_hz: float = CARRIER_HZ
) -> Floats:
    """Path loss of an indoor office (TR 38.901 table 7.4.1-1, InH), in dB, without shadowing.

    LoS: 32.4 + 17.3 log10(d) + 20 log10(f); nLoS: max(that, 17.3 + 38.3 log10(d) + 24.9 log10(f)),
    with d in metres (three-dimensional) and f in GHz. The model is given from 1 to 150 m; below a
    metre the loss falls as in free space.

    Raises:
        ParameterError: a distance is not positive or beyond 150 m.

    """
    distance = within("distance_m", distance_m, 0.0, 150.0, open_low=True)
    sight: Booleans = np.asarray(line_of_sight, dtype=np.bool_)
    ghz = float(within("frequency_hz", frequency_hz, 0.5e9, 100e9)) / 1e9
    held = np.maximum(distance, 1.0)
    closer = 20 * np.log10(np.minimum(distance, 1.0))
    los = 32.4 + 17.3 * np.log10(held) + 20 * np.log10(ghz)
    nlos = 17.3 + 38.3 * np.log10(held) + 24.9 * np.log10(ghz)
    return np.asarray(np.where(sight, los, np.maximum(los, nlos)) + closer)
