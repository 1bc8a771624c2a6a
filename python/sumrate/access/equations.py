"""Equations 3.1 to 3.9 of the thesis, and the exact failure probability of JPOC's A-BFT.

Powers are in dBm, gains and ratios in dB. Symbols: `good_beams` K, `clients` N, `mini_slots` M,
`target_failure` P0, `target_snr_db` gamma.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from sumrate.access.errors import AccessError, share, whole

MINIMUM_MINI_SLOTS = 36
"""Thesis, Sec. 3.2.2: M never falls below this."""
INITIAL_MINI_SLOTS = 64
"""Thesis, Sec. 3.2.2: M of an AP that was just switched on."""
AVERAGING_ROUNDS = 5
"""T of (3.9)."""


class Margins(NamedTuple):
    """Margins that (3.5) subtracts from array gains, dB: a beam is 3 dB weaker at its edge."""

    client_db: float
    ap_db: float


LITERAL = Margins(3.0, 3.0)
"""As in the thesis: the two cancel, and the best beam arrives at gamma -3 to +3 dB."""
CORRECTED = Margins(3.0, 0.0)
"""For the client's gain only: the best beam arrives at gamma to gamma + 6 dB."""
NO_MARGINS = Margins(0.0, 0.0)


def target_snr_db(received_dbm: float, noise_dbm: float) -> float:
    """(3.1): gamma, the AP's target SNR for a client's best beam."""
    return received_dbm - noise_dbm


def target_power_dbm(snr_db: float, noise_dbm: float) -> float:
    """(3.2): the AP's target power for a client's best beam."""
    return snr_db + noise_dbm


def received_power_dbm(
    transmit_dbm: float, transmit_gain_db: float, receive_gain_db: float, path_loss_db: float
) -> float:
    """(3.3) at the AP and (3.4) at the client: power, both gains, path loss."""
    return transmit_dbm + transmit_gain_db + receive_gain_db - path_loss_db


def client_power_dbm(
    target_dbm: float,
    sweep_dbm: float,
    client_array_gain_db: float,
    ap_term_db: float,
    margins: Margins = CORRECTED,
) -> float:
    """(3.5): the power of a client's SSW frames, before the cap at its maximum.

    Args:
        target_dbm: RxP_max^AP, from the AP's sweep.
        sweep_dbm: RxP_max^CLT, the strongest beacon at the client.
        client_array_gain_db: G_T^CLT(i) - G_R^CLT, known to the client.
        ap_term_db: G_T^AP(j) + P_T^AP - G_R^AP, from the AP's sweep.
        margins: subtracted from the two gains.

    """
    client_term = -(client_array_gain_db - margins.client_db)
    return target_dbm - sweep_dbm + client_term + (ap_term_db - margins.ap_db)


def snr_band_db(target_snr: float, margins: Margins = CORRECTED) -> tuple[float, float]:
    """Least and largest SNR of the best beam, with both true gains 0 to 3 dB below nominal."""
    shift = margins.client_db - margins.ap_db
    return target_snr + shift - 3.0, target_snr + shift + 3.0


def failure_probability(good_beams: float, clients: float, mini_slots: float) -> float:
    """(3.6): the probability that none of a client's good beams is alone in its mini-slot.

    An upper bound, because it treats the client's own mini-slots as independent.

    Raises:
        AccessError: fewer than one beam or client, or fewer mini-slots than good beams.

    """
    _check(good_beams, clients)
    if mini_slots < good_beams:
        raise AccessError(
            f"mini-slots must be at least the good beams ({good_beams:g}), not {mini_slots:g}"
        )
    occupied = good_beams / mini_slots
    return float((1.0 - (1.0 - occupied) ** (clients - 1.0)) ** good_beams)


