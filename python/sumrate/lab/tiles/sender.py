"""The sender: each second it plans a GOP for where the viewer will look, and sends until it is due.

GOP k is there at k seconds and due at k + 1, when the viewer shows it for a second. The budget is
the rate that the viewer measured, less a margin. `viewport` plans for more than the rate, for what
does not fit is what matters least; half a second later it plans the rest anew, from the newest look
and rate. Programs under test get no help: one connection, whose unsent backlog in this socket is
kept small, so that little that is late remains to be sent.
"""

import argparse
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sumrate.lab.stream.ends import listen
from sumrate.lab.tiles.task import Task
from sumrate.lab.tiles.wire import LOOK, MESSAGE, MOST_CHUNK, MOST_OF_MESSAGE, chunks
from sumrate.qoe.tiles.allocate import NOTHING, Plan, plan
from sumrate.qoe.tiles.head import displacements
from sumrate.qoe.tiles.ladder import GRID
from sumrate.qoe.tiles.viewport import View, views

FIRST_MBPS = 200.0
"""Planned for before the viewer has measured anything."""
UNSENT_BYTES = 1 << 18
"""Most that waits unsent in the socket."""
SLOTS_S = {"viewport": (0.0, 0.5)}
"""When a GOP is planned, in its second; once, as it begins, if the policy is not here."""
LEAD_S = 0.06
"""Plans are made so long before, beside what is being sent."""
SWITCH_S = 0.0005
"""The thread that sends gets its turn so soon while a plan is being made."""
BEYOND = 1.15
"""`viewport` plans for so much of the measured rate."""
HORIZONS_S = (1.0, 1.5, 2.0)
"""From the first plan until the GOP's beginning, middle and end are seen."""
MOVES = 200
"""Displacements that views are taken over."""


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
            head, payload = chunk.head(), self._payload[: chunk.length]
            sent = self._connection.sendmsg([head, payload])
            if sent < len(head) + len(payload):  # a signal came
                self._connection.sendall((head + bytes(payload))[sent:])
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


class Looks:
    """A thread that keeps the last that the viewer said."""

    def __init__(self, connection: socket.socket) -> None:
        """Nothing is read before `first`."""
        self._connection = connection
        self.last = (0.0, 0.0, 0.0, 0.0)
        self._thread = threading.Thread(target=self._work, daemon=True)

    def first(self) -> None:
        """Waits until the viewer has begun.

        Raises OSError: it left.
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


def slots_of(policy: str) -> tuple[float, ...]:
    """When a GOP is planned, in its second."""
    return SLOTS_S.get(policy, (0.0,))


def possible_moves(policy: str, seed: int) -> list[Moves]:
    """The displacements that views are taken over, for each slot; the same for the same seed."""
    found = []
    for begin_s in slots_of(policy):
        every = displacements(tuple(horizon - begin_s for horizon in HORIZONS_S))
        found.append(every[np.random.default_rng(seed).permutation(len(every))[:MOVES]])
    return found


def planned(
    task: Task,
    when: tuple[int, int],
    look: tuple[float, float, float, float],
    moves: Moves,
    sent: NDArray[np.int64],
) -> Plan:
    """The plan of a GOP in a slot (`when`) from what the viewer said last, and what was sent."""
    number, slot = when
    _, yaw, pitch, rate = look
    gop = number % len(task.sizes)
    begin_s = slots_of(task.policy)[slot]
    share = BEYOND if task.policy == "viewport" else task.margin
    budget = (rate or FIRST_MBPS) * 125e3 * share * (1.0 - begin_s)
    is_blind = task.policy == "fix"
    seen = np.ones(GRID.tiles) if is_blind else views(GRID, View(), yaw, pitch, moves)
    return plan(task.policy, (task.sizes[gop], task.errors[gop]), seen, budget, sent)


class Ahead:
    """Plans in a thread what is sent next, while what was planned before is being sent."""

    def __init__(self, task: Task, looks: Looks, moves: list[Moves]) -> None:
        """Nothing is planned before `begin`."""
        self._task, self._looks, self._moves = task, looks, moves
        self._threads = ThreadPoolExecutor(max_workers=1)
        self._next: Future[Plan] | None = None

    def __enter__(self) -> Self:
        """Its thread is there until the context ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """What is being planned is of no use any more."""
        self._threads.shutdown(cancel_futures=True)

    def begin(self, number: int, slot: int, sent: NDArray[np.int64]) -> None:
        """Begins with the plan of a slot, if it has not begun; what was sent is as it is now."""
        if self._next is None and number < self._task.gops:
            look, moves = self._looks.last, self._moves[slot]
            self._next = self._threads.submit(
                planned, self._task, (number, slot), look, moves, sent.copy()
            )

    def take(self) -> Plan:
        """The plan that was begun."""
        assert self._next is not None  # noqa: S101 (the sender begins it)
        chosen, self._next = self._next.result(), None
        return chosen


