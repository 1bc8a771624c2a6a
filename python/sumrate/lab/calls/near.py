"""The near end: sends a message each few milliseconds and times the echoes.

A message that never comes back counts as one that took LOST_NS: a percentile has it among the
slowest, whatever the share of the lost.
"""

import argparse
import gc
import struct
import sys
import threading
import time
from typing import Any

from sumrate.lab.calls.transport import Transport, reach
from sumrate.lab.stream.ends import FIRST_BYTE, reported
from sumrate.lab.stream.record import percentile

SCHEMA = "sumrate.lab.call.v1"
HEAD = struct.Struct("!QQ")
"""A message's number, and when it was sent (ns of the monotonic clock)."""
MOST_BYTES = 1200
LOST_NS = 2_000_000_000
LATE_NS = 150_000_000
"""A voice that is later than this is felt to be (ITU-T G.114)."""
SLOWEST = 100
"""Of so many messages one, and one more, is told by itself: the slowest."""
PERCENTS = {"p50": 50.0, "p99": 99.0, "p999": 99.9}


class Caller:
    """Sends `count` messages, one each `every_ns`, from a thread of its own."""

    def __init__(self, transport: Transport, size: int, every_ns: int, count: int) -> None:
        """Nothing is sent before `start`."""
        self._transport = transport
        self._filling = bytes(size - HEAD.size)
        self._every_ns = every_ns
        self._count = count
        self.error: OSError | None = None
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        due = time.monotonic_ns()
        for number in range(self._count):
            stamp = due
            if (ahead := due - time.monotonic_ns()) > 0:
                time.sleep(ahead / 1e9)
                stamp = time.monotonic_ns()
            # One that is late because the connection took no more keeps the time it was due.
            try:
                self._transport.send(HEAD.pack(number, stamp) + self._filling)
            except OSError as error:
                self.error = error
                return
            due += self._every_ns


def summary(latencies: dict[int, int], first: int, count: int) -> dict[str, Any]:
    """What became of the messages from number `first` on.

    One that is later than a lost one counts as that: to lose a message must not beat being late.

    Args:
        latencies: nanoseconds there and back, by number.
        first: the first that counts.
        count: all that were sent.

    """
    numbers = range(first, count)
    times = sorted(min(latencies.get(number, LOST_NS), LOST_NS) for number in numbers)
    lost = sum(number not in latencies for number in numbers)
    return {
        "offered": len(times),
        "lost_share": lost / len(times),
        "late_share": sum(ns > LATE_NS for ns in times) / len(times),
        **{f"{name}_ms": round(percentile(times, p) / 1e6, 3) for name, p in PERCENTS.items()},
        "max_ms": round(times[-1] / 1e6, 3),
        "slowest_ms": [round(ns / 1e6, 3) for ns in times[-(len(times) // SLOWEST + 1) :]],
    }


def call(args: argparse.Namespace) -> dict[str, Any]:
    """Calls, and gives the result.

    Raises OSError: the far end is not reached, or the connection broke. Raises TimeoutError: no
    echo within the patience.
    """
    transport = reach(args)
    every_ns = round(args.interval * 1e6)
    count = round((args.warmup + args.time) * 1e9 / every_ns)
    first = round(args.warmup * 1e9 / every_ns)
    latencies: dict[int, int] = {}
    caller = Caller(transport, args.bytes, every_ns, count)
    gc.disable()  # a collection would be measured as a late message
    began = time.monotonic()
    caller.thread.start()
    ended: float | None = None
    while len(latencies) < count:
        for message in transport.receive():
            now = time.monotonic_ns()
            number, stamp = HEAD.unpack_from(message)
            if not latencies:
                print(FIRST_BYTE, flush=True)
            latencies.setdefault(number, now - stamp)
        if caller.error:
            raise caller.error
        now_s = time.monotonic()
        if not latencies and now_s - began > args.patience:
            raise TimeoutError(f"no echo came within {args.patience:g} s")
        if ended is None and not caller.thread.is_alive():
            ended = now_s
        if ended is not None and now_s - ended > LOST_NS / 1e9:
            break
    return {
        "schema": SCHEMA,
        "bytes": args.bytes,
        "interval_ms": args.interval,
        **summary(latencies, first, count),
        "error": None,
    }


def near(args: argparse.Namespace) -> int:
    """Calls and writes the result; the exit status is 1 if the call broke."""
    if not HEAD.size <= args.bytes <= MOST_BYTES:
        print(f"error: --bytes must be {HEAD.size} to {MOST_BYTES}", file=sys.stderr)
        return 2
    return reported(call, args)
