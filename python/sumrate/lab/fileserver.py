"""A small HTTP/1.1 server for one file: `python -m sumrate.lab.fileserver`.

It exists because the congestion control and the protocol (TCP or MPTCP) of the listening socket
have to be chosen explicitly, which general web servers do not offer. It sends with sendfile.
"""

import argparse
import contextlib
import os
import socket
import threading
from pathlib import Path

IPPROTO_MPTCP = 262
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


def listen(address: str, port: int, congestion_control: str, *, mptcp: bool) -> socket.socket:
    """A listening socket whose connections inherit the congestion control."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP if mptcp else 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    listener.bind((address, port))
    listener.listen(64)
    return listener


def main() -> None:
    """Serves until it is told to stop; writes the ready file once it accepts connections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="0.0.0.0")  # noqa: S104  (inside a private namespace)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--cc", default="cubic")
    parser.add_argument("--mptcp", action="store_true")
    parser.add_argument("--ready", type=Path)
    args = parser.parse_args()
    listener = listen(args.listen, args.port, args.cc, mptcp=args.mptcp)
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, args.file), daemon=True).start()


if __name__ == "__main__":
    main()
