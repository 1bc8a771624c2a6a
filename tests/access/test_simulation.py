from dataclasses import replace

import numba
import numpy as np
import pytest

from sumrate.access import kernel
from sumrate.access.budget import make_pool
from sumrate.access.delay import SimulatedAccessDelay
from sumrate.access.equations import exact_failure_probability
from sumrate.access.errors import AccessError
from sumrate.access.interval import SlottedAbft, divide
from sumrate.access.kernel import DOT11AD, JPOC, World, is_decoded, realise
from sumrate.access.overhead import failure_at, least_size
from sumrate.access.pool import Pool
from sumrate.access.power import PowerControl
from sumrate.access.scenes import SCENES, Scene
from sumrate.access.simulation import (
    DOT11AD_BASELINE,
    DOT11AD_STANDARD,
    MiniSlots,
    Setting,
    confidence,
    occupied_beams,
    rules,
    run,
    simulate,
)

LOS, OFFICE = SCENES["los-aligned"], SCENES["office-aligned"]


def ideal_pool(clients: int, good: int, beams: int = 36, snr_db: float = 10.0) -> Pool:
    """Clients with so many beams of one SNR, and nothing at all on the others."""
    snr = np.full((1, 2, clients, beams), -300.0)
    snr[..., :good] = snr_db
    return Pool(
        snr, np.zeros((2, clients)), np.full(clients, beams), np.zeros(clients, np.int64),
        np.full(clients, 15.0), np.full(clients, 20.0), 35.0, -74.0, np.ones(clients),
        np.zeros(clients),
    )  # fmt: skip


@pytest.mark.parametrize(("clients", "good", "slots"), [(16, 6, 82), (8, 4, 40), (4, 8, 36)])
def test_mini_slots_fail_as_the_exact_formula(clients: int, good: int, slots: int) -> None:
    fixed = MiniSlots(adapt=False, initial=slots, minimum=slots)
    setting = Setting(
        always_compete=True, capture=False, power_control=None, mini_slots=fixed, warm_up=0
    )
    found = simulate(
        ideal_pool(clients, good), setting, clients=clients, realisations=200, seed=4
    ).failure_probability
    error = found.std(ddof=1) / np.sqrt(found.size)
    assert abs(found.mean() - exact_failure_probability(good, clients, slots)) <= 3 * error


@pytest.mark.parametrize(("clients", "failure"), [(3, 0.2344), (5, 0.4138), (9, 0.6564)])
def test_slots_fail_where_two_clients_choose_the_same(clients: int, failure: float) -> None:
    """1 - (7/8)^(N-1): PAPERS' 0.125, 0.33, 0.61 for 2, 4, 8 clients in all and so on."""
    setting = replace(DOT11AD_BASELINE, always_compete=True, capture=False, warm_up=0)
    pool = ideal_pool(clients, 36)
    found = simulate(pool, setting, clients=clients, realisations=100, seed=4).failure_probability
    assert found.mean() == pytest.approx(1 - (7 / 8) ** (clients - 1), abs=0.01)
    assert found.mean() == pytest.approx(failure, abs=0.01)


def test_no_frame_is_lost_or_sent_twice() -> None:
    """Every client that competes sends each beam once, in different mini-slots."""
    pool = ideal_pool(8, 36)
    setting = Setting(always_compete=True, power_control=None, capture=False, intervals=30)
    for outcome in run(pool, setting, clients=8, realisations=5, seed=1):
        assert (outcome.mini_slots >= 36).all()
        # Beams are all decodable, so that empty mini-slots tell how many different ones were used.
        one = outcome.mini_slots - outcome.empty
        assert (one >= 36).all()
        assert (one <= np.minimum(outcome.mini_slots, 8 * 36)).all()


def test_single_clients_need_one_mini_slot_per_beam() -> None:
    setting = Setting(always_compete=True, power_control=None, intervals=30)
    for outcome in run(ideal_pool(1, 36), setting, clients=1, realisations=3, seed=1):
        assert (outcome.mini_slots - outcome.empty == 36).all()
        assert outcome.failures.sum() == 0


