"""Path loss, oxygen, shadowing and noise against their formulas and published values."""

from collections.abc import Callable

import numpy as np
import pytest

from sumrate.phy import propagation as p
from sumrate.phy.decibels import decibels, linear, power_sum
from sumrate.phy.parameters import ParameterError


def test_free_space_is_friis() -> None:
    assert float(p.free_space_loss_db(1.0)) == pytest.approx(68.0, abs=0.02)
    assert np.diff(p.free_space_loss_db([1.0, 10.0, 100.0])) == pytest.approx([20.0, 20.0])
    assert float(p.free_space_loss_db(1.0, 2.4e9)) == pytest.approx(40.05, abs=0.01)
    assert p.log_distance_loss_db([2.0, 7.0], 2.0) == pytest.approx(p.free_space_loss_db([2, 7]))


def test_noise_of_2_ghz_is_minus_74_dbm() -> None:
    assert p.noise_dbm() == pytest.approx(-74.0, abs=0.05)
    assert p.noise_dbm(1e6, 0.0) == pytest.approx(-113.98, abs=0.01)


def test_oxygen_absorbs_15_db_per_km() -> None:
    assert float(p.oxygen_loss_db(1000.0)) == pytest.approx(15.0)
    assert float(p.oxygen_loss_db(100.0, 58.5e9)) == pytest.approx(1.36)
    assert float(p.oxygen_loss_db(1000.0, 28e9)) == 0.0
    assert float(p.oxygen_loss_db(0.0)) == 0.0


def test_indoor_loss_follows_its_table() -> None:
    los = 32.4 + 17.3 * np.log10(10) + 20 * np.log10(60)
    nlos = 17.3 + 38.3 * np.log10(10) + 24.9 * np.log10(60)
    assert p.indoor_loss_db([10.0, 10.0], [True, False]) == pytest.approx([los, nlos])
    near = p.indoor_loss_db([1.0, 0.1], True)
    assert near[0] - near[1] == pytest.approx(20.0)
    assert (
        p.indoor_loss_db(np.linspace(0.1, 150, 400), False)
        >= p.indoor_loss_db(np.linspace(0.1, 150, 400), True) - 1e-9
    ).all()


def test_line_of_sight_gets_rarer_with_distance() -> None:
    for environment in p.INDOOR_ENVIRONMENTS:
        chance = p.indoor_los_probability(np.linspace(0, 100, 500), environment)
        assert chance[0] == 1.0
        assert (np.diff(chance) <= 1e-2).all()
        assert 0 < chance[-1] < 0.5
    assert float(p.indoor_los_probability(3.0)) == pytest.approx(np.exp(-1.8 / 4.7))


def test_shadowing_has_its_deviation_and_correlation() -> None:
    generator = np.random.default_rng(5)
    shadowing = p.LogNormalShadowing(4.0, correlation_m=6.0)
    along = shadowing.along(np.full(100_000, 1.0), generator)
    assert along.shape == (100_001,)
    assert along.std() == pytest.approx(4.0, rel=0.05)
    lag = np.corrcoef(along[:-6], along[6:])[0, 1]
    assert lag == pytest.approx(np.exp(-1.0), abs=0.03)


def test_decibels_and_back() -> None:
    assert linear([0.0, 3.0103, -30.0]) == pytest.approx([1.0, 2.0, 1e-3], rel=1e-5)
    assert float(power_sum([-60.0, -60.0])) == pytest.approx(-56.99, abs=0.01)
    assert float(decibels(0.0)) == -300.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: p.free_space_loss_db(-3.0), "distance_m is -3.0: allowed is more than 0"),
        (lambda: p.free_space_loss_db(0.0), "distance_m is 0.0"),
        (lambda: p.free_space_loss_db(1.0, 60.0), "frequency_hz is 60.0: allowed is at least 1e"),
        (lambda: p.free_space_loss_db(float("nan")), "distance_m is nan: allowed is a finite"),
        (lambda: p.free_space_loss_db("far"), "distance_m is 'far': allowed is a number"),
        (lambda: p.oxygen_loss_db(-1.0), "distance_m is -1.0"),
        (lambda: p.noise_dbm(2.0), "bandwidth_hz is 2.0: allowed is at least 1000"),
        (lambda: p.noise_dbm(2e9, -1.0), "noise_figure_db is -1.0"),
        (lambda: p.indoor_loss_db(200.0, True), "distance_m is 200.0.* at most 150"),
        (lambda: p.indoor_los_probability(3.0, "outdoor"), "environment is 'outdoor'"),
        (lambda: p.LogNormalShadowing(-4.0), "deviation_db is -4.0"),
        (lambda: p.log_distance_loss_db(3.0, 20.0), "exponent is 20.0"),
    ],
)
def test_bad_input_is_refused_with_what_is_allowed(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
