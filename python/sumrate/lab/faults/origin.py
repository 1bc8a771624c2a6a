"""What the exit connects to: `python -m sumrate.lab.faults.origin`, an origin of checked transfers.

One line asks: `GET SEED SIZE` is answered with that transfer's bytes, `PUT SEED SIZE` and the bytes
with a dot for every chunk and, at their end, `right` or `wrong`. A second port accepts and then
neither reads nor says anything.
"""

import argparse
import contextlib
import resource
import select
import socket
import threading
from pathlib import Path

from sumrate.lab.faults.transfer import CHUNK, Checker, chunk

MAX_REQUEST = 100
BACKLOG = 4096


def _request(connection: socket.socket) -> list[str]:
    line = b""
    while not line.endswith(b"\n") and len(line) < MAX_REQUEST:
        byte = connection.recv(1)
        if not byte:
            return []
        line += byte
    return line.decode("ascii", errors="replace").split()


def _give(connection: socket.socket, seed: int, size: int) -> None:
    for begin in range(0, size, CHUNK):
        connection.sendall(chunk(seed, begin // CHUNK)[: size - begin])


def _take(connection: socket.socket, seed: int, size: int) -> None:
    checker = Checker(seed, size)
    told = 0
    while count := connection.recv_into(checker.buffer()):
        checker.took(count)
        dots = checker.received // CHUNK - told
        told += dots
        connection.sendall(b"." * dots)
    missing = checker.finish()
    connection.sendall(b"right\n" if not missing and not checker.wrong else b"wrong\n")


def _serve(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError, ValueError):
        words = _request(connection)
        if len(words) == 3:
            act = {"GET": _give, "PUT": _take}[words[0]]
            act(connection, int(words[1]), int(words[2]))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass


def _say_nothing(listener: socket.socket) -> None:
    held: dict[int, socket.socket] = {}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        for number, _event in poll.poll():
            if number == listener.fileno():
                connection, _ = listener.accept()
                held[connection.fileno()] = connection
                poll.register(connection, select.POLLRDHUP)
            else:
                poll.unregister(number)
                held.pop(number).close()


def listen(address: str, port: int) -> socket.socket:
    """A listening TCP socket."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(BACKLOG)
    return listener


def raise_descriptors() -> None:
    """Lets this process open as many descriptors as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Serves until it is told to stop; writes the ready file once it accepts connections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, metavar="ADDRESS")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--silent-port", type=int, required=True)
    parser.add_argument("--ready", type=Path, required=True)
    args = parser.parse_args()
    raise_descriptors()
    listener = listen(args.listen, args.port)
    silent = listen(args.listen, args.silent_port)
    threading.Thread(target=_say_nothing, args=(silent,), daemon=True).start()
    args.ready.write_text("ready\n", encoding="ascii")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