@pytest.mark.parametrize(
    ("power_db", "others_db", "senders", "capture_on", "heard"),
    [
        (1.0, None, 1, True, True),
        (0.99, None, 1, True, False),
        (10.0, 6.9, 2, True, True),
        (10.0, 7.1, 2, True, False),
        (10.0, 6.9, 2, False, False),
        (10.0, 0.5, 2, False, True),
        (1.5, -20.0, 2, True, True),
        (1.0, -5.0, 2, True, False),
    ],
)
def test_decoding_and_capture(
    power_db: float, others_db: float | None, senders: int, capture_on: bool, heard: bool
) -> None:
    """At least 1 dB over noise and interference, and 3 dB over the others; or nobody decodable."""
    setting = Setting(capture=capture_on, power_control=None)
    receiver = rules(ideal_pool(2, 4), setting).receiver
    power = 10 ** (power_db / 10)
    others = 0.0 if others_db is None else 10 ** (others_db / 10)
    decodable = (power >= receiver.decode) + (others >= receiver.decode)
    assert bool(is_decoded(receiver, power, power + others, senders, decodable)) is heard


def test_time_fair_tdma_shares_the_whole_dti_equally() -> None:
    """One client competes at once and gets the rest of the interval, all others equal parts."""
    setting = replace(DOT11AD_BASELINE, intervals=1, warm_up=0)
    outcome = run(ideal_pool(1, 36), setting, clients=1, realisations=1, seed=1)[0]
    parts = divide(SlottedAbft().duration_us, clients=1)
    assert outcome.air_time_us[0] == pytest.approx(parts.dti, abs=1.0)
    several = run(ideal_pool(4, 36), replace(setting, intervals=50, warm_up=0), clients=4,
                  realisations=1, seed=2)[0]  # fmt: skip
    late = several.first.max()
    assert several.air_time_us.sum() <= 50 * parts.dti
    assert several.air_time_us.min() >= (50 - late - 1) * 0.24 * parts.dti


def test_trained_clients_compete_again_only_when_blocked() -> None:
    pool = ideal_pool(4, 6)
    never = run(pool, Setting(power_control=None), clients=4, realisations=20, seed=1)
    for outcome in never:
        served = outcome.first.max()
        assert outcome.competitors[served + 1 :].sum() == 0
    half = simulate(
        pool, Setting(power_control=None, blockage=0.5), clients=4, realisations=50, seed=1
    )
    assert half.competitors.mean() == pytest.approx(2.0, abs=0.3)
    always = simulate(
        pool, Setting(power_control=None, always_compete=True), clients=4, realisations=5, seed=1
    )
    assert always.competitors.mean() == 4.0


def test_estimator_finds_the_clients_of_an_ideal_cell() -> None:
    pool = ideal_pool(16, 6)
    setting = Setting(always_compete=True, power_control=None, mini_slots=MiniSlots(good_beams=6.0))
    found = simulate(pool, setting, clients=16, realisations=50, seed=1)
    assert found.estimated_clients.mean() == pytest.approx(16, rel=0.05)
    assert found.mini_slots.mean() == pytest.approx(82, rel=0.05)


def test_offices_occupy_more_beams_than_good_ones() -> None:
    setting = Setting(power_control=None)
    assert occupied_beams(ideal_pool(16, 6), setting) == pytest.approx(6, rel=0.05)
    pool = make_pool(OFFICE, 300)
    numbers = rules(pool, Setting(mini_slots=MiniSlots(two_k=True)))
    assert numbers.mini_slots.occupied_beams > numbers.mini_slots.good_beams


