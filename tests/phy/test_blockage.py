"""Blockage models against their formulas and their own statistics."""

import numpy as np
import pytest

from sumrate.phy.blockage.angular import AngularBlockage, AngularBlockers, self_blocking_db
from sumrate.phy.blockage.process import BlockageProcess, Events, arrival_rate_per_s
from sumrate.phy.blockage.screen import Person, rays_loss_db, segment_loss_db
from sumrate.phy.channel.box_room import BoxRoom
from sumrate.phy.channel.conference_room import ConferenceRoom
from sumrate.phy.channel.free_space import free_space
from sumrate.phy.parameters import ParameterError


def one_blocker(width_deg: float = 30.0, height_deg: float = 10.0) -> AngularBlockers:
    return AngularBlockers(np.zeros(1), np.deg2rad([width_deg]), np.deg2rad([height_deg]), 2.0)


def test_model_a_is_its_formula_at_the_centre() -> None:
    def f(half_angle: float) -> float:
        detour = 1 / np.cos(half_angle) - 1
        return float(np.arctan(np.pi / 2 * np.sqrt(np.pi / 0.0049965 * 2.0 * detour)) / np.pi)

    expected = -20 * np.log10(1 - 2 * f(np.deg2rad(15)) * 2 * f(np.deg2rad(5)))
    found = one_blocker().loss_db(np.zeros(1), np.zeros(1))
    assert found[0] == pytest.approx(expected, rel=1e-4)
    assert 10 < expected < 30


def test_model_a_has_6_db_at_an_edge() -> None:
    azimuth = np.deg2rad([0.0, 15.0, 25.0, 31.0, 180.0])
    loss = one_blocker(height_deg=80.0).loss_db(azimuth, np.zeros(5))
    assert loss[1] == pytest.approx(6.0, abs=0.6)
    assert (np.diff(loss[:2]) < 0).all()
    assert abs(loss[2]) < 1.5
    assert loss[3:] == pytest.approx([0.0, 0.0])


def test_model_a_blockers_are_uniform_and_change_slowly() -> None:
    generator = np.random.default_rng(1)
    model = AngularBlockage()
    along = model.along(np.full(20_000, 0.5), generator)
    assert along.azimuth.shape == (20_001, 4)
    assert np.rad2deg(along.width).min() > 15
    assert np.rad2deg(along.width).max() < 45
    assert np.rad2deg(along.width).mean() == pytest.approx(30.0, abs=1.5)
    width = along.width[:, 0]
    assert np.corrcoef(width[:-10], width[10:])[0, 1] == pytest.approx(np.exp(-1), abs=0.1)
    drawn = model.draw(5000, generator)
    loss = drawn.loss_db(np.zeros((5000, 1)), np.zeros((5000, 1)))
    assert loss.shape == (5000, 1)
    assert 0.2 < (loss > 3).mean() < 0.5


def test_a_users_body_hides_its_region() -> None:
    azimuth = np.deg2rad([-100.0, 0.0])
    assert self_blocking_db(azimuth, np.deg2rad([-10.0, -10.0])).tolist() == [30.0, 0.0]
    assert self_blocking_db(np.deg2rad(40), 0.0, "landscape") == 30.0


def test_model_b_blocks_behind_a_person_only() -> None:
    start, end = np.array([0.0, 0.0, 1.0]), np.array([4.0, 0.0, 1.0])
    behind = segment_loss_db(start, end, Person(2.0, 0.0))
    edge = segment_loss_db(start, end, Person(2.0, 0.15))
    beside = segment_loss_db(start, end, Person(2.0, 0.6))
    over = segment_loss_db(start, end, Person(2.0, 0.0, height_m=0.5))
    elsewhere = segment_loss_db(start, end, Person(5.0, 0.0))
    assert 8 < behind < 30
    assert edge == pytest.approx(6.0, abs=1.0)
    assert beside < 1.0
    assert over < 1.0
    assert elsewhere == 0.0
    assert segment_loss_db(end, start, Person(2.0, 0.0)) == pytest.approx(float(behind))


def test_a_person_blocks_the_line_of_sight_only() -> None:
    rays = BoxRoom((8.0, 5.0, 3.0)).rays([1.0, 2.5, 1.2], [7.0, 2.5, 1.2])
    loss = rays_loss_db(rays, (Person(4.0, 2.5),))
    assert loss.shape == (25,)
    assert loss[0] > 8
    assert (loss[1:] < 1).any()
    assert rays_loss_db(rays, ()).sum() == 0
    with pytest.raises(ParameterError, match="without vertices"):
        rays_loss_db(ConferenceRoom().draw(1, np.random.default_rng(0)), (Person(1.0, 1.0),))
    two = free_space([0, 0, 1], [[4, 0, 1], [0, 4, 1]])
    assert (rays_loss_db(two, (Person(2.0, 0.0),))[:, 0] > 5).tolist() == [True, False]


def test_process_blocks_its_share_of_the_time() -> None:
    generator = np.random.default_rng(2)
    for law in ("exponential", "lognormal", "fixed"):
        process = BlockageProcess(0.4, 0.5, law=law, edge_s=0.0)
        times = np.arange(0.0, 6_000.0, 0.1)
        blocked = process.loss_db(times, generator) > 0
        assert blocked.mean() == pytest.approx(process.blocked_share, rel=0.08)
        assert process.blocked_share == pytest.approx(1 - np.exp(-0.2))


def test_events_have_edges_and_depth() -> None:
    events = Events(np.array([1.0]), np.array([0.5]), np.array([20.0]))
    loss = events.loss_db(np.array([0.8, 0.95, 1.0, 1.4, 1.55, 1.7]), edge_s=0.1)
    assert loss == pytest.approx([0.0, 10.0, 20.0, 20.0, 10.0, 0.0])


def test_arrival_rate_is_linear_in_everything() -> None:
    rate = arrival_rate_per_s(0.1, 1.0, [5.0, 10.0])
    assert rate == pytest.approx(np.array([5.0, 10.0]) * 2 / np.pi * 0.1 * 0.7 / 1.5)
    assert arrival_rate_per_s(0.1, 1.0, 5.0, receiver_height_m=2.0) == 0.0


def test_bad_blockage_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"rate_per_s is -1\.0"):
        BlockageProcess(-1.0)
    with pytest.raises(ParameterError, match="law is 'normal': allowed is exponential"):
        BlockageProcess(1.0, law="normal")
    with pytest.raises(ParameterError, match=r"distance_m is -2\.0"):
        arrival_rate_per_s(0.1, 1.0, -2.0)
    with pytest.raises(ParameterError, match="held is 'upside-down'"):
        self_blocking_db(0.0, 0.0, "upside-down")
    with pytest.raises(ParameterError, match=r"azimuth is 90\.0.*radians"):
        one_blocker().loss_db([90.0], [0.0])
    with pytest.raises(ParameterError, match="width_m"):
        Person(0.0, 0.0, width_m=0.0)
