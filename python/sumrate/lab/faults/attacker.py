"""A hostile program: `python -m sumrate.lab.faults.attacker KIND ...`; runs until it is stopped.

Strangers at the server's port: `garbage` (random bytes), `drip` (a handshake that never ends, a
byte at a time), `half-open` (half a handshake, then silence), `silent-reader` (a real ClientHello,
and what the server answers is never read), `wrong-proof` (whole TLS handshakes, each with a Hello
whose proof is wrong, of a credential that does not exist or of `--credential`). Programs of a
client, through its SOCKS5 proxy: `flood` (streams to `--target`, which get data, as many as can be
had).

Connections that are closed by the other side are replaced until `--total` were begun. The status
file says how many were made, closed, answered, failed, and are held: one that nobody accepts, or
that is reset before it was seen to be accepted, has failed and counts as neither made nor closed.
"""

import argparse
import errno
import json
import random
import select
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sumrate.atomic import replacing
from sumrate.lab.faults import stranger
from sumrate.lab.faults.origin import raise_descriptors
from sumrate.lab.stream.socks import NO_AUTHENTICATION, VERSION, request

TLS_HELLO = bytes.fromhex("1603010200010001fc0303")
"""The beginning of a TLS ClientHello of 512 bytes."""
SILENT, PROVES = "silent-reader", "wrong-proof"
AT_ONCE = 250
"""Connections that are begun without looking at the others."""
PAUSE_S = 0.05
"""Between two looks at all connections; nobody reads the status file more often either."""
GREETING_ANSWER, REQUEST_ANSWER = 2, 10
"""Bytes of the proxy's answers to the two messages, with an IPv4 address."""

Talk = Callable[[socket.socket], bytes]


def talks(kind: str, target: tuple[str, int], generator: random.Random) -> tuple[Talk, Talk]:
    """What is said first on a connection, and every time it is looked at."""
    greeting = bytes([VERSION, 1, NO_AUTHENTICATION])
    nothing: Talk = lambda _connection: b""  # noqa: E731  (one of a table)
    return {
        "garbage": (nothing, lambda _c: generator.randbytes(4096)),
        "drip": (lambda _c: TLS_HELLO, lambda _c: b"\0"),
        "half-open": (lambda _c: TLS_HELLO, nothing),
        SILENT: (nothing, nothing),
        PROVES: (nothing, nothing),
        "flood": (lambda _c: greeting + request(*target), lambda _c: bytes(4096)),
    }[kind]


