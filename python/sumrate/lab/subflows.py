"""What a receiver's capture says about each subflow: goodput in every 100 ms, and its ACKs."""

import ipaddress
import statistics
import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sumrate.lab.capture import NANOSECONDS, PCAP_HEAD, PCAP_PACKET, RAW_IP

STEP_S = 0.1
FULL_RATE = 0.95
"""A subflow has reached its rate when 300 ms carry this share of its 95th percentile."""
FULL_SAMPLES = 3
TCP = 6
SYN, FIN, RST, ACK = 2, 1, 4, 16
SACK = 5
END, NOTHING = 0, 1
"""Options of one byte."""


class CaptureError(ValueError):
    """A file is no capture that can be read here; the message says why."""


@dataclass(frozen=True)
class Segment:
    """One TCP segment, or several that the kernel holds as one."""

    at_ns: int
    source: str
    destination: str
    ports: tuple[int, int]
    """Of source and destination."""
    sequence: int
    acknowledgement: int
    flags: int
    payload: int
    """Bytes."""
    selective: bool
    """It has blocks of a selective acknowledgement: something is missing."""


def read(path: Path) -> Iterator[Segment]:
    """Every TCP segment of a capture over IPv4, in its order.

    Raises CaptureError: the file is no pcap of IP packets with nanoseconds, or is cut off.
    """
    data = path.read_bytes()
    if len(data) < PCAP_HEAD.size:
        raise CaptureError(f"{path.name}: {len(data)} bytes are no capture")
    magic, *_, link_type = PCAP_HEAD.unpack_from(data)
    if (magic, link_type) != (NANOSECONDS, RAW_IP):
        raise CaptureError(f"{path.name}: magic {magic:#x} and link type {link_type} are unknown")
    at = PCAP_HEAD.size
    while at < len(data):
        if at + PCAP_PACKET.size > len(data):
            raise CaptureError(f"{path.name}: a packet's head is cut off at byte {at}")
        seconds, ns, kept, length = PCAP_PACKET.unpack_from(data, at)
        at += PCAP_PACKET.size
        if at + kept > len(data):
            raise CaptureError(f"{path.name}: a packet is cut off at byte {at}")
        found = _segment(seconds * 10**9 + ns, length, data[at : at + kept])
        at += kept
        if found is not None:
            yield found


def _segment(at_ns: int, length: int, packet: bytes) -> Segment | None:
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != TCP:
        return None
    ip = (packet[0] & 15) * 4
    if len(packet) < ip + 20:
        return None
    source_port, port, sequence, acknowledgement, offset, flags = struct.unpack_from(
        ">HHIIBB", packet, ip
    )
    head = (offset >> 4) * 4
    return Segment(
        at_ns,
        str(ipaddress.IPv4Address(packet[12:16])),
        str(ipaddress.IPv4Address(packet[16:20])),
        (source_port, port),
        sequence,
        acknowledgement,
        flags,
        max(0, length - ip - head),
        SACK in _options(packet[ip + 20 : ip + head]),
    )


def _options(data: bytes) -> Iterator[int]:
    """Kinds of the TCP options; those that were not kept are missing."""
    at = 0
    while at < len(data) and data[at] != END:
        yield data[at]
        if data[at] == NOTHING:
            at += 1
        elif at + 1 < len(data) and data[at + 1] >= 2:
            at += data[at + 1]
        else:
            return


