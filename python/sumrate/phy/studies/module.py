"""The 802.11ad module study: MCS, MTU, signal strength and interference.

Source: the measurements of an 802.11ad link in an evolving Wi-Fi network (figures 1 to 8): iperf3
flows of 10 s, ten runs for each point, MCS 1 to 9 fixed, strong (-43 to -41 dBm) and weak (-69 to
-65 dBm) signals, MTU 1500 and 7912, a second link on the same or the next channel.
"""

from dataclasses import dataclass, replace

import numpy as np

from sumrate.phy.airtime import Sender, tcp_limit_mbps
from sumrate.phy.hardware import Radio, radio
from sumrate.phy.interference import SharedAir
from sumrate.phy.mcs import CONTROL
from sumrate.phy.parameters import Floats, one_of, whole

STRONG_DBM = (-43.0, -41.0)
WEAK_DBM = (-69.0, -65.0)
SIGNALS = {"strong": STRONG_DBM, "weak": WEAK_DBM}
MTUS = (1500, 7912)
RUNS = 10
STEPS = 100
"""Number of steps of 0.1 s in a run."""
FADING_DB = 0.7
RTT_S = 0.001
"""Round trip between the two machines without a queue."""

ADJACENT = SharedAir(9.6, deviation_db=7.4, activity=0.9, deferred=0.05, retries=4)
SAME = SharedAir(6.5, deviation_db=4.8, activity=0.9, deferred=0.20, retries=4)
"""The second link on the next and on the same channel.

Its SINR was not measured. Means, deviations and deferred shares were fitted to the throughput at
MCS 2, 6 and 9 and to the losses.
"""
LATE_DEFERRED = {"aci": 0.29, "cci": 0.62}
"""Share of the first link's bursts during which the later link waits; fitted."""
AIRS = {"aci": ADJACENT, "cci": SAME}


@dataclass(frozen=True, eq=False)
class Sweep:
    """Goodput in Mbit/s by MCS, signal and transport at one MTU: each (MCS, runs)."""

    mtu_bytes: int
    signal: str
    transport: str
    mcs: tuple[int, ...]
    goodput_mbps: Floats

    @property
    def mean(self) -> Floats:
        """Mean of the runs: (MCS,)."""
        return np.asarray(self.goodput_mbps.mean(axis=1))

    @property
    def spread(self) -> Floats:
        """Largest minus least run: (MCS,)."""
        return np.asarray(np.ptp(self.goodput_mbps, axis=1))


def sender(mtu_bytes: int, made: Radio | None = None) -> Sender:
    """The module's sender at an MTU."""
    return replace((made or radio("panasonic")).sender, mtu_bytes=mtu_bytes)


def sweep(
    mtu_bytes: int, signal: str, transport: str, *, seed: int, runs: int = RUNS, mode: str = "snr"
) -> Sweep:
    """Runs every MCS at a signal strength.

    Args:
        mtu_bytes: 1500 or 7912.
        signal: `strong` or `weak`.
        transport: `udp` or `tcp`.
        seed: of signal and fading.
        runs: for each MCS.
        mode: `snr` takes errors from the table; `sensitivity` shifts every scheme by the
            difference to the standard's sensitivity.

    """
    made = radio("panasonic")
    low, high = SIGNALS[one_of("signal", signal, SIGNALS)]
    generator = np.random.default_rng([seed, mtu_bytes, len(signal), len(transport)])
    shape = (len(made.table.schemes), whole("runs", runs), STEPS)
    strength = generator.uniform(low, high, shape[:2])[..., np.newaxis]
    strength = strength + generator.normal(0.0, FADING_DB, shape)
    snr = strength - made.noise_dbm
    if mode == "sensitivity":
        demanded = made.table.thresholds("sensitivity") - made.noise_dbm
        snr = snr - (demanded - made.table.thresholds())[:, np.newaxis, np.newaxis]
    places = np.arange(shape[0])[:, np.newaxis, np.newaxis]
    errors = made.table.frame_error_rate(places, snr, mtu_bytes)
    device = sender(mtu_bytes, made)
    rates = made.table.rates_mbps[:, np.newaxis, np.newaxis]
    goodput = device.goodput_mbps(rates, transport, errors).mean(axis=-1)
    if transport == "tcp":
        lost = device.residual_loss(errors).mean(axis=-1)
        goodput = np.minimum(goodput, tcp_limit_mbps(lost, RTT_S, device.payload_bytes("tcp")))
    return Sweep(mtu_bytes, signal, transport, tuple(made.table.indices.tolist()), goodput)


@dataclass(frozen=True, eq=False)
class Interfered:
    """A link with a second link on the next channel (`aci`) or the same one (`cci`), by MCS."""

    kind: str
    mcs: tuple[int, ...]
    expected_mbps: Floats
    """UDP without the other link."""
    share: Floats
    """Throughput over `expected_mbps`."""
    loss: Floats
    """Share of packets lost after all retries."""
    late_udp_share: Floats
    """Throughput share of the later link."""
    late_tcp_mbps: Floats


def interfered(kind: str) -> Interfered:
    """Both links at MTU 7912 with a strong signal: the model's expectation, not random."""
    air = AIRS[one_of("kind", kind, AIRS)]
    made = radio("panasonic")
    device = sender(7912, made)
    needed = made.table.thresholds()
    udp = device.goodput_mbps(made.table.rates_mbps, "udp")
    tcp = device.goodput_mbps(made.table.rates_mbps, "tcp")
    late = replace(air, deferred=LATE_DEFERRED[kind])
    limit = tcp_limit_mbps(late.loss_share(needed), RTT_S, device.payload_bytes("tcp"))
    return Interfered(
        kind,
        tuple(made.table.indices.tolist()),
        udp,
        air.throughput_share(needed),
        air.loss_share(needed),
        late.throughput_share(needed),
        np.minimum(tcp * late.throughput_share(needed), limit),
    )


def usable_down_to_dbm() -> dict[str, float]:
    """Least signal of the slowest scheme in dBm: by sensitivity, by noise; of control frames."""
    made = radio("panasonic")
    return {
        "sensitivity": float(made.table.thresholds("sensitivity").min()),
        "noise": float(made.table.thresholds().min()) + made.noise_dbm,
        "control": CONTROL.sensitivity_dbm,
    }