def exact_failure_probability(good_beams: int, clients: int, mini_slots: int) -> float:
    """The failure probability without approximation, in exact rational arithmetic.

    Every client has `good_beams` good beams, without capture, and other beams cause no collision:
    sum over j of (-1)^j C(K, j) [C(M-j, K) / C(M, K)]^(N-1).
    """
    beams = whole("good beams", good_beams, 1)
    others = whole("clients", clients, 1) - 1
    slots = whole("mini-slots", mini_slots, beams)
    every = math.comb(slots, beams)
    total = Fraction(0)
    for j in range(beams + 1):
        free = Fraction(math.comb(slots - j, beams), every)
        total += (-1) ** j * math.comb(beams, j) * free**others
    return float(total)


def optimal_mini_slots(
    good_beams: float, clients: float, target_failure: float, occupied_beams: float | None = None
) -> int:
    """(3.7): the least M for which (3.6) meets the target. No floor is applied.

    Args:
        good_beams: K, the beams of a client that the AP can decode.
        clients: N; one client needs only a mini-slot for each beam.
        target_failure: P0.
        occupied_beams: in the two-K form, the mini-slots that one client occupies; it replaces K
            in p = K/M, and the exponent stays `good_beams`.

    Raises:
        AccessError: a parameter is out of range.

    """
    _check(good_beams, clients)
    occupied = good_beams if occupied_beams is None else occupied_beams
    if clients <= 1.0:
        return math.ceil(occupied)
    return math.ceil(_mini_slots(good_beams, clients, target_failure, occupied))


def _mini_slots(good_beams: float, clients: float, target_failure: float, occupied: float) -> float:
    """(3.7) before it is rounded up."""
    free = 1.0 - share("target failure", target_failure) ** (1.0 / good_beams)
    return float(occupied / (1.0 - free ** (1.0 / (clients - 1.0))))


def unrounded_mini_slots(good_beams: float, clients: float, target_failure: float) -> float:
    """(3.7) before it is rounded up, for more than one client."""
    _check(good_beams, clients)
    return _mini_slots(good_beams, clients, target_failure, good_beams)


def least_exact_mini_slots(good_beams: int, clients: int, target_failure: float) -> int:
    """The least M for which the exact failure probability meets the target."""
    share("target failure", target_failure)
    high = max(optimal_mini_slots(good_beams, clients, target_failure), good_beams)
    low = good_beams - 1
    while high - low > 1:
        middle = (low + high) // 2
        if exact_failure_probability(good_beams, clients, middle) <= target_failure:
            high = middle
        else:
            low = middle
    return high


def estimated_clients(empty: float, mini_slots: int, occupied_beams: float) -> float:
    """(3.8): the number of competing clients, from the number of empty mini-slots.

    The logarithm has no value without an empty mini-slot. The estimate saturates there at half an
    empty mini-slot.

    Raises:
        AccessError: more empty mini-slots than mini-slots, or K not between 0 and M.

    """
    if not 0 <= empty <= mini_slots:
        raise AccessError(f"empty mini-slots must be 0 to {mini_slots}, not {empty:g}")
    if not 0 < occupied_beams < mini_slots:
        raise AccessError(
            f"occupied beams must lie between 0 and {mini_slots} mini-slots, not {occupied_beams:g}"
        )
    return math.log(max(empty, 0.5) / mini_slots) / math.log(1.0 - occupied_beams / mini_slots)


def expected_clients(estimates: Sequence[float], rounds: int = AVERAGING_ROUNDS) -> float:
    """(3.9): the mean of the last `rounds` estimates, or of all, if fewer exist.

    Raises:
        AccessError: there is no estimate.

    """
    whole("averaging rounds", rounds, 1)
    if not estimates:
        raise AccessError("the expected number of clients needs at least one estimate, not 0")
    last = estimates[-rounds:]
    return sum(last) / len(last)


def _check(good_beams: float, clients: float) -> None:
    if good_beams <= 0:
        raise AccessError(f"good beams must be more than 0, not {good_beams:g}")
    if clients < 1:
        raise AccessError(f"clients must be at least 1, not {clients:g}")