def serve(connection: socket.socket, task: Task, moves: list[Moves], *, messages: bool) -> None:
    """Sends every GOP of the task in its second."""
    looks = Looks(connection)
    kept_short(connection)
    carriage: Carriage = AsMessages(connection) if messages else OneStream(connection)
    looks.first()
    with Ahead(task, looks, moves) as ahead:
        began_s = send_all(carriage, task, ahead)
    time.sleep(max(0.0, began_s + task.gops + 1 - time.monotonic()))


def send_all(carriage: Carriage, task: Task, ahead: Ahead) -> float:
    """Sends every GOP's plans; returns when it began, on time.monotonic."""
    nothing = np.full(GRID.tiles, NOTHING)
    ahead.begin(0, 0, nothing)
    began_s = time.monotonic()
    begins = slots_of(task.policy)
    for number in range(task.gops):
        sent = nothing.copy()
        for slot, begin_s in enumerate(begins):
            time.sleep(max(0.0, began_s + number + begin_s - time.monotonic()))
            is_last = slot + 1 == len(begins)
            end_s = began_s + number + (1.0 if is_last else begins[slot + 1])
            following = (number + 1, 0) if is_last else (number, slot + 1)
            begin_next = partial(ahead.begin, *following, nothing if is_last else sent)
            pieces = pieces_of(task, number, ahead.take(), began_s + number + 1)
            send_plan(carriage, pieces, sent, end_s, begin_next)
    return began_s


def pieces_of(task: Task, number: int, chosen: Plan, due_s: float) -> Iterator[Piece]:
    """The tiles of a GOP's plan, in their order."""
    sizes = task.sizes[number % len(task.sizes)]
    for (tile, level), matters in zip(chosen.sends, chosen.importance, strict=True):
        yield Piece(number, tile, level, int(sizes[level, tile]), matters, due_s)


def send_plan(
    carriage: Carriage,
    pieces: Iterator[Piece],
    sent: NDArray[np.int64],
    end_s: float,
    begin_next: Callable[[], None],
) -> None:
    """Sends a plan's tiles until its slot ends.

    Args:
        carriage: what carries them.
        pieces: the plan.
        sent: the best level of each tile that was sent; what is sent now is entered.
        end_s: when the slot ends.
        begin_next: begins with the next plan; called shortly before that.

    """
    for piece in pieces:
        now_s = time.monotonic()
        if now_s >= end_s - LEAD_S:
            begin_next()
        if now_s >= end_s:
            return
        if not carriage.send(piece):
            break
        before = sent[piece.tile]
        sent[piece.tile] = piece.level if before == NOTHING else min(piece.level, before)
    time.sleep(max(0.0, end_s - LEAD_S - time.monotonic()))
    begin_next()


def run(args: argparse.Namespace) -> int:
    """Serves viewers one after the other until it is told to stop."""
    task = Task.read(args.task)
    moves = possible_moves(task.policy, task.seed)
    sys.setswitchinterval(SWITCH_S)
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
