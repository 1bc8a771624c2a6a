"""The indoor WLAN study: rate, signal and TCP over distance.

Source: a first look at TCP performance in indoor 802.11ad WLANs (figures 2 and 3): laptop and dock
2 to 155 ft apart in a lobby, line of sight, five sessions of 10 s each, samples of 0.5 s, TCP from
a server on Gigabit Ethernet.

Each session stands a few centimetres elsewhere, so the ray off the floor adds up or cancels. At
large distances it does so over the whole band. Signals vary a little within a session, and the rate
is found by trial and error.
"""

from dataclasses import dataclass, field

import numpy as np

from sumrate.phy.channel.box_room import OFFICE, BoxRoom
from sumrate.phy.channel.rays import Rays
from sumrate.phy.decibels import linear
from sumrate.phy.directions import Orientation
from sumrate.phy.hardware import Radio, radio
from sumrate.phy.mcs import NONE
from sumrate.phy.parameters import Floats, Integers, positive, whole, within
from sumrate.phy.propagation import autoregressive
from sumrate.phy.rate_adaptation import RateAdaptation, TrialAndError

FOOT_M = 0.3048
FEET = (2, 5, *range(10, 36, 5), *range(45, 136, 10), 140, 145, 150, 155)
SESSIONS = 5
SECONDS = 10.0
SAMPLE_S = 0.5
STEP_S = 0.01


@dataclass(frozen=True)
class Site:
    """Room, places and fading; values that the paper lacks were chosen.

    Raises:
        ParameterError: an extent or time is not positive.

    """

    room: BoxRoom = field(
        default_factory=lambda: BoxRoom(
            (60.0, 12.0, 4.0), OFFICE | {"floor": "marble", "east": "glass"}, max_order=1
        )
    )
    dock_m: tuple[float, float, float] = (2.0, 6.0, 1.2)
    laptop_height_m: float = 1.0
    wander_m: float = 0.15
    """Largest distance of the laptop from its mark."""
    fading_db: float = 1.0
    fading_s: float = 0.8
    free_space: bool = False
    """Keep the direct ray only."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        positive("laptop_height_m", self.laptop_height_m)
        within("wander_m", self.wander_m, 0.0)
        within("fading_db", self.fading_db, 0.0)
        positive("fading_s", self.fading_s)


@dataclass(frozen=True, eq=False)
class Sessions:
    """All sessions of all distances."""

    feet: Floats
    """(distances,)."""
    rssi_dbm: Floats
    """Mean of each session: (distances, sessions)."""
    phy_mbps: Floats
    """PHY rate in each sample; 0 where no scheme works: (distances, sessions, samples)."""
    tcp_mbps: Floats
    """TCP goodput in each sample, same shape."""
    dominant_mbps: Floats
    """PHY rate that each session used most: (distances, sessions)."""
    dominance: Floats
    """Share of the time at the dominant rate."""

    def by_distance(self, values: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation over all samples of each distance: (distances,)."""
        flat = values.reshape(values.shape[0], -1)
        return np.asarray(flat.mean(axis=1)), np.asarray(flat.std(axis=1))

    def dominated(self, share: float) -> tuple[Floats, Floats]:
        """PHY rate and mean TCP goodput, Mbit/s, of sessions with a dominant rate.

        A session has one if its most used rate has more than `share` of the time. Shapes
        (sessions,).
        """
        within("share", share, 0.0, 1.0)
        chosen = (self.dominance > share) & (self.dominant_mbps > 0)
        return self.dominant_mbps[chosen], self.tcp_mbps.mean(axis=-1)[chosen]


def measure(
    seed: int = 1,
    feet: tuple[int, ...] = FEET,
    *,
    site: Site | None = None,
    law: RateAdaptation | None = None,
    sessions: int = SESSIONS,
    made: Radio | None = None,
) -> Sessions:
    """Runs all sessions.

    Args:
        seed: of places, fading and frame losses.
        feet: distances.
        site: room and devices' places.
        law: rate adaptation.
        sessions: at each distance.
        made: the radio.

    Raises:
        ParameterError: a distance is outside 1 to 180 ft.

    """
    where, device = site or Site(), made or radio("wil6210")
    generator = np.random.default_rng(seed)
    whole("sessions", sessions)
    found = [
        [
            _session(float(d), where, law or TrialAndError(), device, generator)
            for _ in range(sessions)
        ]
        for d in within("feet", feet, 1.0, 180.0)
    ]
    columns = [np.array([[one[i] for one in row] for row in found]) for i in range(5)]
    return Sessions(np.array(feet, dtype=np.float64), *columns)


def _session(
    feet: float, site: Site, law: RateAdaptation, device: Radio, generator: np.random.Generator
) -> tuple[float, Floats, Floats, float, float]:
    """Mean RSSI, PHY rate and TCP goodput of each sample, dominant rate and its share."""
    steps = round(SECONDS / STEP_S)
    strength = received_dbm(feet, site, device, generator) + _fading(site, steps, generator)
    snr = strength - device.noise_dbm
    place = law.choose(device.table, snr, STEP_S, generator)
    errors = device.table.frame_error_rate(place, snr, device.sender.mtu_bytes)
    rates = np.append(device.table.rates_mbps, 0.0)[place]
    tcp = device.sender.goodput_mbps(rates, "tcp", errors)
    per_sample = round(SAMPLE_S / STEP_S)
    counts = np.bincount(np.where(place == NONE, len(device.table.schemes), place))
    return (
        float(strength.mean()),
        _samples(rates, per_sample),
        _samples(tcp, per_sample),
        float(np.append(device.table.rates_mbps, 0.0)[int(counts.argmax())]),
        float(counts.max() / steps),
    )


def received_dbm(feet: float, site: Site, device: Radio, generator: np.random.Generator) -> float:
    """Power at the laptop through the best pair of beams, dBm, at a random place."""
    offset = generator.uniform(-site.wander_m, site.wander_m, 3)
    away = np.array([max(feet * FOOT_M, 0.3), 0.0, site.laptop_height_m - site.dock_m[2]])
    rays = site.room.rays(site.dock_m, np.array(site.dock_m) + away + offset * [1.0, 1.0, 0.2])
    back = Orientation(yaw=np.pi)
    if site.free_space:
        rays = rays.attenuated(np.where(rays.order == 0, 0.0, 300.0))
    pairs = rays.beam_gain_db(device.beams, device.beams, Orientation(), back)
    ap_beam, client_beam = np.unravel_index(int(pairs.argmax()), pairs.shape)
    weights = _weights(rays, device, int(ap_beam), int(client_beam), back)
    return float(rays.band_gain_db(weights)) + device.power_dbm


def _weights(
    rays: Rays, device: Radio, ap_beam: int, client_beam: int, back: Orientation
) -> Floats:
    sent = rays.departure_gain_dbi(device.beams, Orientation())[ap_beam]
    received = rays.arrival_gain_dbi(device.beams, back)[client_beam]
    return linear(sent + received)


def _fading(site: Site, steps: int, generator: np.random.Generator) -> Floats:
    kept = float(np.exp(-STEP_S / site.fading_s))
    values = generator.normal(0.0, site.fading_db, steps)
    values[1:] *= np.sqrt(1 - kept**2)
    return autoregressive(values, kept)


def _samples(values: Floats | Integers, length: int) -> Floats:
    return np.asarray(values.reshape(-1, length).mean(axis=1), dtype=np.float64)