def test_standard_form_needs_three_slots_and_backs_off() -> None:
    setting = replace(DOT11AD_STANDARD, intervals=400, always_compete=True, warm_up=0)
    alone = run(ideal_pool(1, 36), setting, clients=1, realisations=1, seed=1)[0]
    assert alone.failures.sum() == 0
    # 36 frames need three slots of 16: a sweep that starts in the last two of eight is resumed.
    assert 400 * 6 / 8 * 0.95 < alone.attempts.sum() < 400 * 0.95
    crowded = replace(setting, capture=False)
    with_limit = run(ideal_pool(12, 36), crowded, clients=12, realisations=3, seed=1)
    without = run(
        ideal_pool(12, 36), replace(crowded, retry_limit=None), clients=12, realisations=3, seed=1
    )
    tried = [sum(o.attempts.sum() for o in found) for found in (with_limit, without)]
    assert tried[0] < tried[1]


def test_multiplier_of_802_11ay_lowers_the_failure_probability() -> None:
    base = replace(DOT11AD_BASELINE, always_compete=True, capture=False)
    more = replace(base, abft=SlottedAbft(8, 36, 3))
    pool = ideal_pool(8, 36)
    failures = [
        simulate(pool, s, clients=8, realisations=30, seed=1).failure_probability.mean()
        for s in (base, more)
    ]
    assert failures[1] == pytest.approx(1 - (31 / 32) ** 7, abs=0.02)
    assert failures[0] > 2 * failures[1]


def test_random_beam_order_helps_aligned_clients() -> None:
    pool = make_pool(LOS, 300)
    base = replace(DOT11AD_BASELINE, blockage=0.9)
    common = simulate(pool, base, clients=16, realisations=40, seed=1)
    shuffled = simulate(
        pool, replace(base, beam_order="random"), clients=16, realisations=40, seed=1
    )
    jpoc = simulate(pool, Setting(blockage=0.9), clients=16, realisations=40, seed=1)
    assert common.jain.mean() < 0.85
    assert shuffled.jain.mean() > 0.99
    assert jpoc.jain.mean() > 0.98


def test_ramp_lets_starved_clients_in() -> None:
    pool = make_pool(SCENES["office-random"], 500)
    plain = Setting(blockage=0.2)
    ramp = replace(plain, power_control=PowerControl(ramp_db=3.0))
    without = simulate(pool, plain, clients=16, realisations=40, seed=1)
    with_ramp = simulate(pool, ramp, clients=16, realisations=40, seed=1)
    assert with_ramp.never_served.mean() < 0.5 * without.never_served.mean()


def test_blocked_sweeps_fail_more_often() -> None:
    pool = make_pool(LOS, 300)
    clear = Setting(blockage=0.5, power_control=None)
    blocked = replace(clear, blocked_sweep=True)
    found = [
        simulate(pool, s, clients=8, realisations=20, seed=1).failure_probability.mean()
        for s in (clear, blocked)
    ]
    assert found[1] > 2 * found[0] + 0.01


def test_other_cells_disturb() -> None:
    fixed = replace(DOT11AD_BASELINE, always_compete=True)
    found = []
    for aps in (1, 3):
        pool = make_pool(Scene("cells", "cells", "free-space", 10.0, aps=aps), 100)
        found.append(simulate(pool, fixed, clients=8, realisations=20, seed=1))
    assert found[1].failure_probability.mean() > found[0].failure_probability.mean()


def test_realisations_depend_on_seed_and_index_only() -> None:
    pool, setting = make_pool(OFFICE, 200), Setting(blockage=0.5)
    few = simulate(pool, setting, clients=8, realisations=3, seed=9).jain
    many = simulate(pool, setting, clients=8, realisations=6, seed=9).jain
    assert np.array_equal(few, many[:3])
    assert not np.array_equal(few, simulate(pool, setting, clients=8, realisations=3, seed=8).jain)


def test_the_loop_grows_without_an_empty_mini_slot() -> None:
    pool = ideal_pool(60, 36)
    setting = Setting(
        always_compete=True, power_control=None, mini_slots=MiniSlots(good_beams=36.0), intervals=40
    )
    outcome = run(pool, setting, clients=60, realisations=1, seed=1)[0]
    assert outcome.empty[0] == 0
    assert np.isfinite(outcome.estimate).all()
    assert outcome.mini_slots[-1] > 4 * outcome.mini_slots[0]


