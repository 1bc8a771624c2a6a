"""Advertises a router with a NAT64 prefix (RFC 8781) on an interface, twice a second.

Run: python -m tests.world.router_advertiser INTERFACE PREFIX
"""

import socket
import struct
import sys
import time

ADVERTISEMENT, PREF64, LENGTH_96 = 134, 38, 0
LIFETIME_S = 1800


def message(prefix: str) -> bytes:
    """A router advertisement; the kernel fills in its checksum."""
    head = struct.pack("!BBHBBHII", ADVERTISEMENT, 0, 0, 64, 0, LIFETIME_S, 0, 0)
    scaled = (LIFETIME_S // 8) << 3 | LENGTH_96
    return (
        head
        + struct.pack("!BBH", PREF64, 2, scaled)
        + socket.inet_pton(socket.AF_INET6, prefix)[:12]
    )


def main(interface: str, prefix: str) -> None:
    """Sends until it is stopped."""
    raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    index = socket.if_nametoindex(interface)
    while True:
        raw.sendto(message(prefix), ("ff02::1", 0, 0, index))
        time.sleep(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
