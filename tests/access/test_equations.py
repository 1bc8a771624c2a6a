import numpy as np
import pytest

from sumrate.access.equations import (
    CORRECTED,
    LITERAL,
    NO_MARGINS,
    client_power_dbm,
    estimated_clients,
    exact_failure_probability,
    expected_clients,
    failure_probability,
    least_exact_mini_slots,
    optimal_mini_slots,
    received_power_dbm,
    snr_band_db,
    target_power_dbm,
    target_snr_db,
    unrounded_mini_slots,
)
from sumrate.access.errors import AccessError
from sumrate.access.kernel import Contest, lost_shares

CLIENTS = (2, 4, 8, 16, 32, 64)
OPTIMAL = {
    4: (8, 17, 36, 75, 153, 307),
    6: (9, 19, 40, 82, 166, 334),
    8: (11, 22, 45, 91, 183, 368),
    12: (15, 28, 55, 110, 220, 440),
}
MODEL = {
    4: (0.0625, 0.0934, 0.0994, 0.0987, 0.0984, 0.1000),
    6: (0.0878, 0.0986, 0.0984, 0.0990, 0.0994, 0.0996),
    8: (0.0783, 0.0922, 0.0959, 0.0985, 0.1000, 0.0997),
    12: (0.0687, 0.0839, 0.0944, 0.0968, 0.0984, 0.0992),
}
EXACT = {
    4: (0.0143, 0.0727, 0.0904, 0.0946, 0.0964, 0.0990),
    6: (0.0119, 0.0738, 0.0881, 0.0942, 0.0971, 0.0985),
    8: (0.0061, 0.0672, 0.0853, 0.0935, 0.0975, 0.0985),
    12: (0.0022, 0.0600, 0.0838, 0.0919, 0.0960, 0.0980),
}
UNROUNDED = {
    4: (7.113, 16.614, 35.925, 74.630, 152.073, 306.972),
    6: (8.807, 18.932, 39.812, 81.745, 165.680, 333.579),
    8: (10.668, 21.625, 44.540, 90.650, 182.979, 367.685),
    12: (14.538, 27.206, 54.379, 109.252, 219.202, 439.196),
}
LEAST_EXACT = {
    4: (6, 16, 35, 74, 151, 306),
    6: (8, 18, 39, 81, 165, 333),
    8: (10, 21, 44, 90, 182, 367),
    12: (13, 26, 54, 109, 219, 439),
}
OTHER_TARGETS = {
    (0.01, 4): (13, 34, 76, 160, 329, 665),
    (0.01, 6): (13, 32, 71, 148, 302, 609),
    (0.05, 4): (9, 21, 46, 96, 196, 396),
    (0.05, 6): (10, 23, 49, 100, 203, 408),
}
CASES = [(k, i) for k in OPTIMAL for i in range(len(CLIENTS))]


@pytest.mark.parametrize(("beams", "index"), CASES)
def test_mini_slots_and_failure_probabilities_of_the_table(beams: int, index: int) -> None:
    clients, slots = CLIENTS[index], OPTIMAL[beams][index]
    assert optimal_mini_slots(beams, clients, 0.1) == slots
    assert unrounded_mini_slots(beams, clients, 0.1) == pytest.approx(
        UNROUNDED[beams][index], abs=5e-4
    )
    assert failure_probability(beams, clients, slots) == pytest.approx(
        MODEL[beams][index], abs=6e-5
    )
    assert exact_failure_probability(beams, clients, slots) == pytest.approx(
        EXACT[beams][index], abs=6e-5
    )
    assert least_exact_mini_slots(beams, clients, 0.1) == LEAST_EXACT[beams][index]


@pytest.mark.parametrize(("target", "beams"), list(OTHER_TARGETS))
def test_mini_slots_for_other_targets(target: float, beams: int) -> None:
    found = tuple(optimal_mini_slots(beams, n, target) for n in CLIENTS)
    assert found == OTHER_TARGETS[target, beams]


def test_few_good_beams_need_many_mini_slots() -> None:
    assert optimal_mini_slots(1, 16, 0.1) == 143
    least = min(range(1, 13), key=lambda k: unrounded_mini_slots(k, 16, 0.1))
    assert least == 3


@pytest.mark.parametrize(("beams", "index"), CASES)
def test_optimal_is_the_least_that_meets_the_target(beams: int, index: int) -> None:
    clients, slots = CLIENTS[index], OPTIMAL[beams][index]
    assert failure_probability(beams, clients, slots) <= 0.1
    assert failure_probability(beams, clients, slots - 1) > 0.1


