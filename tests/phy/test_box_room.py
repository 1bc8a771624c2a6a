"""The room of images against Friis, against the principle of the shortest way, and by hand."""

import numpy as np
import pytest

from sumrate.phy.channel.box_room import OFFICE, WALLS, BoxRoom
from sumrate.phy.channel.free_space import free_space
from sumrate.phy.codebook import codebook_36, quasi_omni
from sumrate.phy.directions import Orientation, unit_vectors
from sumrate.phy.materials import material
from sumrate.phy.parameters import ParameterError
from sumrate.phy.propagation import SPEED_OF_LIGHT, free_space_loss_db, oxygen_loss_db

SIZE = (8.0, 5.0, 3.0)
AP = np.array([1.0, 2.2, 2.5])
CLIENT = np.array([6.3, 3.9, 1.1])


def shortest_way(walls: list[tuple[int, float]]) -> tuple[float, np.ndarray]:
    """Length and corners of the shortest way that touches planes in turn, by coordinate search."""
    corners = np.array([AP + (CLIENT - AP) * (i + 1) / (len(walls) + 1) for i in range(len(walls))])
    for corner, (axis, at) in zip(corners, walls, strict=True):
        corner[axis] = at

    def length(way: np.ndarray) -> float:
        stops = np.vstack([AP, way, CLIENT])
        return float(np.linalg.norm(np.diff(stops, axis=0), axis=1).sum())

    step = 1.0
    while step > 1e-9:
        better = False
        for corner, (axis, _) in zip(corners, walls, strict=True):
            for free in range(3):
                for sign in (-step, step) if free != axis else ():
                    before = length(corners)
                    corner[free] += sign
                    if length(corners) >= before - 1e-15:
                        corner[free] -= sign
                    else:
                        better = True
        if not better:
            step /= 2
    return length(corners), corners


def test_line_of_sight_is_friis() -> None:
    rays = BoxRoom(SIZE).rays(AP, CLIENT)
    distance = np.linalg.norm(CLIENT - AP)
    expected = -free_space_loss_db(distance) - oxygen_loss_db(distance)
    assert rays.gain_db[0] == pytest.approx(float(expected))
    assert rays.delay_s[0] * SPEED_OF_LIGHT == pytest.approx(distance)
    alone = free_space(AP, CLIENT)
    for name in ("gain_db", "delay_s", "departure_azimuth", "arrival_elevation"):
        assert getattr(rays, name)[0] == pytest.approx(getattr(alone, name)[0])


def test_rays_are_shortest_ways_over_their_walls() -> None:
    room = BoxRoom(SIZE)
    rays = room.rays(AP, CLIENT)
    assert (rays.rays, rays.order.tolist()) == (25, [0] + [1] * 6 + [2] * 18)
    vertices = rays.vertices
    assert vertices is not None
    for ray in range(1, 25):
        corners = vertices[ray, 1 : 1 + rays.order[ray]]
        walls = []
        for corner in corners:
            axis = int(np.argmin(np.minimum(np.abs(corner), np.abs(corner - SIZE))))
            walls.append((axis, 0.0 if corner[axis] < 1e-6 else SIZE[axis]))
        length, found = shortest_way(walls)
        assert rays.delay_s[ray] * SPEED_OF_LIGHT == pytest.approx(length, abs=1e-6)
        assert found == pytest.approx(corners, abs=1e-3)


def test_directions_lead_along_the_corners() -> None:
    rays = BoxRoom(SIZE).rays(AP, CLIENT)
    vertices = rays.vertices
    assert vertices is not None
    away = unit_vectors(rays.departure_azimuth, rays.departure_elevation)
    first = vertices[:, 1] - vertices[:, 0]
    assert away == pytest.approx(first / np.linalg.norm(first, axis=1, keepdims=True))
    back = unit_vectors(rays.arrival_azimuth, rays.arrival_elevation)
    one_bounce = rays.order == 1
    last = vertices[one_bounce, 1] - CLIENT
    assert back[one_bounce] == pytest.approx(last / np.linalg.norm(last, axis=1, keepdims=True))


def test_a_level_reflection_loses_what_fresnel_says() -> None:
    """On the mid-height between floor and ceiling the field stays across the plane of incidence."""
    room = BoxRoom(SIZE, max_order=1)
    start, end = np.array([2.0, 1.0, 1.5]), np.array([6.0, 1.0, 1.5])
    rays = room.rays(start, end)
    south = 1 + [tuple(i) for i in room.images()[1:].tolist()].index((0, -1, 0))
    length = np.hypot(4.0, 2.0)
    te, _ = material("plasterboard").reflection(1.0 / np.hypot(2.0, 1.0))
    expected = 20 * np.log10(abs(te)) - free_space_loss_db(length) - oxygen_loss_db(length)
    assert rays.gain_db[south] == pytest.approx(float(expected))


