"""Modulation and coding schemes: the rate at a signal strength, and the frame error rate.

A rate is chosen by SNR (the limit in additive noise) or by sensitivity (the standard's demand on
receivers). The two differ by several dB, and published work uses both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.parameters import Floats, Integers, ParameterError, finite, one_of, positive

REFERENCE_BYTES = 1458
"""Frame length for which the tables give the SNR of 1 % frame errors."""
REFERENCE_ERRORS = 0.01
NONE = -1
"""Index where no MCS works."""
MODES = ("snr", "sensitivity")


@dataclass(frozen=True)
class Mcs:
    """One modulation and coding scheme."""

    index: int
    rate_mbps: float
    """PHY rate, Mbit/s."""
    sensitivity_dbm: float
    """Signal at which the standard demands reception: IEEE 802.11-2016, clauses 20.4 and 20.6."""
    snr_db: float
    """SNR for 1 % errors of `REFERENCE_BYTES`, in additive white noise."""


@dataclass(frozen=True)
class McsTable:
    """The schemes of a device, by rising rate.

    Raises:
        ParameterError: the table is empty, or rates do not rise.

    """

    schemes: tuple[Mcs, ...]
    waterfall_db: float = 0.5
    """Increase of SNR that divides the frame error rate by ten."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        rates = [scheme.rate_mbps for scheme in self.schemes]
        if not rates or sorted(set(rates)) != rates:
            raise ParameterError("rates of schemes", rates, "at least one, each above the last")
        positive("waterfall_db", self.waterfall_db)

    @property
    def rates_mbps(self) -> Floats:
        """PHY rates, Mbit/s: shape (schemes,)."""
        return np.array([scheme.rate_mbps for scheme in self.schemes])

    @property
    def indices(self) -> Integers:
        """MCS numbers: shape (schemes,)."""
        return np.array([scheme.index for scheme in self.schemes], dtype=np.int64)

    def thresholds(self, mode: str = "snr") -> Floats:
        """Least SNR in dB, or least signal in dBm (`sensitivity`), of each: shape (schemes,)."""
        one_of("mode", mode, MODES)
        if mode == "snr":
            return np.array([scheme.snr_db for scheme in self.schemes])
        return np.array([scheme.sensitivity_dbm for scheme in self.schemes])

    def position(self, index: int) -> int:
        """Place in the table of an MCS number.

        Raises:
            ParameterError: the table has no such MCS.

        """
        for place, scheme in enumerate(self.schemes):
            if scheme.index == index:
                return place
        allowed = ", ".join(str(scheme.index) for scheme in self.schemes)
        raise ParameterError("MCS", index, allowed)

    def best(self, value: ArrayLike, mode: str = "snr", margin_db: float = 0.0) -> Integers:
        """Place in the table of the fastest scheme that works, or `NONE`; shape of the values.

        Args:
            value: SNR in dB, or received power in dBm with `sensitivity`.
            mode: `snr` or `sensitivity`.
            margin_db: subtracted from the value.

        """
        given = finite("value", value)
        works = given[..., np.newaxis] >= self.thresholds(mode) + margin_db
        fastest = works.shape[-1] - 1 - np.argmax(works[..., ::-1], axis=-1)
        return np.where(works.any(axis=-1), fastest, NONE).astype(np.int64)

    def rate_mbps(self, value: ArrayLike, mode: str = "snr", margin_db: float = 0.0) -> Floats:
        """PHY rate in Mbit/s of the fastest scheme that works, or 0; shape and values as `best`."""
        return np.append(self.rates_mbps, 0.0)[self.best(value, mode, margin_db)]

    def frame_error_rate(
        self, place: ArrayLike, snr_db: ArrayLike, frame_bytes: ArrayLike = REFERENCE_BYTES
    ) -> Floats:
        """Share of frames lost; shapes broadcast.

        The error rate of the reference length is 1 % at the table's SNR, ten times less for each
        `waterfall_db` above it, and at most 1; other lengths lose as if their parts of that length
        were lost independently.

        Args:
            place: of the scheme in the table; with `NONE` all frames are lost.
            snr_db: SNR in dB.
            frame_bytes: length of a frame.

        """
        places = np.asarray(place, dtype=np.int64)
        if (places < NONE).any() or (places >= len(self.schemes)).any():
            raise ParameterError("place", places, f"{NONE} to {len(self.schemes) - 1}")
        above = finite("snr_db", snr_db) - self.thresholds()[places]
        lost = np.minimum(1.0, 10.0 ** (np.log10(REFERENCE_ERRORS) - above / self.waterfall_db))
        parts = positive("frame_bytes", frame_bytes) / REFERENCE_BYTES
        whole_frame = -np.expm1(parts * np.log1p(-np.minimum(lost, 1 - 1e-15)))
        return np.asarray(np.where(places == NONE, 1.0, whole_frame))

    def only(self, indices: Sequence[int]) -> "McsTable":
        """The table with only these MCS numbers."""
        return McsTable(
            tuple(self.schemes[self.position(index)] for index in indices), self.waterfall_db
        )


CONTROL = Mcs(0, 27.5, -78.0, -11.2)
"""Scheme of SSW frames and beacons."""

_SINGLE_CARRIER = (
    (1, 385.0, -68.0, -2.0),
    (2, 770.0, -66.0, 0.4),
    (3, 962.5, -65.0, 1.8),
    (4, 1155.0, -64.0, 3.2),
    (5, 1251.25, -62.0, 4.0),
    (6, 1540.0, -63.0, 3.4),
    (7, 1925.0, -62.0, 4.8),
    (8, 2310.0, -61.0, 6.2),
    (9, 2502.5, -59.0, 7.2),
    (10, 3080.0, -55.0, 9.2),
    (11, 3850.0, -54.0, 10.8),
    (12, 4620.0, -53.0, 12.6),
)
SINGLE_CARRIER = McsTable(tuple(Mcs(*row) for row in _SINGLE_CARRIER))
"""IEEE 802.11ad's single-carrier PHY. Sensitivities as the standard gives them; SNRs for 1 % of
1458 bytes in additive white noise, as the error tables of ns-3's 802.11ad module have them. MCS 5
(rate 13/16 of BPSK) needs more than the faster MCS 6 and is never the best choice."""