@pytest.mark.parametrize(
    ("beams", "clients", "slots"), [(6, 16, 82), (4, 8, 36), (8, 4, 22), (12, 2, 15), (3, 32, 40)]
)
def test_monte_carlo_agrees_with_the_exact_formula(beams: int, clients: int, slots: int) -> None:
    contest = Contest(beams, clients, slots, False, 2.0, 1.0, 4.0)
    shares = lost_shares(np.random.default_rng(7), contest, 20_000)
    error = shares.std(ddof=1) / np.sqrt(shares.size)
    assert abs(shares.mean() - exact_failure_probability(beams, clients, slots)) <= 3 * error


def test_monte_carlo_would_notice_a_wrong_formula() -> None:
    shares = lost_shares(np.random.default_rng(7), Contest(6, 16, 82, False, 2.0, 1.0, 4.0), 20_000)
    error = shares.std(ddof=1) / np.sqrt(shares.size)
    assert abs(shares.mean() - exact_failure_probability(6, 17, 82)) > 3 * error


def test_capture_lets_more_clients_through() -> None:
    alone = lost_shares(np.random.default_rng(7), Contest(6, 16, 40, False, 2.0, 1, 10), 5000)
    captured = lost_shares(np.random.default_rng(7), Contest(6, 16, 40, True, 2.0, 1, 10), 5000)
    assert captured.mean() < 0.7 * alone.mean()


@pytest.mark.parametrize(
    ("clients", "slots", "deviation"), [(8, 40, 1.14), (16, 82, 1.55), (32, 166, 2.2)]
)
def test_estimator_is_almost_unbiased_at_the_optimal_number(
    clients: int, slots: int, deviation: float
) -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(4000):
        used = np.zeros(slots, dtype=np.bool_)
        for _ in range(clients):
            used[rng.choice(slots, 6, replace=False)] = True
        found.append(estimated_clients(int((~used).sum()), slots, 6))
    assert np.mean(found) == pytest.approx(clients, rel=0.05)
    assert np.std(found) == pytest.approx(deviation, rel=0.1)


def test_estimator_saturates_where_no_mini_slot_is_empty() -> None:
    assert estimated_clients(0, 36, 6) == pytest.approx(23.5, abs=0.1)
    assert estimated_clients(1, 36, 6) < 23
    assert estimated_clients(0, 64, 6) == pytest.approx(49.3, abs=0.1)
    assert estimated_clients(36, 36, 6) == 0.0


def test_mean_of_the_last_estimates() -> None:
    assert expected_clients([4.0]) == 4.0
    assert expected_clients([100, 1, 2, 3, 4, 5]) == 3.0
    with pytest.raises(AccessError, match="at least one estimate"):
        expected_clients([])


def power_and_snr(margins: object, client_loss: float, ap_loss: float) -> float:
    """SNR of the best beam if both arrays are weaker than nominal by so much; 4 dB was wanted."""
    noise, path_loss, ap_power, gain, omni = -74.0, 90.0, 20.0, 15.0, 5.0
    sweep = received_power_dbm(ap_power, gain + omni - ap_loss, omni, path_loss)
    power = client_power_dbm(
        target_power_dbm(4.0, noise),
        sweep,
        gain,
        gain + ap_power,
        margins,  # type: ignore[arg-type]
    )
    arrived = received_power_dbm(power, gain + omni - client_loss, omni, path_loss)
    return target_snr_db(arrived, noise)


@pytest.mark.parametrize("margins", [LITERAL, CORRECTED, NO_MARGINS])
def test_best_beam_arrives_in_the_stated_band(margins: object) -> None:
    low, high = snr_band_db(4.0, margins)  # type: ignore[arg-type]
    found = [power_and_snr(margins, c, a) for c in (0.0, 1.5, 3.0) for a in (0.0, 1.5, 3.0)]
    assert min(found) == pytest.approx(low)
    assert max(found) == pytest.approx(high)


def test_only_corrected_margins_keep_the_target() -> None:
    assert snr_band_db(4.0, LITERAL) == snr_band_db(4.0, NO_MARGINS) == (1.0, 7.0)
    assert snr_band_db(4.0, CORRECTED) == (4.0, 10.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: failure_probability(6, 4, 5), "at least the good beams"),
        (lambda: exact_failure_probability(6, 4, 5), "mini-slots must be at least 6, not 5"),
        (lambda: optimal_mini_slots(0, 4, 0.1), "good beams must be more than 0, not 0"),
        (lambda: optimal_mini_slots(6, 4, 1.5), "target failure must lie between 0 and 1"),
        (lambda: optimal_mini_slots(6, 0, 0.1), "clients must be at least 1, not 0"),
        (lambda: estimated_clients(37, 36, 6), "0 to 36, not 37"),
        (lambda: estimated_clients(3, 36, 36), "between 0 and 36 mini-slots, not 36"),
    ],
)
def test_bad_input_is_refused(call: object, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        call()  # type: ignore[operator]
