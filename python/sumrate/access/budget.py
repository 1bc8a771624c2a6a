"""Link budgets of the clients of a scene."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from sumrate.access.errors import AccessError, whole
from sumrate.access.pool import Pool
from sumrate.access.scenes import Scene, array_gain_db
from sumrate.access.scenes import device as device_named
from sumrate.phy.channel.conference_room import (
    ACCESS_POINT_M,
    TABLE_M,
    ConferenceRoom,
    human_attenuation_db,
)
from sumrate.phy.channel.free_space import free_space
from sumrate.phy.channel.indoor import IndoorOffice
from sumrate.phy.channel.rays import ABSENT_DB, Rays
from sumrate.phy.codebook import Codebook, MeasuredPattern, codebook_36, quasi_omni
from sumrate.phy.decibels import decibels, linear
from sumrate.phy.directions import Orientation, angles_of, wrap
from sumrate.phy.parameters import Floats
from sumrate.phy.propagation import noise_dbm

SERVED_DB = 1.0
"""Least SNR of the best beam at full power; weaker clients are not part of a scene."""
SAMPLED_FROM = 16
"""With more rays than this on a link, gains come from a table."""
STEP = float(np.deg2rad(1.0))
"""Step of the table in azimuth and elevation."""
BATCH = 500
"""Clients whose channels are drawn together."""
PATIENCE, LEAST_SERVED = 4, 0.02
"""Batches after which at least this share of the clients must be in reach of their AP."""


@lru_cache(maxsize=16)
def make_pool(scene: Scene, clients: int = 2000, seed: int = 1) -> Pool:
    """Link budgets of `clients` clients of every cell of a scene.

    Clients that the AP cannot decode unblocked at full power are replaced by others. The powers of
    rays add up. A person attenuates a blocked client's line of sight, as measured in the
    conference room (IEEE 802.11-09/0334). The AP has three panels, 120 degrees apart; in the
    conference room it has one panel that faces the room.

    Raises:
        AccessError: the AP can decode hardly any client.

    """
    whole("clients of a pool", clients, 1, 1_000_000)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    cells = []
    for cell in range(scene.aps):
        parts: list[Pool] = []
        while (served := sum(part.size for part in parts)) < clients:
            if len(parts) >= PATIENCE and served < LEAST_SERVED * len(parts) * BATCH:
                raise AccessError(
                    f"at least {LEAST_SERVED:.0%} of the clients of scene {scene.name} must be in "
                    f"reach of their AP, not {served} of {len(parts) * BATCH}: "
                    f"more power than {scene.power_dbm:g} dBm, or a smaller cell"
                )
            parts.append(_served(_batch(scene, cell, rng)))
        cells.append(_joined(parts).select(np.arange(clients)))
    return _joined(cells)


def _served(pool: Pool) -> Pool:
    return pool.select(np.flatnonzero(pool.own_snr_db()[0].max(axis=1) >= SERVED_DB))


def _joined(parts: list[Pool]) -> Pool:
    def together(name: str, axis: int = 0) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts], axis=axis)

    return replace(
        parts[0],
        snr_db=together("snr_db", 2),
        sweep_dbm=together("sweep_dbm", 1),
        beams=together("beams").astype(np.int64),
        cell=together("cell").astype(np.int64),
        array_gain_db=together("array_gain_db"),
        power_dbm=together("power_dbm"),
        distance_m=together("distance_m"),
        turned=together("turned"),
    )


def _batch(scene: Scene, cell: int, rng: np.random.Generator) -> Pool:
    """A batch of clients of one cell, at random places."""
    centre = _access_points(scene)[cell]
    places = _places(scene, centre, rng)
    turned = rng.uniform(-scene.turned, scene.turned, BATCH)
    return budgets(scene, places, turned, rng, cell=cell)


def budgets(
    scene: Scene, places: Floats, turned: Floats, rng: np.random.Generator, *, cell: int = 0
) -> Pool:
    """Link budgets of clients at given places, in reach or not.

    Args:
        scene: channel, APs and devices; the devices alternate.
        places: (clients, 3), metres; the first AP stands at (0, 0, `height_m`), or at the
            conference room's place.
        turned: angle between each client's boresight and its AP, (clients,), radians.
        rng: of the channel.
        cell: the clients' AP.

    """
    centres = _access_points(scene)
    count = len(places)
    own = centres[cell] - places
    yaw = angles_of(own)[0] + turned
    person_db = human_attenuation_db((count,), rng)
    device = np.arange(count) % len(scene.devices)
    books = [device_named(name) for name in scene.devices]
    noise = noise_dbm()
    snr = np.full((scene.aps, 2, count, max(book.beams for book in books)), ABSENT_DB)
    sweep = np.empty((2, count))
    for ap, centre in enumerate(centres):
        rays = _rays(scene, centre, places, rng)
        lost = np.where(rays.order == 0, person_db[:, np.newaxis], 0.0)
        power = np.stack([linear(rays.gain_db), linear(rays.gain_db - lost)])
        panels = [_local(rays, *facing) for facing in _panels(scene)]
        facing = (wrap(rays.arrival_azimuth - yaw[:, np.newaxis]), rays.arrival_elevation)
        omni = np.max([_gain(quasi_omni(), *at)[..., 0] for at in panels], axis=0)
        for index, book in enumerate(books):
            mine = np.flatnonzero(device == index)
            sent = _gain(book, facing[0][mine], facing[1][mine])
            total = np.einsum("crb,scr,cr->scb", sent, power[:, mine], omni[mine])
            snr[ap][:, mine, : book.beams] = scene.power_dbm + decibels(total) - noise
        if ap == cell:
            received = power * _gain(quasi_omni(), *facing)[..., 0]
            best = [np.einsum("crb,scr->scb", _gain(codebook_36(), *at), received).max(axis=2)
                    for at in panels]  # fmt: skip
            sweep = scene.power_dbm + decibels(np.max(best, axis=0))
    return Pool(
        snr, sweep, np.array([book.beams for book in books])[device], np.full(count, cell),
        np.array([array_gain_db(book) for book in books])[device],
        np.full(count, scene.power_dbm), codebook_36().array.array_gain_db + scene.power_dbm, noise,
        np.linalg.norm(own, axis=1), turned,
    )  # fmt: skip


def _access_points(scene: Scene) -> Floats:
    """Positions, (APs, 3), metres: a square grid."""
    if scene.channel == "conference-room":
        return np.array([ACCESS_POINT_M])
    columns = int(np.ceil(np.sqrt(scene.aps)))
    apart = 2 * scene.radius_m
    found = [(apart * (i % columns), apart * (i // columns), scene.height_m)
             for i in range(scene.aps)]  # fmt: skip
    return np.array(found)


def _places(scene: Scene, centre: Floats, rng: np.random.Generator) -> Floats:
    """Positions of clients around an AP, (clients, 3), metres."""
    if scene.channel == "conference-room":
        low, high = np.array(TABLE_M).T
        return rng.uniform(low, high, (BATCH, 3))
    span = scene.radius_m**2 - scene.nearest_m**2
    distance = np.sqrt(scene.nearest_m**2 + span * rng.random(BATCH))
    angle = rng.uniform(-np.pi, np.pi, BATCH)
    offset = np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)
    return np.column_stack([centre[:2] + offset, np.zeros(BATCH)])


def _rays(scene: Scene, ap: Floats, places: Floats, rng: np.random.Generator) -> Rays:
    """From an AP to every client, (clients, rays)."""
    if scene.channel == "free-space":
        return free_space(ap, places)
    if scene.channel == "conference-room":
        return ConferenceRoom().rays(places, rng)
    return _stacked(IndoorOffice(scene.environment).rays(ap, places, rng))


def _stacked(links: list[Rays]) -> Rays:
    """Stacks links with different numbers of rays; absent rays fill up the shorter ones."""
    most = max(link.rays for link in links)

    def padded(name: str, fill: float) -> Floats:
        rows = np.full((len(links), most), fill)
        for row, link in zip(rows, links, strict=True):
            row[: link.rays] = getattr(link, name)
        return rows

    return Rays(
        padded("gain_db", ABSENT_DB),
        padded("delay_s", 0.0),
        padded("departure_azimuth", 0.0),
        padded("departure_elevation", 0.0),
        padded("arrival_azimuth", 0.0),
        padded("arrival_elevation", 0.0),
        padded("phase", 0.0),
        padded("order", 1.0).astype(np.int64),
    )


def _panels(scene: Scene) -> list[tuple[float, float]]:
    """Yaw and pitch of the AP's panels, radians."""
    if scene.channel == "conference-room":
        return [(np.pi / 2, -np.pi / 4)]
    return [(yaw, 0.0) for yaw in (0.0, 2 * np.pi / 3, -2 * np.pi / 3)]


