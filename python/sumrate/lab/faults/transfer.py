"""One checked transfer through a SOCKS5 proxy, and what became of it."""

import random
import select
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sumrate.lab.stream.socks import SocksError, connect_through

CHUNK = 1 << 20
"""Bytes; each chunk begins with the transfer's seed and its own number, so that no chunk can stand
for another."""
_BLOCK = random.Random(20).randbytes(CHUNK)
_HEAD = struct.Struct("<QQ")


def chunk(seed: int, number: int) -> bytes:
    """Chunk `number` of the transfer with this seed (64 bits each)."""
    return _HEAD.pack(seed, number) + _BLOCK[_HEAD.size :]


class Checker:
    """Compares what arrives with what was sent; `buffer` is where the next bytes belong."""

    def __init__(self, seed: int, size: int) -> None:
        """Expects `size` bytes of the transfer with this seed."""
        self.seed = seed
        self.size = size
        self.received = 0
        """Bytes that came so far."""
        self.wrong = 0
        """Bytes of chunks that were not as sent, or beyond the end."""
        self._room = bytearray(CHUNK)
        self._at = 0

    def buffer(self) -> memoryview:
        """Room for the bytes that come next: one at least, also beyond the end."""
        return memoryview(self._room)[self._at :]

    def took(self, count: int) -> None:
        """Notes that the first `count` bytes of `buffer()` were filled."""
        self._at += count
        self.received += count
        if self._at == CHUNK or self.received >= self.size:
            self._check()

    def finish(self) -> int:
        """Checks what is left; gives the bytes that are missing."""
        self._check()
        return max(0, self.size - self.received)

    def _check(self) -> None:
        if not self._at:
            return
        begin = self.received - self._at
        expected = chunk(self.seed, begin // CHUNK)[: max(0, self.size - begin)]
        if bytes(memoryview(self._room)[: self._at]) != expected[: self._at]:
            self.wrong += self._at
        if self.received % CHUNK == 0 or self.received >= self.size:
            self._at = 0


Outcome = Literal["right", "refused", "broken", "cut", "wrong", "stuck", "stopped"]
"""`right`: all bytes, as sent. `refused`: the proxy said no. `broken`: the connection failed, and
the program was told. `cut`: a clean end before the last byte. `wrong`: other bytes than were sent.
`stuck`: nothing happened for a long time. `stopped`: we gave it up."""

STUCK_S = 90.0
"""Nothing for this long is never right: it is longer than every timer of the transport."""


@dataclass(frozen=True)
class Order:
    """A transfer to make."""

    direction: Literal["down", "up"]
    seed: int
    size: int


@dataclass(frozen=True)
class Result:
    """What became of it. `done` bytes arrived and were right as far as they were checked."""

    outcome: Outcome
    done: int = 0
    lost: int = 0
    """Bytes that were wrong, or missing although the end was clean."""
    reason: str = ""


def carry_out(
    order: Order,
    proxy: tuple[str, int],
    target: tuple[str, int],
    progress: Callable[[int], object],
    stopped: Callable[[], bool],
) -> Result:
    """Makes a transfer.

    Args:
        order: what to transfer.
        proxy: where the SOCKS5 proxy listens.
        target: the origin, as the exit reaches it.
        progress: called with the bytes that were delivered since the last call.
        stopped: asked now and then; once it says so the transfer is given up.

    """
    done = [0]

    def delivered(count: int) -> None:
        done[0] += count
        progress(count)

    try:
        with socket.create_connection(proxy, timeout=STUCK_S) as connection:
            connect_through(connection, *target)
            act = _download if order.direction == "down" else _upload
            return act(connection, order, delivered, stopped)
    except SocksError as error:
        return Result("refused", done[0], reason=str(error))
    except TimeoutError as error:
        return Result("stuck", done[0], reason=str(error))
    except OSError as error:
        return Result("broken", done[0], reason=str(error))


def _download(
    connection: socket.socket,
    order: Order,
    delivered: Callable[[int], object],
    stopped: Callable[[], bool],
) -> Result:
    connection.sendall(f"GET {order.seed} {order.size}\n".encode())
    checker = Checker(order.seed, order.size)
    while count := connection.recv_into(checker.buffer()):
        checker.took(count)
        delivered(count)
        if stopped():
            checker.finish()
            outcome: Outcome = "wrong" if checker.wrong else "stopped"
            return Result(outcome, checker.received, checker.wrong)
    missing = checker.finish()
    if checker.wrong:
        return Result("wrong", checker.received, checker.wrong + missing)
    return Result("cut" if missing else "right", checker.received, missing)


def _upload(
    connection: socket.socket,
    order: Order,
    delivered: Callable[[int], object],
    stopped: Callable[[], bool],
) -> Result:
    connection.sendall(f"PUT {order.seed} {order.size}\n".encode())
    answer = bytearray()

    def listen() -> bool:
        """Takes what the origin said; False at its end."""
        said = connection.recv(4096)
        delivered(said.count(b".") * CHUNK)
        answer.extend(said.replace(b".", b""))
        return bool(said)

    for begin in range(0, order.size, CHUNK):
        connection.sendall(chunk(order.seed, begin // CHUNK)[: order.size - begin])
        if select.select([connection], [], [], 0)[0]:
            listen()
        if stopped():
            return Result("stopped")
    connection.shutdown(socket.SHUT_WR)
    while listen():
        if stopped():
            return Result("stopped")
    delivered(order.size % CHUNK if answer == b"right\n" else 0)
    if answer == b"right\n":
        return Result("right", order.size)
    if answer == b"wrong\n":
        return Result("wrong", 0, order.size)
    return Result("cut", 0, order.size, "a clean end without the origin's answer")
