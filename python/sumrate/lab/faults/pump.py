"""Keeps a session busy: `python -m sumrate.lab.faults.pump`, checked transfers one after another.

Each worker draws size, direction and pause from its own seed. What became of every transfer is a
line of JSON in the log; bytes delivered so far stand in the counter file, eight per worker, and may
be read at any time. SIGUSR1: finish what was begun and end; SIGTERM: give it up and end.
"""

import argparse
import json
import math
import mmap
import random
import signal
import struct
import threading
import time
from dataclasses import asdict
from pathlib import Path

from sumrate.lab.faults.transfer import Order, carry_out

COUNTER = struct.Struct("<Q")
REFUSED_PAUSE_S = 0.2
MAX_PAUSE_S = 0.3


class Pump:
    """The workers, and what they write down."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Opens the log and the counters."""
        self.args = args
        self.finishing = threading.Event()
        self.stopping = threading.Event()
        self.log = args.log.open("a", encoding="utf-8", buffering=1)
        self.lock = threading.Lock()
        with args.counter.open("w+b") as file:
            file.truncate(COUNTER.size * args.workers)
            self.counters = mmap.mmap(file.fileno(), 0)

    def work(self, number: int) -> None:
        """One worker, until it is told to end."""
        generator = random.Random(self.args.seed * 1000 + number)
        total = 0

        def progress(count: int) -> None:
            nonlocal total
            total += count
            COUNTER.pack_into(self.counters, number * COUNTER.size, total)

        while not self.finishing.is_set():
            order = self.draw(generator, number)
            begun = time.monotonic()
            proxy = ("127.0.0.1", self.args.socks)
            target = (self.args.target, self.args.port)
            result = carry_out(order, proxy, target, progress, self.stopping.is_set)
            line = {"begun": begun, "ended": time.monotonic(), **asdict(order), **asdict(result)}
            with self.lock:
                self.log.write(json.dumps(line) + "\n")
            pause = generator.random() * MAX_PAUSE_S if self.args.pause else 0.0
            if result.outcome in ("refused", "broken"):
                pause = REFUSED_PAUSE_S
            self.finishing.wait(pause)

    def draw(self, generator: random.Random, number: int) -> Order:
        """The next transfer: sizes are as often in each octave."""
        low, high = math.log(self.args.smallest), math.log(self.args.largest)
        size = int(math.exp(generator.uniform(low, high)))
        up = generator.random() < 0.5 if self.args.direction == "both" else number % 2 == 1
        up = up and self.args.direction != "down"
        return Order("up" if up else "down", generator.getrandbits(63), size)


def main() -> None:
    """Works until it is told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socks", type=int, required=True, help="port of the proxy")
    parser.add_argument("--target", required=True, help="address of the origin")
    parser.add_argument("--port", type=int, required=True, help="port of the origin")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--smallest", type=int, required=True, metavar="BYTES")
    parser.add_argument("--largest", type=int, required=True, metavar="BYTES")
    parser.add_argument("--direction", choices=("down", "alternate", "both"), default="down")
    parser.add_argument("--pause", action="store_true", help="pause between transfers")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--counter", type=Path, required=True)
    args = parser.parse_args()
    pump = Pump(args)

    def end(number: int, _frame: object) -> None:
        pump.finishing.set()
        if number == signal.SIGTERM:
            pump.stopping.set()

    signal.signal(signal.SIGUSR1, end)
    signal.signal(signal.SIGTERM, end)
    workers = [threading.Thread(target=pump.work, args=(i,)) for i in range(args.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
