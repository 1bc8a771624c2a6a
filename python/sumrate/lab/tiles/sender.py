"""The sender: each second it plans a GOP for where the viewer will look, and sends until it is due.

GOP k is there at k seconds and due at k + 1, when the viewer shows it for a second. The budget is
the rate that the viewer measured, less a margin. Programs under test get no help: one connection,
whose unsent backlog in this socket is kept small, so that little that is late remains to be sent.
"""

import argparse
import contextlib
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sumrate.lab.stream.ends import listen
from sumrate.lab.tiles.task import Task
from sumrate.lab.tiles.wire import LOOK, MESSAGE, MOST_CHUNK, MOST_OF_MESSAGE, chunks
from sumrate.qoe.tiles.allocate import Plan, plan
from sumrate.qoe.tiles.head import displacements
from sumrate.qoe.tiles.ladder import GRID
from sumrate.qoe.tiles.viewport import View, likelihoods

FIRST_MBPS = 200.0
"""Planned for before the viewer has measured anything."""
UNSENT_BYTES = 1 << 18
"""Most that waits unsent in the socket."""
HORIZONS_S = (1.0, 1.5, 2.0)
"""From the plan until the GOP's beginning, middle and end are seen."""
MOVES = 200
"""Displacements that likelihoods are taken over."""


Moves = NDArray[np.float64]
"""Possible displacements of the head, as rows of yaw and pitch in degrees."""


@dataclass(frozen=True)
class Piece:
    """One tile of a plan."""

    gop: int
    tile: int
    level: int
    size: int
    importance: int
    """0 low, 1 normal, 2 high."""
    due_s: float
    """On time.monotonic."""


class Carriage(Protocol):
    """How tiles are sent."""

    def send(self, piece: Piece) -> bool:
        """Sends one tile; False if it was not sent whole before it was due."""


class OneStream:
    """All tiles on one ordered stream, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        """Takes the connection."""
        self._connection = connection
        self._payload = memoryview(bytes(MOST_CHUNK))

    def send(self, piece: Piece) -> bool:
        """Chunk by chunk until it is whole or due."""
        for chunk in chunks(piece.gop, piece.tile, piece.level, piece.size):
            if time.monotonic() >= piece.due_s:
                return False
            self._connection.sendmsg([chunk.head()])
            self._connection.sendall(self._payload[: chunk.length])
        return True


class AsMessages:
    """Each chunk as a message that is worth nothing after the tile is due."""

    def __init__(self, connection: socket.socket) -> None:
        """Takes the connection to the relay beside it."""
        self._connection = connection
        self._payload = bytes(MOST_OF_MESSAGE)

    def send(self, piece: Piece) -> bool:
        """Message by message until it is whole or due."""
        for chunk in chunks(piece.gop, piece.tile, piece.level, piece.size, MOST_OF_MESSAGE):
            left_ms = int((piece.due_s - time.monotonic()) * 1e3)
            if left_ms < 1:
                return False
            head = chunk.head()
            begin = MESSAGE.pack(piece.importance, left_ms, len(head) + chunk.length)
            self._connection.sendall(begin + head + self._payload[: chunk.length])
        return True


def kept_short(connection: socket.socket) -> socket.socket:
    """The connection, with little that waits unsent in it, where the kernel lets it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    return connection


def importance(task: Task, place: int, count: int) -> int:
    """Of the tile at `place` in a plan of `count`: the first third matters most, the last least.

    Where tiles are treated alike all matter the same.
    """
    return 1 if task.policy == "fix" else 2 - min(2, 3 * place // max(1, count))


class Looks:
    """A thread that keeps the last that the viewer said."""

    def __init__(self, connection: socket.socket) -> None:
        """Nothing is read before `first`."""
        self._connection = connection
        self.last = (0.0, 0.0, 0.0, 0.0)
        self._thread = threading.Thread(target=self._work, daemon=True)

    def first(self) -> None:
        """Waits until the viewer has begun.

        Raises:
            OSError: it left.

        """
        self.last = self._one()
        self._thread.start()

    def _one(self) -> tuple[float, float, float, float]:
        data = b""
        while len(data) < LOOK.size:
            more = self._connection.recv(LOOK.size - len(data))
            if not more:
                raise ConnectionError("the viewer left")
            data += more
        return LOOK.unpack(data)

    def _work(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.last = self._one()


def possible_moves(seed: int) -> Moves:
    """The displacements that likelihoods are taken over; the same for the same seed."""
    every = displacements(HORIZONS_S)
    return every[np.random.default_rng(seed).permutation(len(every))[:MOVES]]


def planned(task: Task, number: int, look: tuple[float, float, float, float], moves: Moves) -> Plan:
    """The plan of GOP `number` from what the viewer said last."""
    _, yaw, pitch, rate = look
    gop = number % len(task.sizes)
    budget = (rate or FIRST_MBPS) * 125e3 * task.margin
    likelihood = likelihoods(GRID, View(), yaw, pitch, moves)
    return plan(task.policy, task.sizes[gop], task.errors[gop], likelihood, budget)


def serve(connection: socket.socket, task: Task, moves: Moves, *, messages: bool) -> None:
    """Sends every GOP of the task in its second."""
    looks = Looks(connection)
    kept_short(connection)
    carriage: Carriage = AsMessages(connection) if messages else OneStream(connection)
    looks.first()
    began_s = time.monotonic()
    for number in range(task.gops):
        time.sleep(max(0.0, began_s + number - time.monotonic()))
        chosen = planned(task, number, looks.last, moves)
        sizes = task.sizes[number % len(task.sizes)]
        due_s = began_s + number + 1
        for place, (tile, level) in enumerate(chosen.sends):
            matters = importance(task, place, len(chosen.sends))
            piece = Piece(number, tile, level, int(sizes[level, tile]), matters, due_s)
            if not carriage.send(piece):
                break
    time.sleep(max(0.0, began_s + task.gops + 1 - time.monotonic()))


def run(args: argparse.Namespace) -> int:
    """Serves viewers one after the other until it is told to stop."""
    task = Task.read(args.task)
    moves = possible_moves(task.seed)
    listener = listen(args.listen, args.port, args.cc, mptcp=args.mptcp)
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                serve(connection, task, moves, messages=args.messages)
            except OSError as error:  # the viewer left: its time is over
                print(f"a viewer left: {error}", file=sys.stderr)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sender's flags."""
    parser.add_argument("--listen", default="0.0.0.0")  # noqa: S104  (in a private namespace)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cc", default="cubic", help="congestion control (cubic)")
    parser.add_argument("--mptcp", action="store_true", help="an MPTCP socket")
    parser.add_argument("--messages", action="store_true", help="frames messages for a relay")
    parser.add_argument("--task", type=Path, required=True, help="file of the run")
    parser.add_argument("--ready", type=Path, help="file that is made when it is ready")
    parser.set_defaults(run=run)
