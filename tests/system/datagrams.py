"""A UDP echo, and a client of it through a SOCKS5 proxy (RFC 1928), each a program of its own.

Run as `python datagrams.py echo ADDRESS PORT` or `python datagrams.py talk SOCKS_PORT ADDRESS PORT
COUNT FILE`; the latter writes the number of echoes to FILE as they come, and in the end `end`.
"""

import socket
import struct
import sys
import time
from pathlib import Path

INTERVAL_S = 0.01
PATIENCE_S = 30.0
ASSOCIATE = b"\x05\x01\x00" + b"\x05\x03\x00\x01" + bytes(6)


def echo(address: str, port: int) -> None:
    """Sends every datagram back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((address, port))
        while True:
            data, source = udp.recvfrom(65535)
            udp.sendto(data, source)


def associate(port: int) -> tuple[socket.socket, tuple[str, int]]:
    """The connection that keeps an association alive, and where its datagrams go."""
    control = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    control.sendall(ASSOCIATE)
    answer = b""
    while len(answer) < 12:
        answer += control.recv(12 - len(answer))
    if answer[:6] != b"\x05\x00\x05\x00\x00\x01":
        raise RuntimeError(f"the proxy answered {answer!r}")
    return control, (socket.inet_ntoa(answer[6:10]), struct.unpack("!H", answer[10:])[0])


def talk(proxy: int, address: str, port: int, count: int, file: Path) -> None:
    """Sends `count` datagrams at a steady pace and counts the echoes, each once."""
    control, relay = associate(proxy)
    head = b"\0\0\0\x01" + socket.inet_aton(address) + struct.pack("!H", port)
    seen: set[int] = set()
    with control, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect(relay)
        sent, begun = 0, time.monotonic()
        last = begun
        while len(seen) < count and time.monotonic() - last < PATIENCE_S:
            due = begun + sent * INTERVAL_S
            if sent < count and time.monotonic() >= due:
                udp.send(head + struct.pack("!Q", sent) + bytes(192))
                sent += 1
                continue
            udp.settimeout(max(due - time.monotonic(), 0.001) if sent < count else 0.1)
            try:
                data = udp.recv(65535)
            except TimeoutError:
                continue
            number = struct.unpack("!Q", data[10:18])[0]
            if number in seen or data[:10] != head:
                raise RuntimeError(f"datagram {number} came twice or from elsewhere")
            seen.add(number)
            last = time.monotonic()
            file.write_text(str(len(seen)), encoding="utf-8")
    file.write_text(f"{len(seen)} end", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        echo(sys.argv[2], int(sys.argv[3]))
    else:
        talk(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), Path(sys.argv[6]))
