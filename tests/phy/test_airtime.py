"""Goodput from airtime, against the calibration points of the 802.11ad measurements."""

import numpy as np
import pytest

from sumrate.phy.airtime import EXCHANGE_US, Sender, tcp_limit_mbps
from sumrate.phy.hardware import RADIOS, beam_width, radio
from sumrate.phy.parameters import ParameterError


def test_an_exchange_is_its_parts() -> None:
    sender = Sender(mtu_bytes=1500, aggregate_bytes=1538)
    assert sender.packets_per_exchange == 1
    expected = EXCHANGE_US + 1538 * 8 / 2310.0
    assert float(sender.exchange_s(2310.0)) * 1e6 == pytest.approx(expected)
    assert float(sender.goodput_mbps(2310.0)) == pytest.approx(1472 * 8 / expected)
    assert float(sender.goodput_mbps(0.0)) == 0.0


def test_large_packets_reach_what_was_measured() -> None:
    """TCP at MCS 9 and MTU 7912: 1.316 Gbit/s; each claim of figure 3 but the host's limit."""
    made = radio("panasonic")
    udp = made.sender.goodput_mbps(made.table.rates_mbps, "udp")
    tcp = made.sender.goodput_mbps(made.table.rates_mbps, "tcp")
    assert tcp[8] == pytest.approx(1316, rel=0.02)
    assert (np.diff(udp) > 0).all()
    assert (np.diff(tcp) > 0).all()
    assert (udp > 1000).tolist() == [False] * 5 + [True] * 4
    assert (tcp > 1000).tolist() == [False] * 6 + [True] * 3


def test_small_packets_meet_the_host() -> None:
    made = radio("panasonic")
    small = Sender(mtu_bytes=1500, aggregate_bytes=32_768, host_packets_per_s=85_000)
    udp = small.goodput_mbps(made.table.rates_mbps, "udp")
    tcp = small.goodput_mbps(made.table.rates_mbps, "tcp")
    assert udp[7:] == pytest.approx([1000, 1000], rel=0.02)
    assert (tcp < udp).all()
    assert tcp.max() < 700


def test_ethernet_caps_the_docked_laptop() -> None:
    made = radio("wil6210")
    tcp = made.sender.goodput_mbps(made.table.rates_mbps, "tcp")
    assert tcp.max() == pytest.approx(941, abs=3)
    assert tcp[0] < 400


def test_errors_cost_goodput_before_packets() -> None:
    sender = Sender()
    clean, half = sender.goodput_mbps(2310.0, "udp", [0.0, 0.5])
    assert half == pytest.approx(clean / 2)
    assert float(sender.residual_loss(0.5)) == pytest.approx(0.5**5)
    assert float(sender.retry_delay_ms(2310.0, 0.0)) == 0.0
    assert float(sender.ip_rate_mbps(2310.0)) == pytest.approx(
        float(sender.goodput_mbps(2310.0, "tcp")) * 1500 / 1448
    )


def test_loss_limits_a_tcp_as_the_square_root() -> None:
    assert float(tcp_limit_mbps(0.05, 2.13e-3, 1460)) == pytest.approx(30.0, rel=0.01)
    assert np.isinf(float(tcp_limit_mbps(0.0, 0.01)))


@pytest.mark.parametrize("name", RADIOS)
def test_radios_are_whole(name: str) -> None:
    made = radio(name)
    assert made.name == name
    assert made.listening.beams == 1
    assert -76 < made.noise_dbm < -58
    assert made.sender.packets_per_exchange >= 1


def test_panasonics_beam_is_50_degrees_wide() -> None:
    assert np.rad2deg(beam_width(radio("panasonic").beams, 1)) == pytest.approx(50, abs=6)


def test_bad_senders_are_refused() -> None:
    with pytest.raises(ParameterError, match="mtu_bytes is 9000: allowed is a whole number from"):
        Sender(mtu_bytes=9000)
    with pytest.raises(ParameterError, match="transport is 'quic': allowed is tcp, udp"):
        Sender().goodput_mbps(385.0, "quic")
    with pytest.raises(ParameterError, match="frame_error_rate"):
        Sender().goodput_mbps(385.0, "udp", 1.5)
    with pytest.raises(ParameterError, match="radio is 'marconi': allowed is panasonic"):
        radio("marconi")
    with pytest.raises(ParameterError, match="wire_mbps is 0"):
        Sender(wire_mbps=0.0)
