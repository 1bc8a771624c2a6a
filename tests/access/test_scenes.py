from dataclasses import replace

import numpy as np
import pytest

from sumrate.access.budget import SERVED_DB, make_pool
from sumrate.access.equations import LITERAL, snr_band_db
from sumrate.access.errors import AccessError
from sumrate.access.power import PowerControl, controlled_snr_db, good_beams, starved
from sumrate.access.scenes import SCENES, SPREAD, Scene, scene_named
from sumrate.phy.arrays import PlanarArray
from sumrate.phy.codebook import codebook_36
from sumrate.phy.propagation import free_space_loss_db, oxygen_loss_db

LOS = SCENES["los-aligned"]
OFFICE = SCENES["office-aligned"]


def test_snr_in_free_space_is_that_of_friis() -> None:
    pool = make_pool(LOS, 200)
    distance = pool.distance_m
    loss = free_space_loss_db(distance) + oxygen_loss_db(distance)
    most = LOS.power_dbm + PlanarArray().peak_dbi + 5.0 - loss - pool.noise_dbm
    best = pool.own_snr_db()[0].max(axis=1)
    assert (best <= most + 1e-9).all()
    far = distance > 10
    assert (most - best)[far].min() < 4.0
    assert (most - best)[far].max() < 16.0


def test_shapes_and_served_clients() -> None:
    pool = make_pool(OFFICE, 300)
    assert pool.snr_db.shape == (1, 2, 300, 36)
    assert pool.sweep_dbm.shape == (2, 300)
    assert pool.own_snr_db()[0].max(axis=1).min() >= SERVED_DB
    assert (pool.distance_m <= np.hypot(OFFICE.radius_m, OFFICE.height_m)).all()


def test_a_person_weakens_only_the_line_of_sight() -> None:
    pool = make_pool(LOS, 300)
    clear, blocked = pool.own_snr_db()
    assert (blocked <= clear + 1e-9).all()
    assert np.median((clear - blocked).max(axis=1)) == pytest.approx(20, abs=6)


def test_pools_depend_on_the_seed_alone() -> None:
    make_pool.cache_clear()
    first = make_pool(OFFICE, 100, 5).snr_db
    make_pool.cache_clear()
    assert np.array_equal(first, make_pool(OFFICE, 100, 5).snr_db)
    assert not np.array_equal(first, make_pool(OFFICE, 100, 6).snr_db)


def test_several_cells_have_clients_of_their_own() -> None:
    pool = make_pool(Scene("two", "two cells", "free-space", 10.0, aps=2), 50)
    assert pool.snr_db.shape == (2, 2, 100, 36)
    assert np.bincount(pool.cell).tolist() == [50, 50]
    own, other = pool.snr_db[0, 0, :50].max(axis=1), pool.snr_db[1, 0, :50].max(axis=1)
    assert own.mean() > other.mean() + 5


def test_clients_have_the_beams_of_their_model() -> None:
    mixed = Scene("mixed", "two models", "free-space", devices=("36-beams", "64-beams"))
    pool = make_pool(mixed, 100)
    assert sorted(set(pool.beams.tolist())) == [36, 64]
    assert (pool.snr_db[0, 0, pool.beams == 36, 36:] == -300).all()


@pytest.mark.parametrize("gamma", [4.0, 10.0])
def test_power_control_keeps_the_stated_band(gamma: float) -> None:
    """Where both arrays are 0 to 3 dB below nominal towards the other, and power suffices."""
    pool = make_pool(LOS, 400)
    book = codebook_36()
    stated = book.array.peak_dbi
    loss = free_space_loss_db(pool.distance_m) + oxygen_loss_db(pool.distance_m)
    lost_client = stated + 5 + 20 - loss - pool.noise_dbm - pool.own_snr_db()[0].max(axis=1)
    lost_ap = stated + 5 + 20 - loss - pool.sweep_dbm[0]
    nominal = (lost_client >= 0) & (lost_client <= 3) & (lost_ap >= 0) & (lost_ap <= 3)
    assert nominal.sum() > 50
    for margins in (PowerControl().margins, LITERAL):
        control = PowerControl(gamma, margins)
        arrived = controlled_snr_db(pool, control).max(axis=1)
        free = nominal & (control.offset_db(pool)[0] < 0)
        low, high = snr_band_db(gamma, margins)
        assert low - 1e-6 <= arrived[free].min()
        assert arrived[free].max() <= high + 1e-6


def test_power_is_capped_and_equal_for_all_beams() -> None:
    pool = make_pool(OFFICE, 300)
    control = PowerControl(10.0)
    assert (control.power_dbm(pool) <= pool.power_dbm).all()
    change = controlled_snr_db(pool, control) - pool.own_snr_db()[0]
    assert np.ptp(change, axis=1).max() < 1e-9


def test_literal_margins_starve_more_clients() -> None:
    pool = make_pool(SCENES["office-random"], 500)
    assert (
        starved(pool, PowerControl(), 1.0).mean()
        < starved(pool, PowerControl(margins=LITERAL), 1.0).mean()
    )


def test_lower_targets_leave_fewer_good_beams() -> None:
    pool = make_pool(OFFICE, 500)
    means = [good_beams(pool, c, 1.0).mean() for c in (None, PowerControl(10), PowerControl(4))]
    assert means[0] > means[1] > means[2] > 1


def test_quantisation_changes_power_by_at_most_a_step() -> None:
    pool = make_pool(OFFICE, 300)
    exact = PowerControl().power_dbm(pool)
    assert np.abs(PowerControl(quantised=True).power_dbm(pool) - exact).max() <= 1.0
    stepped = PowerControl(step_db=3.0).power_dbm(pool)
    assert (stepped - exact).min() >= 0
    assert (stepped - exact).max() < 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scene_named("moon"), "scene must be one of .*, not moon"),
        (lambda: Scene("s", "s", "office", -3.0), "radius must be 1 to 70 m, not -3"),
        (lambda: Scene("s", "s", "office", turned=60.0), "turned must be 0 to 3.14159 radians"),
        (lambda: Scene("s", "s", "office", devices=("toaster",)), "device must be one of"),
        (lambda: Scene("s", "s", "conference-room", aps=2), "has 1 AP"),
        (lambda: make_pool(LOS, 0), "clients of a pool must be 1 to 1000000, not 0"),
        (lambda: PowerControl(99.0), "target SNR must be -20 to 60 dB, not 99"),
        (lambda: make_pool(LOS, 20).draw(21, np.random.default_rng(1)), "at most the pool's 20"),
    ],
)
def test_bad_input_is_refused(make: object, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        make()  # type: ignore[operator]


def test_every_scene_can_be_made() -> None:
    assert np.pi > SPREAD
    for scene in SCENES.values():
        assert make_pool(scene, 20).size == 20


def test_a_scene_out_of_reach_is_refused() -> None:
    silent = replace(scene_named("los-aligned"), name="silent", power_dbm=-30.0)
    with pytest.raises(AccessError, match=r"scene silent must be in reach .* than -30 dBm"):
        make_pool(silent, 64)
