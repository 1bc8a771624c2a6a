"""Rates by SNR and by sensitivity."""

import numpy as np
import pytest

from sumrate.phy.mcs import CONTROL, NONE, SINGLE_CARRIER, McsTable
from sumrate.phy.parameters import ParameterError
from sumrate.phy.propagation import noise_dbm


def test_the_fastest_that_works_is_chosen() -> None:
    assert SINGLE_CARRIER.rate_mbps([-2.1, -2.0, 3.9, 6.2, 50.0]).tolist() == [
        0.0,
        385.0,
        1540.0,
        2310.0,
        4620.0,
    ]
    assert SINGLE_CARRIER.rate_mbps([-69.0, -68.0, -61.0], "sensitivity").tolist() == [0, 385, 2310]
    assert int(SINGLE_CARRIER.best(-2.1)) == NONE
    assert float(SINGLE_CARRIER.rate_mbps(6.2, margin_db=2.0)) == 1540.0


def test_sensitivity_asks_for_more_than_noise_does() -> None:
    snr_of_sensitivity = SINGLE_CARRIER.thresholds("sensitivity") - noise_dbm()
    assert (snr_of_sensitivity - SINGLE_CARRIER.thresholds("snr") > 5).all()
    assert CONTROL.rate_mbps == 27.5


def test_frame_errors_are_one_percent_at_threshold() -> None:
    places = np.arange(12)
    at = SINGLE_CARRIER.thresholds()
    assert SINGLE_CARRIER.frame_error_rate(places, at) == pytest.approx(np.full(12, 0.01))
    assert SINGLE_CARRIER.frame_error_rate(places, at + 0.5) == pytest.approx(np.full(12, 0.001))
    assert SINGLE_CARRIER.frame_error_rate(places, at - 1.0) == pytest.approx(np.ones(12))
    assert float(SINGLE_CARRIER.frame_error_rate(NONE, 40.0)) == 1.0


def test_longer_frames_are_lost_more_often() -> None:
    rates = SINGLE_CARRIER.frame_error_rate(7, 6.2, np.array([100, 1458, 7912]))
    assert (np.diff(rates) > 0).all()
    assert rates[2] == pytest.approx(1 - 0.99 ** (7912 / 1458))


def test_hardware_has_a_part_of_the_rates() -> None:
    wilocity = SINGLE_CARRIER.only([1, 2, 4, 6, 7, 8, 10, 11])
    assert wilocity.rates_mbps.tolist() == [385, 770, 1155, 1540, 1925, 2310, 3080, 3850]
    assert wilocity.position(10) == 6


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"MCS is 13: allowed is 1, 2, 3"):
        SINGLE_CARRIER.only([13])
    with pytest.raises(ParameterError, match="mode is 'rssi': allowed is sensitivity, snr"):
        SINGLE_CARRIER.best(3.0, "rssi")
    with pytest.raises(ParameterError, match="place"):
        SINGLE_CARRIER.frame_error_rate(12, 3.0)
    with pytest.raises(ParameterError, match="rates of schemes"):
        McsTable(())
    with pytest.raises(ParameterError, match="frame_bytes is 0"):
        SINGLE_CARRIER.frame_error_rate(1, 3.0, 0)
