"""Prints each new established TCP connection to a port, with the time that it came up.

Run: python -m tests.world.watch LOCAL_IP PORT: one line `MONOTONIC_SECONDS LOCAL_PORT` for each
"""

import socket
import struct
import sys
import time
from pathlib import Path

ESTABLISHED = "01"
INTERVAL_S = 0.002


def ports(local: str, remote_port: int) -> set[int]:
    """Local ports of the connections that there are now (proc_net_tcp)."""
    (number,) = struct.unpack("=I", socket.inet_aton(local))
    found = set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        _, own, peer, state, *_ = line.split()
        address, port = own.split(":")
        is_own = int(address, 16) == number and int(peer.split(":")[1], 16) == remote_port
        if is_own and state == ESTABLISHED:
            found.add(int(port, 16))
    return found


def main() -> None:
    """Looks until it is ended."""
    local, remote_port = sys.argv[1], int(sys.argv[2])
    known = ports(local, remote_port)
    sys.stdout.write("watching\n")
    while True:
        sys.stdout.flush()
        time.sleep(INTERVAL_S)
        now = ports(local, remote_port)
        for port in sorted(now - known):
            sys.stdout.write(f"{time.monotonic()} {port}\n")
        known = now


if __name__ == "__main__":
    main()
