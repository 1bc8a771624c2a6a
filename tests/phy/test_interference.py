"""SINR, capture and shared air."""

from math import erf

import numpy as np
import pytest

from sumrate.phy.interference import SharedAir, captured, channel_leakage_db, sinr_db
from sumrate.phy.parameters import ParameterError


def test_sinr_adds_interference_and_noise() -> None:
    assert float(sinr_db(-60.0, -300.0, -74.0)) == pytest.approx(14.0)
    assert float(sinr_db(-60.0, -74.0, -74.0)) == pytest.approx(14.0 - 3.0103, abs=1e-3)
    assert sinr_db(np.zeros((2, 1)), np.zeros(3), -74.0).shape == (2, 3)


def test_the_stronger_is_captured() -> None:
    powers = np.array([[-60.0, -65.0], [-60.0, -62.0], [-74.0, -300.0], [-72.9, -300.0]])
    assert captured(powers, -74.0).tolist() == [0, -1, -1, 0]
    assert captured(powers, -74.0, capture=False).tolist() == [-1, -1, -1, 0]
    assert captured(powers, -74.0, margin_db=0.0).tolist() == [0, 0, -1, 0]
    assert captured([-60.0, -64.5, -64.5], -74.0).tolist() == -1, "others add up"


def test_adjacent_channel_gets_a_hundredth() -> None:
    assert channel_leakage_db(0) == 0.0
    assert -24 < channel_leakage_db(1) < -18
    assert channel_leakage_db(2) < -28


def test_shared_air_costs_throughput_before_packets() -> None:
    air = SharedAir(10.0, deviation_db=3.0, activity=0.8, retries=3)
    needed = np.array([0.0, 10.0, 40.0])
    assert air.failure(needed) == pytest.approx(
        [0.5 * (1 + erf((n - 10) / 3 / np.sqrt(2))) for n in needed], abs=1e-6
    )
    assert air.throughput_share(needed) == pytest.approx([1.0, 0.6, 0.2], abs=1e-3)
    assert air.loss_share(needed) == pytest.approx([0.0, 0.8 / 16, 0.8], abs=1e-3)
    polite = SharedAir(10.0, activity=0.8, deferred=1.0)
    assert polite.throughput_share(needed) == pytest.approx([0.2] * 3)
    assert polite.loss_share(needed) == pytest.approx([0.0] * 3)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"activity is 1\.5"):
        SharedAir(10.0, activity=1.5)
    with pytest.raises(ParameterError, match="channels_apart is 7"):
        channel_leakage_db(7)
    with pytest.raises(ParameterError, match="signal_dbm is nan"):
        sinr_db(np.nan, 0.0, 0.0)
