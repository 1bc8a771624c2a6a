"""The radios of published measurements: rates, powers, arrays, limits.

Values that a paper lacks were fitted to its measurements; docs/channel.md lists them.
"""

from dataclasses import dataclass, replace

import numpy as np

from sumrate.phy.airtime import Sender
from sumrate.phy.arrays import PatchElement, PlanarArray
from sumrate.phy.codebook import Pattern, codebook_36, codebook_64, quasi_omni, sector_grid
from sumrate.phy.mcs import SINGLE_CARRIER, McsTable
from sumrate.phy.parameters import one_of
from sumrate.phy.propagation import NOISE_FIGURE_DB, noise_dbm


@dataclass(frozen=True, eq=False)
class Radio:
    """A model of 60 GHz device."""

    name: str
    table: McsTable
    sender: Sender
    beams: Pattern
    listening: Pattern
    """Receive beam in sweeps."""
    power_dbm: float = 20.0
    noise_figure_db: float = NOISE_FIGURE_DB
    implementation_loss_db: float = 0.0
    """SNR that the device needs beyond the table's."""

    @property
    def noise_dbm(self) -> float:
        """Noise power with noise figure and implementation loss, dBm."""
        return noise_dbm(noise_figure_db=self.noise_figure_db) + self.implementation_loss_db


def _panasonic() -> Radio:
    """Module of the 802.11ad and 802.11n study: MCS 1 to 9, a beam of 50 degrees, MTU 7912."""
    wide = PlanarArray(2, 2, element=PatchElement())
    return Radio(
        "panasonic",
        SINGLE_CARRIER.only(range(1, 10)),
        Sender(mtu_bytes=7912, aggregate_bytes=32_768, host_packets_per_s=85_000),
        sector_grid(wide, 3, 1),
        quasi_omni(wide),
        power_dbm=4.0,
        noise_figure_db=5.75,
    )


def _qca9500_array() -> PlanarArray:
    return PlanarArray(8, 4, element=PatchElement(front_to_back_db=20.0))


def _qca9500() -> Radio:
    """Router and laptop of the dual-band poster and of the thesis: 32 elements, MCS 1 to 8."""
    array = _qca9500_array()
    return Radio(
        "qca9500",
        SINGLE_CARRIER.only([1, 2, 3, 4, 6, 7, 8]),
        Sender(mtu_bytes=1500, aggregate_bytes=65_535),
        codebook_36(array),
        quasi_omni(array),
        power_dbm=0.0,
        noise_figure_db=10.0,
        implementation_loss_db=12.4,
    )


def _qca9500_long() -> Radio:
    """`_qca9500` with the standard's longest aggregates: up to 2 Gbit/s of TCP at MCS 8."""
    made = _qca9500()
    sender = Sender(mtu_bytes=1500, aggregate_bytes=262_143)
    return replace(made, name="qca9500-long", sender=sender, implementation_loss_db=7.3)


def _rog() -> Radio:
    """Phone with 64 beams."""
    return replace(_qca9500(), name="rog", beams=codebook_64(_qca9500_array()))


def _wil6210() -> Radio:
    """Laptop and dock of the indoor WLAN study: eight rates to MCS 11, Gigabit Ethernet behind."""
    array = PlanarArray(8, 2)
    return Radio(
        "wil6210",
        SINGLE_CARRIER.only([1, 2, 4, 6, 7, 8, 10, 11]),
        Sender(mtu_bytes=1500, aggregate_bytes=32_768, wire_mbps=1000.0),
        sector_grid(array, 9, 2),
        quasi_omni(array),
        power_dbm=4.0,
        implementation_loss_db=8.0,
    )


_MAKERS = {
    "panasonic": _panasonic,
    "qca9500": _qca9500,
    "qca9500-long": _qca9500_long,
    "rog": _rog,
    "wil6210": _wil6210,
}
RADIOS = tuple(_MAKERS)
"""Names of the radios."""


def radio(name: str) -> Radio:
    """The radio of a name.

    Raises:
        ParameterError: the radio is unknown.

    """
    return _MAKERS[one_of("radio", name, RADIOS)]()


def beam_width(pattern: Pattern, beam: int, steps: int = 7201) -> float:
    """Half-power width in azimuth of a beam around its peak on the horizon, radians."""
    azimuth = np.linspace(-np.pi, np.pi, steps)
    gain = pattern.gain_dbi(azimuth, 0.0)[beam]
    peak = int(gain.argmax())
    below = gain < gain[peak] - 3.0
    right = int(np.argmax(below[peak:])) if below[peak:].any() else steps - 1 - peak
    left = int(np.argmax(below[peak::-1])) if below[peak::-1].any() else peak
    return float((left + right) * 2 * np.pi / (steps - 1))