def _local(rays: Rays, yaw: float, pitch: float) -> tuple[Floats, Floats]:
    return Orientation(yaw, pitch).local(rays.departure_azimuth, rays.departure_elevation)


_TABLES: dict[bytes, Floats] = {}
"""Sampled gains, by the bytes of the codebook's weights or measured gains."""


def _gain(book: Codebook | MeasuredPattern, azimuth: Floats, elevation: Floats) -> Floats:
    """Linear gain towards rays, (clients, rays, beams); many rays are looked up in a table."""
    if azimuth.shape[-1] <= SAMPLED_FROM:
        return np.moveaxis(linear(book.gain_dbi(azimuth, elevation)), 0, -1)
    values = book.weights if isinstance(book, Codebook) else book.gains_dbi
    key = values.tobytes()
    if key not in _TABLES:
        across = np.arange(-np.pi, np.pi + STEP / 2, STEP)
        upward = np.arange(-np.pi / 2, np.pi / 2 + STEP / 2, STEP)
        grid = np.meshgrid(across, upward, indexing="ij")
        _TABLES[key] = np.moveaxis(linear(book.gain_dbi(*grid)), 0, -1).copy()
    column = np.rint((azimuth + np.pi) / STEP).astype(np.int64)
    row = np.rint((elevation + np.pi / 2) / STEP).astype(np.int64)
    return _TABLES[key][column, row]