def test_metal_reflects_everything_and_openings_nothing() -> None:
    metal = BoxRoom(SIZE, dict.fromkeys(WALLS, "metal")).rays(AP, CLIENT)
    way = metal.delay_s * SPEED_OF_LIGHT
    loss = -metal.gain_db - free_space_loss_db(way) - oxygen_loss_db(way)
    level = np.abs(np.abs(metal.departure_elevation) - np.abs(metal.arrival_elevation)) < 1e-9
    assert loss[1:5][level[1:5]] == pytest.approx(0.0, abs=0.5)
    assert (loss > -1e-6).all()
    outside = BoxRoom(SIZE, dict.fromkeys(WALLS, "open")).rays(AP, CLIENT)
    assert (outside.gain_db[1:] < -250).all()
    assert outside.total_gain_db() == pytest.approx(outside.gain_db[0])


def test_way_back_is_the_same_way() -> None:
    room = BoxRoom(SIZE)
    there, back = room.rays(AP, CLIENT), room.rays(CLIENT, AP)
    assert np.sort(there.gain_db) == pytest.approx(np.sort(back.gain_db))
    assert np.sort(there.delay_s) == pytest.approx(np.sort(back.delay_s))


def test_many_links_equal_single_links() -> None:
    room = BoxRoom(SIZE)
    clients = np.random.default_rng(3).uniform(0.2, 2.8, (4, 5, 3))
    together = room.rays(AP, clients)
    assert together.gain_db.shape == (4, 5, 25)
    assert together.vertices is not None
    assert together.vertices.shape == (4, 5, 25, 4, 3)
    one = room.rays(AP, clients[2, 3])
    assert together.link((2, 3)).gain_db == pytest.approx(one.gain_db)
    assert together.link((2, 3)).phase == pytest.approx(one.phase)


def test_beams_find_the_client() -> None:
    rays = BoxRoom(SIZE).rays(AP, CLIENT)
    book, omni = codebook_36(), quasi_omni()
    facing, back = Orientation.towards(AP, CLIENT), Orientation.towards(CLIENT, AP)
    gains = rays.beam_gain_db(book, omni, facing, back)
    assert gains.shape == (36, 1)
    direct = rays.gain_db[0] + book.gain_dbi(0.0, 0.0).max() + omni.gain_dbi(0.0, 0.0)[0]
    assert gains.max() == pytest.approx(direct, abs=1.0)
    blocked = rays.attenuated(np.where(rays.order == 0, 40.0, 0.0))
    through_walls = blocked.beam_gain_db(book, omni, facing, back)
    assert 3 < gains.max() - through_walls.max() < 35


def test_two_rays_interfere_over_the_band() -> None:
    """Floor and direct ray far away: up to four times the power, or hardly any."""
    ground = dict.fromkeys(WALLS, "open") | {"floor": "metal"}
    room = BoxRoom((80.0, 20.0, 8.0), ground, max_order=1)
    ends = np.column_stack([np.linspace(30.0, 60.0, 3000), np.full(3000, 10.0), np.full(3000, 1.0)])
    rays = room.rays([1.0, 10.0, 1.2], ends)
    together = rays.band_gain_db()
    apart = rays.total_gain_db()
    assert (together - apart).max() == pytest.approx(3.0, abs=0.3)
    assert (together - apart).min() < -8
    alone = free_space([0.0, 0.0, 1.0], [5.0, 0.0, 1.0])
    assert alone.band_gain_db() == pytest.approx(alone.gain_db[0])


def test_slab_has_a_back() -> None:
    plaster = material("plasterboard")
    thick, _ = plaster.reflection(1.0, thickness_m=2.0)
    front, _ = plaster.reflection(1.0)
    assert abs(thick) == pytest.approx(abs(front), abs=0.02)
    thin, _ = plaster.reflection(1.0, thickness_m=1e-6)
    assert abs(thin) < 0.01


def test_impossible_rooms_are_refused() -> None:
    with pytest.raises(ParameterError, match="material is 'cheese': allowed is brick"):
        BoxRoom(SIZE, OFFICE | {"floor": "cheese"})
    with pytest.raises(ParameterError, match="walls"):
        BoxRoom(SIZE, {"floor": "wood"})
    with pytest.raises(ParameterError, match=r"size_m is -5.0"):
        BoxRoom((8.0, -5.0, 3.0))
    with pytest.raises(ParameterError, match=r"receiver is \(9.0, 1.0, 1.0\).*inside"):
        BoxRoom(SIZE).rays(AP, [9.0, 1.0, 1.0])
    with pytest.raises(ParameterError, match="distance of receiver"):
        BoxRoom(SIZE).rays(AP, AP)
    with pytest.raises(ParameterError, match=r"shape of transmitter is \(2,\)"):
        free_space([1.0, 2.0], CLIENT)