def test_least_size_is_the_smallest_that_suffices() -> None:
    pool = make_pool(LOS, 300)
    setting = replace(DOT11AD_BASELINE, blockage=0.2)
    size = least_size(pool, setting, clients=8, realisations=20, seed=1)
    assert size is not None
    at = [
        failure_at(pool, setting, n, clients=8, realisations=20, seed=1) for n in (size - 1, size)
    ]
    assert at[1] <= 0.1 < at[0]


def test_waits_for_access_grow_with_the_contenders() -> None:
    rng = np.random.default_rng(1)
    alone = SimulatedAccessDelay("dot11ad", 1, 1, scene="los-aligned")
    many = SimulatedAccessDelay("dot11ad", 16, 1, scene="los-aligned")
    assert alone.sample(500, rng).max() <= 0.11
    assert many.sample(500, rng).mean() > 2 * alone.sample(500, rng).mean()
    assert many.name == "dot11ad"
    assert 0 < many.delay_s(rng) < 20.2
    again = SimulatedAccessDelay("dot11ad", 16, 1, scene="los-aligned")
    assert np.array_equal(again.quantiles(), many.quantiles())


@pytest.mark.parametrize(
    ("count", "quantile"), [(4, 3.182), (8, 2.365), (30, 2.045), (2000, 1.961)]
)
def test_confidence_interval_is_that_of_student(count: int, quantile: float) -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, count)
    mean, low, high = confidence(np.append(values, np.nan))
    assert mean == pytest.approx(values.mean())
    half = quantile * values.std(ddof=1) / np.sqrt(count)
    assert high - mean == pytest.approx(mean - low)
    assert high - mean == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Setting("wifi"), "protocol must be jpoc or dot11ad, not wifi"),  # type: ignore[arg-type]
        (lambda: Setting(blockage=1.5), "blockage probability must be 0 to 1, not 1.5"),
        (lambda: Setting(intervals=0), "beacon intervals must be 1 to 1000000, not 0"),
        (lambda: MiniSlots(initial=20), "initial mini-slots must be 36 to 4096, not 20"),
        (lambda: MiniSlots(target_failure=0.0), "target failure must lie between 0 and 1"),
        (
            lambda: rules(ideal_pool(2, 4), replace(DOT11AD_BASELINE, abft=SlottedAbft(300))),
            "fewer mini-slots or a longer interval",
        ),
        (lambda: SimulatedAccessDelay("jpoc", 0, 1), "contenders must be 1 to 500, not 0"),
    ],
)
def test_bad_input_is_refused(make: object, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        make()  # type: ignore[operator]


def test_kernel_runs_without_compilation_as_with_it() -> None:
    """The compiled loop and the same code interpreted by Python give the same numbers."""
    assert (DOT11AD, JPOC) == (0, 1)
    pool = ideal_pool(2, 4)
    numbers = rules(pool, Setting(intervals=3, warm_up=0))
    world: World = pool.world(np.arange(2), np.zeros((2, 2)), np.full(3, 2))
    compiled = realise(np.random.default_rng(1), numbers, world)
    plain = realise.py_func(np.random.default_rng(1), numbers, world)  # type: ignore[attr-defined]
    assert np.array_equal(compiled.air_time_us, plain.air_time_us)


def test_feedback_brings_the_failure_probability_towards_the_target() -> None:
    pool = make_pool(OFFICE, 400)
    plain = Setting(blockage=0.5, intervals=300, warm_up=100, mini_slots=MiniSlots(two_k=True))
    fed = replace(plain, mini_slots=MiniSlots(two_k=True, feedback=0.1))
    without, with_it = (
        simulate(pool, s, clients=16, realisations=20, seed=1).failure_probability.mean()
        for s in (plain, fed)
    )
    assert without > 0.2
    assert abs(with_it - 0.1) < 0.5 * abs(without - 0.1)


def test_the_kernel_compiles_without_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def njit(*, nogil: bool, cache: bool = False) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(nogil=nogil)

    monkeypatch.setattr(kernel, "njit", njit)

    def next_of(x: int) -> int:
        return x + 1

    assert kernel.compiled(next_of)(1) == 2
