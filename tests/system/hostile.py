"""A hostile client: `python hostile.py KIND ADDRESS PORT READY`; runs until it is stopped.

Kinds: `garbage` (random bytes on many connections), `drip` (a handshake that never ends, a byte at
a time), `half-open` (connections that say nothing), `silent-reader` (a handshake's first record
and then nothing is read).
"""

import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

CONNECTIONS = 300
TLS_HELLO = bytes.fromhex("1603010200010001fc0303")
"""The beginning of a TLS ClientHello of 512 bytes."""


def connect(address: str, port: int) -> socket.socket | None:
    connection = socket.socket()
    connection.settimeout(0.2)
    try:
        connection.connect((address, port))
    except OSError:
        connection.close()
        return None
    return connection


def send(connection: socket.socket, data: bytes) -> bool:
    """False once the server has closed."""
    try:
        connection.sendall(data)
    except TimeoutError:
        return True
    except OSError:
        return False
    return True


def keep_open(address: str, port: int, ready: Path, talk: Callable[[socket.socket], bool]) -> None:
    """Keeps many connections open, replacing those that the server closes."""
    held: list[socket.socket] = []
    while True:
        while len(held) < CONNECTIONS and (new := connect(address, port)):
            held.append(new)
        alive = [connection for connection in held if talk(connection)]
        for connection in held:
            if connection not in alive:
                connection.close()
        held = alive
        ready.write_text("attacking\n", encoding="ascii")
        time.sleep(0.05)


def main() -> None:
    kind, address, port, ready = sys.argv[1:5]
    generator = random.Random(5)
    talks: dict[str, Callable[[socket.socket], bool]] = {
        "garbage": lambda c: send(c, generator.randbytes(4096)),
        "drip": lambda c: send(c, TLS_HELLO[:1]),
        "half-open": lambda _c: True,
        "silent-reader": lambda c: send(c, TLS_HELLO),
    }
    keep_open(address, int(port), Path(ready), talks[kind])


if __name__ == "__main__":
    main()
