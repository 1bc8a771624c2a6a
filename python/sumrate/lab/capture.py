"""Captures the headers of what passes interfaces, into a pcap file that any tool reads.

`python -m sumrate.lab.capture --interface wifi0 --interface wigig0 --output FILE --ready FILE` runs
until SIGTERM. It reads the kernel's ring of the first bytes of each packet, so that super-packets
are not copied whole, and needs CAP_NET_RAW in its network namespace. Times are the kernel's.

Layout: struct tpacket2_hdr and packet(7).
"""

import argparse
import mmap
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import BinaryIO

SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 263, 5, 6, 10
TPACKET_V2 = 1
ETH_P_ALL = 3
BLOCK, FRAME, BLOCKS = 1 << 20, 256, 8
"""Bytes of a block and of a packet's place in it; blocks of a ring."""
STATUS_USER = 1
FRAME_HEAD = struct.Struct("=IIIHHII")
"""status, length, bytes kept, offset of the link's and of the network's header, seconds, ns."""

PCAP_HEAD = struct.Struct("<IHHiIII")
PCAP_PACKET = struct.Struct("<IIII")
NANOSECONDS, RAW_IP = 0xA1B23C4D, 101
"""Magic number of pcap files with nanoseconds; link type of packets that begin with IP."""


class Ring:
    """The kernel's ring of one interface."""

    def __init__(self, interface: str) -> None:
        """Begins to capture.

        Raises OSError: there is no such interface, or it may not be captured.
        """
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self._frames = BLOCKS * BLOCK // FRAME
        request = struct.pack("=IIII", BLOCK, BLOCKS, FRAME, self._frames)
        self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        self._memory = mmap.mmap(self.socket.fileno(), BLOCK * BLOCKS)
        self._next = 0
        self.socket.bind((interface, ETH_P_ALL))

    def packets(self) -> Iterator[tuple[int, int, int, bytes]]:
        """What has come since the last call: seconds, ns, whole length, first bytes from IP on."""
        memory = self._memory
        while True:
            at = self._next * FRAME
            status, length, kept, _, network, seconds, ns = FRAME_HEAD.unpack_from(memory, at)
            if not status & STATUS_USER:
                return
            yield seconds, ns, length, memory[at + network : at + network + kept]
            memory[at : at + 4] = b"\0\0\0\0"
            self._next = (self._next + 1) % self._frames

    def dropped(self) -> int:
        """Packets that found no place since the last call."""
        found = self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", found)[1])


class Stopped(Exception):  # noqa: N818  (a request, not a failure)
    """SIGTERM: the capture is complete."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


def write(rings: Sequence[Ring], output: BinaryIO) -> None:
    """Writes what comes until Stopped is raised, and then what is still there."""
    output.write(PCAP_HEAD.pack(NANOSECONDS, 2, 4, 0, 0, FRAME, RAW_IP))
    poll = select.poll()
    for ring in rings:
        poll.register(ring.socket, select.POLLIN)

    def drain() -> None:
        for ring in rings:
            for seconds, ns, length, data in ring.packets():
                output.write(PCAP_PACKET.pack(seconds, ns, len(data), length))
                output.write(data)

    signal.signal(signal.SIGTERM, _stop)
    try:
        while True:
            poll.poll()
            drain()
    except Stopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        drain()


def main() -> int:
    """Captures until it is told to stop; 1 if the ring was too small for what came."""
    parser = argparse.ArgumentParser(prog="sumrate.lab.capture", description=__doc__)
    parser.add_argument("--interface", action="append", required=True, metavar="NAME")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--ready", type=Path, help="file that is made when it captures")
    args = parser.parse_args()
    try:
        rings = [Ring(name) for name in args.interface]
    except OSError as error:
        print(f"error: cannot capture on {', '.join(args.interface)}: {error}", file=sys.stderr)
        return 1
    with args.output.open("wb") as output:
        if args.ready:
            args.ready.touch()
        write(rings, output)
    if dropped := sum(ring.dropped() for ring in rings):
        print(f"error: {dropped} packets found no place in the ring", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
