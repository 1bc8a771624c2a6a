"""The viewer: moves its head, says where it looks and how fast tiles come, and notes which came."""

import argparse
import gc
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumrate.lab.stream.ends import (
    FIRST_BYTE,
    READ_BYTES,
    connect,
    reported,
    socket_reader,
)
from sumrate.lab.stream.record import Recorder
from sumrate.lab.tiles.task import Task
from sumrate.lab.tiles.wire import LOOK, LOOK_EVERY_S, Chunk, Reader
from sumrate.qoe.tiles.allocate import harmonic_mean
from sumrate.qoe.tiles.head import Movement, movement
from sumrate.qoe.tiles.shown import MISSING

SCHEMA = "sumrate.lab.tiles.v1"
RATES = 3
"""GOPs whose rates are averaged."""
LEAST_SPAN_S = 0.02
"""GOPs that came in less than this say nothing about the rate."""


@dataclass
class Arrivals:
    """Which tiles of which GOP came in time, and how fast."""

    sizes: NDArray[np.int64]
    """Bytes by GOP of the clip, level and tile."""
    gops: int
    levels: list[list[int]] = field(init=False)
    late: int = 0
    """Tiles that were whole only after they were due."""
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=RATES))
    _parts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Bytes of tiles that are not whole yet."""
    _gop: int = -1
    _first_s: float = 0.0
    _last_s: float = 0.0
    _bytes: int = 0

    def __post_init__(self) -> None:
        """Nothing has come."""
        self.levels = [[MISSING] * self.sizes.shape[2] for _ in range(self.gops)]

    @property
    def rate_mbps(self) -> float:
        """Harmonic mean of the last GOPs' rates while they came, with the present; 0 at first."""
        rates = [*self.rates, *([self._rate] if self._span_s >= LEAST_SPAN_S else [])][-RATES:]
        return harmonic_mean(rates) if rates else 0.0

    @property
    def _span_s(self) -> float:
        return self._last_s - self._first_s

    @property
    def _rate(self) -> float:
        return self._bytes * 8e-6 / self._span_s

    def add(self, chunk: Chunk, now_s: float) -> None:
        """The last byte of a chunk has come, at a time of the viewer's clock (s)."""
        if chunk.gop > self._gop:
            self._close()
            # What came with the first chunk was under way before the clock began.
            self._gop, self._first_s, self._bytes = chunk.gop, now_s, 0
            self._last_s = now_s
        elif chunk.gop == self._gop:  # messages of an earlier one may come later
            self._bytes += chunk.length
            self._last_s = now_s
        if chunk.gop < self.gops and self._is_whole(chunk):
            if now_s <= chunk.gop + 1:
                shown = self.levels[chunk.gop][chunk.tile]
                better = chunk.level if shown == MISSING else min(shown, chunk.level)
                self.levels[chunk.gop][chunk.tile] = better
            else:
                self.late += 1

    def _is_whole(self, chunk: Chunk) -> bool:
        """Whether all of the tile is there with this chunk; chunks come in any order."""
        key = (chunk.gop, chunk.level, chunk.tile)
        there = self._parts.pop(key, 0) + chunk.length
        if there < self.sizes[chunk.gop % len(self.sizes), chunk.level, chunk.tile]:
            self._parts[key] = there
            return False
        return True

    def _close(self) -> None:
        if self._span_s >= LEAST_SPAN_S:
            self.rates.append(self._rate)


class Watcher:
    """A thread that says every 50 ms where the head is and how fast tiles come."""

    def __init__(self, connection: socket.socket, head: Movement, arrivals: Arrivals) -> None:
        """Says nothing before `start`."""
        self._connection, self._head, self._arrivals = connection, head, arrivals
        self.began_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """The viewer's time 0 is now."""
        self.began_s = time.monotonic()
        self._say()
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._stop.set()
        self._thread.join()

    def _say(self) -> None:
        at_s = time.monotonic() - self.began_s
        yaw, pitch = self._head.at(at_s)
        self._connection.sendall(LOOK.pack(at_s, yaw, pitch, self._arrivals.rate_mbps))

    def _work(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            try:
                self._say()
            except OSError:
                return


def watch(args: argparse.Namespace) -> dict[str, Any]:
    """Connects, watches until the last GOP is due, and gives the result."""
    task = Task.read(args.task)
    seconds = task.gops + 1.0
    arrivals = Arrivals(task.sizes, task.gops)
    recorder = Recorder(warmup_ns=0, time_ns=round(seconds * 1e9))
    head = movement(task.seed, seconds + 2)
    connection = connect(args)
    read = socket_reader(connection)
    watcher = Watcher(connection, head, arrivals)
    reader, buffer = Reader(), memoryview(bytearray(READ_BYTES))
    gc.disable()  # a collection would make tiles late
    used = time.process_time()
    watcher.start()
    patience_s = time.monotonic() + args.patience
    ended = False
    while (now := time.monotonic()) < watcher.began_s + task.gops and not ended:
        count = read(buffer)
        now = time.monotonic()
        if count is None:
            if not recorder.started and now > patience_s:
                raise TimeoutError(f"no byte came within {args.patience:g} s")
            continue
        ended = count == 0
        if not recorder.started and count:
            print(FIRST_BYTE, flush=True)
            recorder.start(time.monotonic_ns())
        recorder.add(time.monotonic_ns(), count)
        for chunk in reader.feed(buffer[:count]):
            arrivals.add(chunk, now - watcher.began_s)
    watcher.stop()
    close_at_once(connection)
    if not recorder.started:
        raise TimeoutError(f"no byte came in {task.gops} s")
    return {
        "schema": SCHEMA,
        **recorder.finish(time.monotonic_ns()),
        "cpu_s": round(time.process_time() - used, 4),
        "levels": arrivals.levels,
        "late_tiles": arrivals.late,
        "last_rate_mbps": round(arrivals.rate_mbps, 3),
        "error": "the connection ended before the time was over" if ended else None,
    }


def close_at_once(connection: socket.socket) -> None:
    """Resets the connection: what is under way has no reader any more."""
    linger = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    connection.close()


def run(args: argparse.Namespace) -> int:
    """Watches and writes the result; the exit status is 1 if the transfer broke."""
    return reported(watch, args)
