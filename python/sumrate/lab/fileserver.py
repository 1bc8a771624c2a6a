"""A small HTTP/1.1 server for one file: `python -m sumrate.lab.ends file-server`.

It exists because the congestion control and the protocol (TCP or MPTCP) of the listening socket
have to be chosen explicitly, which general web servers do not offer. It sends with sendfile.
"""

import argparse
import contextlib
import os
import socket
import threading
from pathlib import Path

from sumrate.lab.stream.ends import listen

MAX_REQUEST = 16 << 10
CHUNK = 1 << 20


def _read_request(connection: socket.socket) -> str | None:
    """The request line, or None when the peer left or sent too much."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(4096)
        if not more or len(data) > MAX_REQUEST:
            return None
        data += more
    return data.split(b"\r\n", 1)[0].decode("latin-1")


def _answer(connection: socket.socket, file: int, size: int) -> bool:
    """Answers one request; False when the connection is over."""
    request = _read_request(connection)
    if request is None:
        return False
    method = request.split(" ", 1)[0]
    if method not in ("GET", "HEAD"):
        connection.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        return True
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nContent-Type: application/octet-stream"
    connection.sendall(head.encode() + b"\r\n\r\n")
    offset = 0 if method == "GET" else size
    while offset < size:
        sent = os.sendfile(connection.fileno(), file, offset, min(CHUNK, size - offset))
        if sent == 0:
            return False
        offset += sent
    return True


def _serve(connection: socket.socket, path: Path) -> None:
    with connection, path.open("rb") as file, contextlib.suppress(OSError):
        size = os.fstat(file.fileno()).st_size
        while _answer(connection, file.fileno(), size):
            pass


def run(args: argparse.Namespace) -> int:
    """Serves until it is told to stop; writes the ready file once it accepts connections."""
    listener = listen(args.listen, args.port, args.cc, mptcp=args.mptcp)
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, args.file), daemon=True).start()
