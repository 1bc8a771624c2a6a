"""Simulates a scene over time: channel, beams, access and rate, as a link trace."""

from dataclasses import dataclass

import numpy as np

from sumrate.phy.blockage.angular import self_blocking_db
from sumrate.phy.blockage.screen import rays_loss_db
from sumrate.phy.channel.rays import Rays
from sumrate.phy.decibels import decibels, linear
from sumrate.phy.directions import angles_of, unit_vectors, wrap
from sumrate.phy.mcs import NONE
from sumrate.phy.mobility import Track, times
from sumrate.phy.parameters import Floats, Integers, whole
from sumrate.traces.access_delay import AccessDelay
from sumrate.traces.link_trace import NO_BEAM, NO_MCS, LinkTrace
from sumrate.traces.scene import Scene

CONNECTED, TRAINING, OUTAGE = range(3)
"""Indices into the states of a link trace."""
NOTHING_DBM = -150.0
"""RSSI in the trace while no beam is in use."""


@dataclass(frozen=True, eq=False)
class Channel:
    """Gains of all beams over time, linear; geometry has longer time steps than blockage."""

    sent: Floats
    """Gains of the access point's beams: (beams, places, rays)."""
    received: Floats
    """Gains of the client's beams: (beams, places, rays)."""
    rays: Floats
    """Power of every ray without blockage: (places, rays)."""
    place: Integers
    """Index of the place at every step: (steps,)."""
    kept: tuple[Floats, Floats]
    """Share of the power behind passing people at every step, (steps,) each.

    The first is of the line of sight, the second of the other rays.
    """
    direct: Floats
    """1 for the line of sight, 0 for reflections: (rays,)."""

    def pair(self, ap_beam: int, client_beam: int, begin: int, end: int) -> Floats:
        """Gain in dB of a pair of beams at steps begin to end: shape (end - begin,)."""
        place = self.place[begin:end]
        first, last = int(place[0]), int(place[-1]) + 1
        each = self.sent[ap_beam, first:last] * self.rays[first:last]
        each = each * self.received[client_beam, first:last]
        seen = (each * self.direct).sum(axis=1)[place - first]
        reflected = (each * (1 - self.direct)).sum(axis=1)[place - first]
        sight, other = (kept[begin:end] for kept in self.kept)
        return decibels(seen * sight + reflected * other)

    def sweep(self, step: int) -> Floats:
        """Gain in dB of all pairs of beams at a step: (access point's, client's)."""
        place = self.place[step]
        through = self.direct * self.kept[0][step] + (1 - self.direct) * self.kept[1][step]
        weighted = self.sent[:, place] * (self.rays[place] * through)
        return decibels(weighted @ self.received[:, place].T)


def channel(scene: Scene, track: Track, generator: np.random.Generator) -> Channel:
    """The channel of a scene along a track."""
    moves = bool((track.steps_m > 1e-9).any() or np.ptp(track.yaw) > 1e-9)
    every = max(1, round(scene.channel_step_s / scene.step_s)) if moves else track.times_s.size
    places = np.arange(0, track.times_s.size, every)
    rays = scene.room.rays(scene.access_point_m, track.positions_m[places])
    rays = rays.attenuated(rays_loss_db(rays, scene.people, scene.room.frequency_hz))
    if scene.crowd is not None:
        at = track.positions_m[places]
        crowd = scene.crowd.along(np.linalg.norm(np.diff(at, axis=0), axis=1), generator)
        rays = rays.attenuated(crowd.loss_db(rays.arrival_azimuth, rays.arrival_elevation))
    if scene.held is not None:
        azimuth = rays.arrival_azimuth - track.yaw[places][:, np.newaxis]
        rays = rays.attenuated(self_blocking_db(wrap(azimuth), rays.arrival_elevation, scene.held))
    lost = {"direct": np.zeros(track.times_s.size), "all": np.zeros(track.times_s.size)}
    for passers in scene.passers:
        lost[passers.target] += passers.process.loss_db(track.times_s, generator)
    return Channel(
        linear(rays.departure_gain_dbi(scene.radio.beams, scene.facing)),
        linear(_client_gain_dbi(scene, rays, track.yaw[places])),
        linear(rays.gain_db),
        np.arange(track.times_s.size) // every,
        (linear(-lost["direct"] - lost["all"]), linear(-lost["all"])),
        (rays.order[0] == 0).astype(np.float64),
    )


