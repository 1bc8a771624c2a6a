"""Clients of a scene with their link budgets, from which realisations are drawn."""

from dataclasses import dataclass, replace

import numpy as np

from sumrate.access.errors import AccessError, whole
from sumrate.access.interval import ati_us
from sumrate.access.kernel import World
from sumrate.phy.decibels import linear
from sumrate.phy.parameters import Floats, Integers


@dataclass(frozen=True, eq=False)
class Pool:
    """Link budgets of many clients of a scene."""

    snr_db: Floats
    """SNR at full power of every beam at every AP, (APs, 2, clients, beams), dB.

    The second axis is the clear and the blocked channel. -300 where a client has fewer beams than
    others.
    """
    sweep_dbm: Floats
    """Strongest beacon of the client's own AP, received in quasi-omni mode, (2, clients), dBm."""
    beams: Integers
    """(clients,)."""
    cell: Integers
    """The client's own AP, (clients,)."""
    array_gain_db: Floats
    """Nominal G_T - G_R of the client, (clients,), dB."""
    power_dbm: Floats
    """Largest power of each client, (clients,), dBm."""
    ap_term_db: float
    """G_T + P_T - G_R of the AP, dB."""
    noise_dbm: float
    distance_m: Floats
    """From the client's own AP, (clients,)."""
    turned: Floats
    """Angle by which a client is turned away from its AP, (clients,), radians."""

    @property
    def size(self) -> int:
        """Number of clients, of all cells."""
        return int(self.beams.size)

    @property
    def aps(self) -> int:
        """Number of APs."""
        return int(self.snr_db.shape[0])

    def own_snr_db(self) -> Floats:
        """SNR at each client's own AP, (2, clients, beams), dB."""
        return np.asarray(self.snr_db[self.cell, :, np.arange(self.size)].transpose(1, 0, 2))

    def select(self, chosen: Integers) -> "Pool":
        """The pool of only these clients, indices of shape (n,)."""
        return replace(
            self,
            snr_db=self.snr_db[:, :, chosen],
            sweep_dbm=self.sweep_dbm[:, chosen],
            beams=self.beams[chosen],
            cell=self.cell[chosen],
            array_gain_db=self.array_gain_db[chosen],
            power_dbm=self.power_dbm[chosen],
            distance_m=self.distance_m[chosen],
            turned=self.turned[chosen],
        )

    def draw(self, clients: int, rng: np.random.Generator) -> Integers:
        """Draws `clients` different clients of every cell for a realisation, (APs x clients,).

        Raises:
            AccessError: the pool has fewer.

        """
        whole("clients", clients, 1)
        chosen = []
        for ap in range(self.aps):
            members = np.flatnonzero(self.cell == ap)
            if clients > members.size:
                raise AccessError(
                    f"clients must be at most the pool's {members.size}, not {clients}"
                )
            chosen.append(rng.choice(members, clients, replace=False))
        return np.concatenate(chosen)

    def world(self, chosen: Integers, offset_db: Floats, present: Integers) -> World:
        """The kernel's input for the chosen clients.

        Args:
            chosen: indices of clients.
            offset_db: controlled power over the maximum of all clients, (2, pool), dB.
            present: number of chosen clients in the cell in each interval, (intervals,).

        """
        ati = np.array([ati_us(n) for n in range(chosen.size + 1)])
        return World(
            linear(self.snr_db[:, :, chosen]),
            np.ascontiguousarray(offset_db[:, chosen]),
            self.beams[chosen],
            self.cell[chosen],
            np.asarray(present, dtype=np.int64),
            ati,
        )
