"""Several transmitters at once: SINR, capture, neighbouring channels, shared air."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.decibels import decibels, linear
from sumrate.phy.parameters import (
    Booleans,
    Floats,
    Integers,
    finite,
    whole,
    within,
)

DECODE_SNR_DB = 1.0
"""Least SINR of a decoded SSW frame in the thesis; -12.4 in additive noise."""
CAPTURE_MARGIN_DB = 3.0
"""Least power of a decoded frame over all simultaneous frames."""
NOT_DECODED = -1


def sinr_db(signal_dbm: ArrayLike, interference_dbm: ArrayLike, noise_dbm: ArrayLike) -> Floats:
    """Signal over interference and noise in dB; shapes broadcast.

    Args:
        signal_dbm: power of the signal.
        interference_dbm: power of all others together; `FLOOR_DB` for none.
        noise_dbm: power of the noise.

    """
    signal, noise = finite("signal_dbm", signal_dbm), finite("noise_dbm", noise_dbm)
    interference = finite("interference_dbm", interference_dbm)
    return np.asarray(signal - decibels(linear(interference) + linear(noise)))


def captured(
    powers_dbm: ArrayLike,
    noise_dbm: float,
    *,
    decode_snr_db: float = DECODE_SNR_DB,
    margin_db: float = CAPTURE_MARGIN_DB,
    capture: bool = True,
) -> Integers:
    """Index of the decoded one of overlapping frames, or `NOT_DECODED`.

    The strongest frame is decoded if it exceeds the noise by `decode_snr_db` and the sum of the
    others by `margin_db`. Without capture, no other frame may exceed the noise by `decode_snr_db`.

    Args:
        powers_dbm: of the frames, shape (..., frames); `FLOOR_DB` for absent frames.
        noise_dbm: power of the noise.
        decode_snr_db: least SNR.
        margin_db: capture margin.
        capture: the receiver captures.

    Returns:
        Index along the last axis: shape (...).

    """
    powers = np.atleast_1d(finite("powers_dbm", powers_dbm))
    within("margin_db", margin_db, 0.0, 100.0)
    best = powers.argmax(axis=-1)
    strongest = np.take_along_axis(powers, best[..., np.newaxis], axis=-1)[..., 0]
    others = decibels(np.maximum(linear(powers).sum(axis=-1) - linear(strongest), 0.0))
    decodable: Booleans = strongest - noise_dbm >= decode_snr_db
    if capture:
        alone: Booleans = strongest - others >= margin_db
    else:
        alone = np.asarray((powers - noise_dbm >= decode_snr_db).sum(axis=-1) <= 1)
    return np.where(decodable & alone, best, NOT_DECODED).astype(np.int64)


_MASK_GHZ = np.array([0.0, 0.94, 1.2, 2.7, 3.06])
_MASK_DBR = np.array([0.0, 0.0, -17.0, -22.0, -30.0])
_CHANNEL_GHZ = 2.16
_OCCUPIED_GHZ = 1.88


def channel_leakage_db(channels_apart: int) -> float:
    """Share in dB of a transmitter's power that leaks into another channel; 0 for its own.

    The transmitter fills its spectrum mask (IEEE 802.11-2016, 20.3.2), the receiver integrates over
    1.88 GHz.
    """
    apart = whole("channels_apart", channels_apart, 0, 3)
    half = _OCCUPIED_GHZ / 2
    offsets = apart * _CHANNEL_GHZ + np.linspace(-half, half, 2001)
    received = np.mean(linear(np.interp(np.abs(offsets), _MASK_GHZ, _MASK_DBR)))
    return float(decibels(received))


@dataclass(frozen=True)
class SharedAir:
    """Interference from another link.

    The other link sends for a share `activity` of the time. This link defers to a share of its
    bursts and sends during the others. Then a frame is lost if the SINR, which varies from burst
    to burst, is too low for its MCS. The MAC retransmits it up to `retries` times.

    Raises:
        ParameterError: a share, deviation or number is out of range.

    """

    sinr_db: float
    """Mean SINR over the bursts of the other link."""
    deviation_db: float = 3.0
    activity: float = 0.9
    deferred: float = 0.0
    """Share of the other link's bursts during which this link waits."""
    retries: int = 3

    def __post_init__(self) -> None:
        """Checks the parameters."""
        finite("sinr_db", self.sinr_db)
        within("deviation_db", self.deviation_db, 1e-6, 50.0)
        within("activity", self.activity, 0.0, 1.0)
        within("deferred", self.deferred, 0.0, 1.0)
        whole("retries", self.retries, 0, 100)

    def failure(self, needed_sinr_db: ArrayLike) -> Floats:
        """Loss probability of a simultaneous frame, by the SINR in dB that it needs.

        Shape of the values.
        """
        needed = finite("needed_sinr_db", needed_sinr_db)
        below = (needed - self.sinr_db) / self.deviation_db
        return np.asarray(0.5 * (1 + _erf(below / np.sqrt(2.0))))

    def throughput_share(self, needed_sinr_db: ArrayLike) -> Floats:
        """Throughput over that without the other link, by needed SINR in dB; same shape."""
        against = self.activity * (1 - self.deferred)
        waiting = self.activity * self.deferred
        return np.asarray(1 - waiting - against * self.failure(needed_sinr_db))

    def loss_share(self, needed_sinr_db: ArrayLike) -> Floats:
        """Share of the packets lost after all retries, by needed SINR in dB; same shape."""
        sent_against = self.activity * (1 - self.deferred) / (1 - self.activity * self.deferred)
        lost = self.failure(needed_sinr_db) ** (self.retries + 1)
        return np.asarray(sent_against * lost)


def _erf(values: ArrayLike) -> Floats:
    """Error function (Abramowitz and Stegun 7.1.26; to 1.5e-7)."""
    x = np.asarray(values, dtype=np.float64)
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    poly = t * (0.254829592 + t * (-0.284496736 + t * poly))
    return np.asarray(np.sign(x) * (1 - poly * np.exp(-np.square(x))))