def _client_gain_dbi(scene: Scene, rays: Rays, yaw: Floats) -> Floats:
    """Gains of the client's beams towards all rays, with its yaw at each place."""
    azimuth = wrap(rays.arrival_azimuth - yaw[:, np.newaxis])
    directions = unit_vectors(azimuth, rays.arrival_elevation)
    return scene.radio.beams.gain_dbi(*angles_of(directions))


@dataclass
class _Course:
    """One simulated course of a scene, from event to event."""

    scene: Scene
    air: Channel
    access: AccessDelay
    generator: np.random.Generator
    fading_db: Floats
    rssi_dbm: Floats
    beams: Integers
    state: Integers

    @property
    def steps(self) -> int:
        return int(self.rssi_dbm.size)

    def run(self) -> None:
        """Computes strength, beams and state of every step."""
        step = 0
        while step < self.steps:
            found = self._trained(step)
            if found is None:
                end = self._waited(step)
                self._dark(step, end)
                step = end
            else:
                step = self._connected(step, *found)

    def _trained(self, step: int) -> tuple[int, int] | None:
        """The pair of beams that wins a sweep, or None if no pair works."""
        strength = self.air.sweep(step) + self.scene.radio.power_dbm + self.fading_db[step]
        error = self.generator.normal(0.0, self.scene.training.error_db, strength.shape)
        ap_beam, client_beam = np.unravel_index(int((strength + error).argmax()), strength.shape)
        if strength[ap_beam, client_beam] < self._least_dbm():
            return None
        return int(ap_beam), int(client_beam)

    def _least_dbm(self) -> float:
        return float(self.scene.radio.table.thresholds().min()) + self.scene.radio.noise_dbm

    def _waited(self, step: int) -> int:
        """The step at which a client that competes from `step` on wins its A-BFT."""
        delay = self.access.delay_s(self.generator)
        return min(self.steps, step + max(1, round(delay / self.scene.step_s)))

    def _connected(self, begin: int, ap_beam: int, client_beam: int) -> int:
        """Carries data until the next A-BFT; returns the step at which this ends."""
        law, step_s = self.scene.training, self.scene.step_s
        patience = max(1, round(law.lost_after_s / step_s))
        horizon = min(self.steps, begin + max(1, round(law.periodic_s / step_s)))
        while True:
            strength = self._use(begin, horizon, ap_beam, client_beam)
            lost = _first_run(strength < self._least_dbm(), patience)
            weak = _first_run(strength < strength[0] - law.drop_db, patience)
            if lost is None and weak is None:
                return self._competing(horizon, ap_beam, client_beam)
            weaker = weak is not None and (lost is None or weak < lost)
            event = begin + ((weak if weaker else lost) or 0)
            refined = self._refined(event, horizon)
            if refined is None:
                break
            begin, ap_beam, client_beam = refined
        if weaker:
            return self._competing(event, ap_beam, client_beam)
        return self._lost(event, horizon)

    def _refined(self, event: int, horizon: int) -> tuple[int, int, int] | None:
        """Step and pair of beams of a training in the data time, or None."""
        law = self.scene.training
        if law.refined_s is None:
            return None
        wait_s = self.generator.random() * law.refined_s
        step = event + max(1, round(wait_s / self.scene.step_s))
        found = self._trained(step) if step < horizon else None
        return None if found is None else (step, *found)

    def _use(self, begin: int, end: int, ap_beam: int, client_beam: int) -> Floats:
        """Records a pair of beams as in use; returns its strength in dBm: (end - begin,)."""
        gain = self.air.pair(ap_beam, client_beam, begin, end)
        strength = gain + self.scene.radio.power_dbm + self.fading_db[begin:end]
        self.rssi_dbm[begin:end] = strength
        self.beams[begin:end] = ap_beam, client_beam
        self.state[begin:end] = CONNECTED
        return np.asarray(strength)

    def _competing(self, begin: int, ap_beam: int, client_beam: int) -> int:
        """Uses the old beams until the client wins the A-BFT or loses the link."""
        if begin >= self.steps:
            return self.steps
        end = self._waited(begin)
        strength = self._use(begin, end, ap_beam, client_beam)
        self.state[begin:end] = TRAINING
        patience = max(1, round(self.scene.training.lost_after_s / self.scene.step_s))
        lost = _first_run(strength < self._least_dbm(), patience)
        if lost is not None:
            # The client competes already, so its wait does not start again.
            self._dark(begin + lost, end)
        return end

    def _lost(self, begin: int, used: int) -> int:
        """Carries nothing until the client wins the A-BFT; returns that step."""
        end = self._waited(begin)
        self._dark(begin, max(end, used))
        return end

    def _dark(self, begin: int, end: int) -> None:
        self.rssi_dbm[begin:end] = NOTHING_DBM
        self.beams[begin:end] = NO_BEAM
        self.state[begin:end] = OUTAGE