class Attack:
    """Many connections at once, in one thread."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Prepares the attack."""
        self.args = args
        target, _, port = args.target.rpartition(":")
        self.generator = random.Random(args.seed)
        self.first, self.again = talks(args.kind, (target, int(port or 0)), self.generator)
        self.tls = stranger.context()
        self.held: dict[int, socket.socket] = {}
        self.connected: set[int] = set()
        """Those of them that somebody has accepted."""
        self.begun = 0
        self.knocks: dict[int, stranger.Knock] = {}
        self.answers: Counter[int] = Counter()
        self.poll = select.poll()
        self.count = Counter(made=0, closed=0, answered=0, failed=0)
        self.reported = -PAUSE_S

    def run(self) -> None:
        """Attacks until the process is stopped."""
        while True:
            self.open_more()
            if self.args.kind == PROVES:
                self.look(PAUSE_S)  # what comes is answered at once, what ended replaced at once
            else:
                self.look()
                self.go_on()
            self.report()

    def go_on(self) -> None:
        """Says the next word on every connection, then pauses."""
        for connection in list(self.held.values()):
            self.say(connection, self.again(connection))
            if self.args.kind == SILENT:
                self.peek(connection)
        time.sleep(PAUSE_S)

    def open_more(self) -> None:
        """Begins more connections, from each source address in turn."""
        args = self.args
        for _ in range(AT_ONCE):
            if len(self.held) >= args.connections or self.begun >= args.total:
                return
            connection = socket.socket()
            connection.setblocking(False)
            source = args.source[self.begun % len(args.source)] if args.source else ""
            try:
                if args.kind == SILENT:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                connection.bind((source, 0))
                answer = connection.connect_ex((args.address, args.port))
            except OSError as error:
                answer = error.errno or errno.EIO
            if answer not in (0, errno.EINPROGRESS):
                connection.close()
                self.count["failed"] += 1
                return
            self.begun += 1
            self.held[connection.fileno()] = connection
            self.poll.register(connection, select.POLLIN | select.POLLRDHUP | select.POLLOUT)

    def look(self, wait_s: float = 0) -> None:
        """Says the first word where a connection is new, notes answers and ends.

        Waits so long at most for something to happen.
        """
        silent = self.args.kind == SILENT
        ends = select.POLLERR | select.POLLHUP | (select.POLLRDHUP if silent else 0)
        for number, event in self.poll.poll(wait_s * 1000):
            connection = self.held[number]
            if event & ends:
                self.drop(connection)
            elif event & select.POLLOUT:
                self.connected.add(number)
                self.count["made"] += 1
                events = select.POLLRDHUP | (0 if silent else select.POLLIN)
                self.poll.modify(connection, events)
                self.say(connection, self.knock(number) or self.first(connection))
            elif event & select.POLLIN:
                self.hear(connection)

    def knock(self, number: int) -> bytes:
        """The ClientHello of a new connection, for those who send one."""
        if self.args.kind not in (SILENT, PROVES):
            return b""
        named = bytes.fromhex(self.args.credential)
        credential = named or self.generator.randbytes(stranger.CREDENTIAL_BYTES)
        self.knocks[number] = stranger.Knock(self.tls, stranger.hello(credential, self.generator))
        return self.knocks[number].turn()

    def peek(self, connection: socket.socket) -> None:
        """Notes that something came, and leaves it unread."""
        number = connection.fileno()
        if number in self.held and not self.answers[number]:
            with suppress(OSError):
                self.answers[number] = len(connection.recv(1, socket.MSG_PEEK))
            self.count["answered"] += self.answers[number]

    def hear(self, connection: socket.socket) -> None:
        """Reads; through a proxy, the end of its second answer is what is counted."""
        try:
            data = connection.recv(4096)
        except OSError:
            data = b""
        if not data:
            return self.drop(connection)
        number = connection.fileno()
        if (knock := self.knocks.get(number)) is not None:
            before = knock.refused
            words = knock.turn(data)
            self.count["answered"] += knock.refused and not before
            return self.say(connection, words)
        before_bytes = self.answers[number]
        self.answers[number] += len(data)
        whole = GREETING_ANSWER + REQUEST_ANSWER
        self.count["answered"] += before_bytes < whole <= self.answers[number]
        return None

    def say(self, connection: socket.socket, data: bytes) -> None:
        """Sends what fits; a connection that takes nothing more is left alone."""
        if not data:
            return
        try:
            connection.send(data)
        except BlockingIOError:
            return
        except OSError:
            self.drop(connection)

    def drop(self, connection: socket.socket) -> None:
        """The other side has ended it, or never accepted it."""
        number = connection.fileno()
        if self.held.pop(number, None) is not None:
            self.poll.unregister(number)
            self.knocks.pop(number, None)
            del self.answers[number]
            connection.close()
            self.count["closed" if number in self.connected else "failed"] += 1
            self.connected.discard(number)

    def report(self) -> None:
        """Writes the status file, whole, if it is old."""
        now = time.monotonic()
        if now - self.reported < PAUSE_S:
            return
        self.reported = now
        with replacing(self.args.status) as file:
            file.write_text(json.dumps({**self.count, "held": len(self.held)}), encoding="ascii")


def main() -> None:
    """Attacks until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind")
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("status", type=Path)
    parser.add_argument("--connections", type=int, default=300, help="at once")
    parser.add_argument("--total", type=int, default=1 << 40, help="in all")
    parser.add_argument("--source", action="append", default=[], help="repeat for several")
    parser.add_argument("--target", default="", help="for flood: ADDRESS:PORT behind the exit")
    parser.add_argument("--credential", default="", help="for wrong-proof: id in hexadecimal")
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    raise_descriptors()
    Attack(args).run()


if __name__ == "__main__":
    main()
