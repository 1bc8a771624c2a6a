"""Goodput of a PHY rate after aggregation, waiting, acknowledgements and limits of the host.

Times are IEEE 802.11ad's (2016, tables 20-32 and 20.12); sizes of aggregates and the host's limits
are the hardware's (hardware.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.parameters import (
    Floats,
    ParameterError,
    one_of,
    positive,
    whole,
    within,
)

SIFS_US = 3.0
SLOT_US = 5.0
PREAMBLE_US = 2.47
"""Short training, channel estimation and header of a single-carrier frame."""
MEAN_BACKOFF_SLOTS = 7.5
"""Mean backoff of a contention window of 15."""
BLOCK_ACK_US = PREAMBLE_US + 32 * 8 / 385.0
EXCHANGE_US = (
    SIFS_US + 2 * SLOT_US + MEAN_BACKOFF_SLOTS * SLOT_US + PREAMBLE_US + SIFS_US + BLOCK_ACK_US
)
"""Overhead of an exchange: DIFS, backoff, preamble, SIFS, BlockAck."""
MAC_BYTES = 38
"""Header, LLC, check sequence and delimiter of each packet in an aggregate."""
UDP_HEADERS = 28
TCP_HEADERS = 52
"""IP, TCP and its timestamps."""
TCP_ACK_BYTES = 52
ETHERNET_BYTES = 38
"""Header, check sequence, preamble and gap."""
TRANSPORTS = ("udp", "tcp")


@dataclass(frozen=True)
class Sender:
    """A device and its host as a sender of packets.

    Raises:
        ParameterError: a size or limit is not positive, or the MTU exceeds 802.11ad's.

    """

    mtu_bytes: int = 1500
    """Largest IP packet."""
    aggregate_bytes: int = 32768
    """Longest aggregate of one exchange."""
    exchange_us: float = EXCHANGE_US
    ack_every: float = 2.0
    """Exchanges of data for each exchange with TCP's acknowledgements."""
    segments_per_ack: float = 2.0
    host_packets_per_s: float = np.inf
    """Packet rate of the host, acknowledgements included."""
    wire_mbps: float = np.inf
    """Ethernet behind the access point, Mbit/s."""
    retries: int = 4
    """Most retransmissions of a packet by the MAC."""

    def __post_init__(self) -> None:
        """Checks the parameters."""
        whole("mtu_bytes", self.mtu_bytes, 576, 7912)
        whole("aggregate_bytes", self.aggregate_bytes, self.mtu_bytes + MAC_BYTES, 262_143)
        positive("exchange_us", self.exchange_us)
        positive("ack_every", self.ack_every)
        positive("segments_per_ack", self.segments_per_ack)
        whole("retries", self.retries, 0, 100)
        for name in ("host_packets_per_s", "wire_mbps"):
            if not getattr(self, name) > 0:
                raise ParameterError(name, getattr(self, name), "more than 0")

    @property
    def packets_per_exchange(self) -> int:
        """Full packets in one aggregate."""
        return self.aggregate_bytes // (self.mtu_bytes + MAC_BYTES)

    def payload_bytes(self, transport: str) -> int:
        """Application bytes of a full packet."""
        one_of("transport", transport, TRANSPORTS)
        return self.mtu_bytes - (UDP_HEADERS if transport == "udp" else TCP_HEADERS)

    def exchange_s(self, rate_mbps: ArrayLike, transport: str = "udp") -> Floats:
        """Time of a full exchange with its share of the acknowledgements, seconds.

        Args:
            rate_mbps: PHY rate, any shape; 0 gives infinity.
            transport: `udp` or `tcp`.

        """
        rate = within("rate_mbps", rate_mbps, 0.0)
        packets = self.packets_per_exchange
        sent_bytes = packets * (self.mtu_bytes + MAC_BYTES)
        fixed_us = self.exchange_us
        if one_of("transport", transport, TRANSPORTS) == "tcp":
            sent_bytes += round(packets / self.segments_per_ack * (TCP_ACK_BYTES + MAC_BYTES))
            fixed_us += self.exchange_us / self.ack_every
        with np.errstate(divide="ignore"):
            return np.asarray((fixed_us + sent_bytes * 8 / rate) * 1e-6)

    def goodput_mbps(
        self, rate_mbps: ArrayLike, transport: str = "udp", frame_error_rate: ArrayLike = 0.0
    ) -> Floats:
        """Application bytes per second in Mbit/s; shapes broadcast.

        Later exchanges retransmit lost packets, so a share of frame errors costs that share.
        `residual_loss` and `tcp_limit_mbps` give the packets lost for good and TCP's reaction.

        Args:
            rate_mbps: PHY rate.
            transport: `udp` or `tcp`.
            frame_error_rate: share of packets lost in each transmission.

        """
        errors = within("frame_error_rate", frame_error_rate, 0.0, 1.0)
        bits = self.payload_bytes(transport) * 8
        air = self.packets_per_exchange * bits / self.exchange_s(rate_mbps, transport) / 1e6
        handled = 1.0 + (1.0 / self.segments_per_ack if transport == "tcp" else 0.0)
        host = self.host_packets_per_s / handled * bits / 1e6
        wire = self.wire_mbps * bits / 8 / (self.mtu_bytes + ETHERNET_BYTES)
        return np.asarray(np.minimum(air * (1 - errors), min(host, wire)))

    def ip_rate_mbps(self, rate_mbps: ArrayLike, frame_error_rate: ArrayLike = 0.0) -> Floats:
        """Rate of IP bytes of an emulated link that allows this TCP goodput; shapes broadcast."""
        goodput = self.goodput_mbps(rate_mbps, "tcp", frame_error_rate)
        return np.asarray(goodput * self.mtu_bytes / self.payload_bytes("tcp"))

    def residual_loss(self, frame_error_rate: ArrayLike) -> Floats:
        """Share of packets lost after all retries, with independent errors; shape of the errors."""
        errors = within("frame_error_rate", frame_error_rate, 0.0, 1.0)
        return np.asarray(errors ** (self.retries + 1))

    def retry_delay_ms(self, rate_mbps: ArrayLike, frame_error_rate: ArrayLike) -> Floats:
        """Mean delay of a packet by retries, ms; shapes broadcast."""
        errors = within("frame_error_rate", frame_error_rate, 0.0, 1.0)
        again = sum(errors**attempt for attempt in range(1, self.retries + 1))
        one = np.nan_to_num(self.exchange_s(rate_mbps), posinf=0.0)
        return np.asarray(again * one * 1e3)


def tcp_limit_mbps(
    loss: ArrayLike, rtt_s: float, segment_bytes: int = 1448, segments_per_ack: float = 1.0
) -> Floats:
    """TCP rate under loss, segment / RTT x sqrt(3 / (2 b p)), Mbit/s; infinite without loss.

    Args:
        loss: share of segments lost, any shape.
        rtt_s: round trip, seconds.
        segment_bytes: payload of a segment.
        segments_per_ack: b; 1 with appropriate byte counting.

    """
    lost = within("loss", loss, 0.0, 1.0)
    rtt = float(positive("rtt_s", rtt_s))
    with np.errstate(divide="ignore", over="ignore"):
        windows = np.sqrt(3 / (2 * float(positive("segments_per_ack", segments_per_ack)) * lost))
    return np.asarray(segment_bytes * 8 / rtt * windows / 1e6)