def _first_run(wrong: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], length: int) -> int | None:
    """Index after the first run of `length` true values, or None."""
    if wrong.size < length:
        return None
    total = np.concatenate([[0], np.cumsum(wrong)])
    full = np.flatnonzero(total[length:] - total[:-length] == length)
    return int(full[0]) + length if full.size else None


def make(
    scene: Scene, seconds: float, seed: int, access: str | AccessDelay = "dot11ad"
) -> LinkTrace:
    """The link trace of a scene.

    Equal scene, length, seed and access give equal traces. Another access changes the durations of
    outages and trainings, and the events after them.

    Args:
        scene: to simulate.
        seconds: length.
        seed: of all random numbers.
        access: `dot11ad`, `jpoc` or `alone` with the scene's contention, or a sampler of waits.

    Raises:
        ParameterError: the access is unknown, or the length not positive.

    """
    delay = scene.contention.named(access) if isinstance(access, str) else access
    whole("seed", seed, 0)
    instants = times(seconds, scene.step_s)
    moving, blocking, fading, contending = np.random.default_rng(seed).spawn(4)
    air = channel(scene, scene.drive(instants, moving), blocking)
    steps = instants.size
    course = _Course(
        scene,
        air,
        delay,
        contending,
        scene.fluctuation.along(steps, scene.step_s, fading),
        np.full(steps, NOTHING_DBM),
        np.full((steps, 2), NO_BEAM, dtype=np.int64),
        np.full(steps, OUTAGE, dtype=np.int64),
    )
    course.run()
    origin: dict[str, object] = {
        "scenario": scene.name,
        "title": scene.title,
        "seed": seed,
        "seconds": seconds,
        "access": delay.name,
        "clients": scene.contention.clients,
        "radio": scene.radio.name,
    }
    if scene.training.refined_s is not None:
        origin["refined_s"] = scene.training.refined_s
    return _with_rates(scene, course, origin, fading)


def _with_rates(
    scene: Scene, course: _Course, origin: dict[str, object], generator: np.random.Generator
) -> LinkTrace:
    """Computes scheme, rate, delay and loss from the received strength."""
    radio = scene.radio
    snr = np.maximum(course.rssi_dbm - radio.noise_dbm, -60.0)
    place = scene.rate_adaptation.choose(radio.table, snr, scene.step_s, generator)
    place = np.where(course.state == OUTAGE, NONE, place)
    errors = radio.table.frame_error_rate(place, snr, radio.sender.mtu_bytes)
    phy_rate = np.append(radio.table.rates_mbps, 0.0)[place]
    rate = radio.sender.ip_rate_mbps(phy_rate, errors)
    lost = radio.sender.residual_loss(errors)
    if scene.neighbour is not None:
        needed = np.append(radio.table.thresholds(), 0.0)[place]
        rate = rate * scene.neighbour.throughput_share(needed)
        lost = 1 - (1 - lost) * (1 - scene.neighbour.loss_share(needed))
    rate = np.where(rate < 1.0, 0.0, rate)
    carries = rate > 0
    return LinkTrace(
        scene.step_s,
        rate,
        np.where(carries, radio.sender.retry_delay_ms(phy_rate, errors), 0.0),
        np.where(carries, lost, 0.0),
        np.append(radio.table.indices, NO_MCS)[place],
        course.rssi_dbm,
        snr,
        course.beams[:, 0],
        course.beams[:, 1],
        course.state,
        origin,
    )
