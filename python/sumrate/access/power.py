"""JPOC's client power control, for many clients at once."""

from dataclasses import dataclass

import numpy as np

from sumrate.access.equations import CORRECTED, Margins, target_power_dbm
from sumrate.access.errors import within
from sumrate.access.pool import Pool
from sumrate.phy.parameters import Booleans, Floats


@dataclass(frozen=True)
class PowerControl:
    """Power control of SSW frames in the A-BFT (thesis, Sec. 3.2.1)."""

    target_snr_db: float = 4.0
    """gamma."""
    margins: Margins = CORRECTED
    """Margins subtracted from nominal array gains."""
    quantised: bool = False
    """The AP announces its two numbers in whole dB."""
    step_db: float = 0.0
    """Steps of the client's power setting, rounded up; 0: any power."""
    error_db: float = 0.0
    """Standard deviation of the error of every power setting."""
    ramp_db: float = 0.0
    """Extension: dB that a client adds for each consecutive failure."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        within("target SNR", self.target_snr_db, -20.0, 60.0, "dB")
        within("power step", self.step_db, 0.0, 20.0, "dB")
        within("power error", self.error_db, 0.0, 30.0, "dB")
        within("power ramp", self.ramp_db, 0.0, 30.0, "dB")

    def power_dbm(self, pool: Pool) -> Floats:
        """(3.5) for every client on the clear and on the blocked channel, (2, clients), dBm.

        Never above the client's maximum.
        """
        target = target_power_dbm(self.target_snr_db, pool.noise_dbm)
        term = pool.ap_term_db
        if self.quantised:
            target, term = float(np.round(target)), float(np.round(term))
        client = pool.array_gain_db - self.margins.client_db
        wanted = target - pool.sweep_dbm - client + (term - self.margins.ap_db)
        if self.step_db > 0.0:
            wanted = np.ceil(wanted / self.step_db) * self.step_db
        return np.asarray(np.minimum(wanted, pool.power_dbm), dtype=np.float64)

    def offset_db(self, pool: Pool) -> Floats:
        """Controlled power over the client's maximum, dB, at most 0, (2, clients)."""
        return np.asarray(self.power_dbm(pool) - pool.power_dbm)


def controlled_snr_db(pool: Pool, control: PowerControl | None) -> Floats:
    """SNR of every beam at the client's own AP on the clear channel, (clients, beams), dB."""
    snr: Floats = pool.own_snr_db()[0]
    if control is None:
        return snr
    return np.asarray(snr + control.offset_db(pool)[0][:, np.newaxis])


def good_beams(pool: Pool, control: PowerControl | None, decode_db: float) -> Floats:
    """Number of beams of each client that the AP can decode, (clients,)."""
    counted = controlled_snr_db(pool, control) >= decode_db
    return np.asarray(counted.sum(axis=1), dtype=np.float64)


def starved(pool: Pool, control: PowerControl, decode_db: float) -> Booleans:
    """Clients that the AP decodes at full power but not under power control, (clients,)."""
    best = pool.own_snr_db()[0].max(axis=1)
    controlled = controlled_snr_db(pool, control).max(axis=1)
    return np.asarray((best >= decode_db) & (controlled < decode_db))
