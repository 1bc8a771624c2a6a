"""The conference room and the indoor office have the statistics that they were given."""

import numpy as np
import pytest

from sumrate.phy.channel.conference_room import ConferenceRoom, human_attenuation_db
from sumrate.phy.channel.indoor import RAY_OFFSETS, IndoorOffice
from sumrate.phy.parameters import ParameterError
from sumrate.phy.propagation import SPEED_OF_LIGHT, indoor_loss_db, oxygen_loss_db


def test_conference_room_has_its_clusters() -> None:
    rays = ConferenceRoom(rays_per_side=0).draw(4000, np.random.default_rng(1))
    assert rays.gain_db.shape == (4000, 13)
    assert np.bincount(rays.order[0]).tolist() == [1, 4, 8]
    way = rays.delay_s * SPEED_OF_LIGHT
    friis = -20 * np.log10(4 * np.pi * way / 5e-3)
    assert rays.gain_db[:, 0] == pytest.approx(friis[:, 0])
    lost = rays.gain_db - friis
    for order, mean in ((1, -10.3), (2, -16.0)):
        values = lost[rays.order == order]
        assert np.median(values) == pytest.approx(mean, abs=0.6)
        assert values.max() <= -2.0 + 1e-9


def test_a_person_costs_what_was_measured() -> None:
    loss = human_attenuation_db(200_000, np.random.default_rng(2))
    assert loss.mean() == pytest.approx(0.83 * 18.2 + 0.17 * 47.2, abs=0.3)
    assert loss.min() >= 0
    blocked = ConferenceRoom(los_blocked=1.0, rays_per_side=0).draw(2000, np.random.default_rng(3))
    free = ConferenceRoom(rays_per_side=0).draw(2000, np.random.default_rng(3))
    assert (free.gain_db[:, 0] - blocked.gain_db[:, 0]).mean() == pytest.approx(23.2, abs=1.5)


def test_rays_of_a_cluster_stay_near_it() -> None:
    rays = ConferenceRoom(rays_per_side=4).draw(300, np.random.default_rng(4))
    assert rays.gain_db.shape == (300, 13 * 9)
    around = rays.gain_db[:, 13:].reshape(300, 2, 13, 4)
    assert (around[:, :, 0] < -250).all(), "the line of sight has no rays around it"
    centre = rays.gain_db[:, 1:13, np.newaxis]
    before, after = (np.mean(10 ** ((around[:, side, 1:] - centre) / 10)) for side in (0, 1))
    assert after * 4 == pytest.approx(10**-1.42, rel=0.15)
    assert before < 0.1 / 4 * 1.1
    first = rays.delay_s[:, :1]
    assert (rays.delay_s[rays.gain_db > -250].min() > 0) and (
        (rays.delay_s >= first - 1e-12) | (rays.gain_db < -250)
    ).all()


def test_office_gain_is_path_loss_and_shadowing() -> None:
    generator = np.random.default_rng(5)
    ends = np.array([[10.0, 0.0, 1.0]] * 600)
    for sight, deviation in ((True, 3.0), (False, 8.03)):
        links = IndoorOffice(line_of_sight=sight).rays([0.0, 0.0, 1.0], ends, generator)
        total = np.array([link.total_gain_db() for link in links])
        expected = -float(indoor_loss_db(10.0, sight)) - float(oxygen_loss_db(10.0))
        assert total.mean() == pytest.approx(expected, abs=4 * deviation / np.sqrt(600))
        assert total.std() == pytest.approx(deviation, rel=0.12)
        assert {link.rays for link in links} == {1 + 15 * 20 if sight else 19 * 20}


def test_office_delay_spread_and_k_factor_follow_tables() -> None:
    generator = np.random.default_rng(6)
    office = IndoorOffice(line_of_sight=False, shadowing=False)
    links = office.rays([0.0, 0.0, 2.0], np.array([[12.0, 3.0, 1.0]] * 500), generator)
    spreads = np.log10([float(link.delay_spread_s()) for link in links])
    log_f = np.log10(61.0)
    assert np.median(spreads) == pytest.approx(-0.28 * log_f - 7.173, abs=0.15)
    sight = IndoorOffice(line_of_sight=True, shadowing=False)
    k = []
    for link in sight.rays([0.0, 0.0, 2.0], np.array([[12.0, 3.0, 1.0]] * 500), generator):
        power = 10 ** (link.gain_db / 10)
        k.append(10 * np.log10(power[0] / power[1:].sum()))
        assert link.departure_azimuth[0] == pytest.approx(np.arctan2(3.0, 12.0))
    assert np.mean(k) == pytest.approx(7.0, abs=0.6)
    assert np.std(k) == pytest.approx(4.0, abs=0.5)


def test_ray_offsets_have_unit_spread() -> None:
    assert RAY_OFFSETS.std() == pytest.approx(1.0, abs=0.01)
    assert RAY_OFFSETS.sum() == pytest.approx(0.0)


def test_office_draws_sight_by_distance() -> None:
    generator = np.random.default_rng(7)
    office = IndoorOffice("mixed")
    seen = office.sight(np.full(20_000, 5.0), generator).mean()
    assert seen == pytest.approx(np.exp(-3.8 / 4.7), abs=0.015)


def test_bad_input_is_refused() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="environment is 'street': allowed is mixed, open"):
        IndoorOffice("street")
    with pytest.raises(ParameterError, match=r"los_blocked is 1\.5"):
        ConferenceRoom(los_blocked=1.5)
    with pytest.raises(ParameterError, match=r"stations' coordinate 0 is 4\.0"):
        ConferenceRoom().rays(np.array([[4.0, 1.0, 1.0]]), generator)
    with pytest.raises(ParameterError, match="distance_m is 200"):
        IndoorOffice().rays([0.0, 0.0, 1.0], [[200.0, 0.0, 1.0]], generator)
    with pytest.raises(ParameterError, match="realisations is 0"):
        ConferenceRoom().draw(0, generator)