@dataclass
class Subflow:
    """One connection's data towards the receiver, and the ACKs that went back."""

    first_ns: int
    bins: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Payload bytes by 100 ms since `first_ns`."""
    payload: int = 0
    repeated: int = 0
    """Payload bytes below what had come before: sent again, or late."""
    acks: int = 0
    selective_acks: int = 0
    _next: int | None = None

    def data(self, segment: Segment) -> None:
        """A segment with payload arrived."""
        index = int((segment.at_ns - self.first_ns) / 1e9 / STEP_S)
        self.bins[index] += segment.payload
        self.payload += segment.payload
        end = (segment.sequence + segment.payload) % 2**32
        if self._next is not None and _before(segment.sequence, self._next):
            self.repeated += segment.payload
        if self._next is None or _before(self._next, end):
            self._next = end

    def ack(self, segment: Segment) -> None:
        """An acknowledgement without payload left."""
        self.acks += 1
        self.selective_acks += segment.selective

    def series(self, until_s: float) -> list[tuple[float, float]]:
        """Middle of each 100 ms in seconds, and its goodput in Mbit/s, with the silent ones."""
        count = int(until_s / STEP_S + 1e-9)
        return [
            (round((i + 0.5) * STEP_S, 3), self.bins.get(i, 0) * 8e-6 / STEP_S)
            for i in range(count)
        ]


def _before(first: int, second: int) -> bool:
    """Whether a sequence number comes before another, modulo 2^32."""
    return (second - first) % 2**32 in range(1, 2**31)


def subflows(
    segments: Iterable[Segment], addresses: Sequence[str], without: Collection[int] = ()
) -> dict[str, Subflow]:
    """The busiest connection of each of the receiver's addresses that got data.

    Times count from the first data of the busiest of all: what a program's control connection
    exchanged before does not count.

    Args:
        segments: a capture.
        addresses: the receiver's.
        without: ports of senders that are not meant, such as of TCPs beside.

    """
    kept = [s for s in segments if not s.flags & (SYN | FIN | RST)]
    data = _data(kept, addresses, without)
    totals = _totals(data)
    if not totals:
        return {}
    busiest: dict[str, Connection] = {}
    for connection in sorted(totals, key=lambda c: totals[c]):
        busiest[connection[0]] = connection
    start = _start_ns(data)
    found = {connection: Subflow(start) for connection in busiest.values()}
    for segment in kept:
        if segment.at_ns < start:
            continue
        if segment.payload and (flow := found.get(_connection(segment))):
            flow.data(segment)
        elif segment.flags & ACK and not segment.payload:
            back = (segment.source, segment.destination, *segment.ports[::-1])
            if flow := found.get(back):
                flow.ack(segment)
    return {address: found[connection] for address, connection in busiest.items()}


Connection = tuple[str, str, int, int]
"""Addresses of receiver and sender, ports of sender and receiver."""


def carried(
    segments: Iterable[Segment],
    addresses: Sequence[str],
    without: Collection[int] = (),
    *,
    warmup_s: float,
    seconds: float,
) -> dict[Connection, int]:
    """Payload bytes of each connection in the time that counts, after the warm-up.

    `subflows` has one connection for an address. Where links share a wire, all that kernel MPTCP
    makes come to the same address of the receiver, from one of the sender's for each link.
    """
    data = _data(segments, addresses, without)
    begin = (_start_ns(data) if data else 0) + warmup_s * 1e9
    return _totals([s for s in data if begin <= s.at_ns < begin + seconds * 1e9])


def _data(
    segments: Iterable[Segment], addresses: Sequence[str], without: Collection[int]
) -> list[Segment]:
    """What brought payload to the receiver's addresses."""
    sent = (s for s in segments if s.destination in addresses and s.payload)
    return [s for s in sent if not s.flags & (SYN | FIN | RST) and s.ports[0] not in without]


def _totals(data: Iterable[Segment]) -> dict[Connection, int]:
    """Payload bytes of each connection."""
    totals: dict[Connection, int] = defaultdict(int)
    for segment in data:
        totals[_connection(segment)] += segment.payload
    return totals


def _start_ns(data: Sequence[Segment]) -> int:
    """When the busiest connection brought its first data."""
    totals = _totals(data)
    most = max(totals, key=lambda c: totals[c])
    return next(s.at_ns for s in data if _connection(s) == most)


def _connection(segment: Segment) -> Connection:
    return (segment.destination, segment.source, *segment.ports)


def variation(series: Sequence[tuple[float, float]]) -> float | None:
    """Standard deviation of the samples over their mean; None for nothing."""
    rates = [rate for _, rate in series]
    mean = statistics.fmean(rates) if rates else 0.0
    return statistics.pstdev(rates) / mean if mean > 0 else None


def full_rate_after_s(series: Sequence[tuple[float, float]]) -> float | None:
    """When a subflow first carries nearly its usual most for 300 ms; None if it never does."""
    rates = [rate for _, rate in series]
    if len(rates) < 2 * FULL_SAMPLES:
        return None
    usual = sorted(rates)[int(0.95 * (len(rates) - 1))]
    for index in range(len(rates) - FULL_SAMPLES + 1):
        if statistics.fmean(rates[index : index + FULL_SAMPLES]) >= FULL_RATE * usual > 0:
            return round(index * STEP_S, 3)
    return None
