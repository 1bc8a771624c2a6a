"""Makes a TUN interface that runs, and takes what is sent into it until it is stopped.

Run: python -m tests.world.tunnel NAME READY
"""

import fcntl
import os
import struct
import sys
from pathlib import Path

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000


def main(name: str, ready: str) -> None:
    """Holds the interface open."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    Path(ready).touch()
    while True:
        os.read(device, 65536)


if __name__ == "__main__":
    main(*sys.argv[1:])
