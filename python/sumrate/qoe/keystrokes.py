"""Types into a remote terminal as a person does, and times until each character is echoed.

`python -m sumrate.qoe.keystrokes --keys 60 --seed 1 --output FILE -- ssh ... HOST` starts the
command in a pseudo-terminal of its own with `REMOTE` behind it; the remote terminal echoes. The
times between keys are lognormal about a median of 0.2 s, from 0.05 to 1 s: five keys a second with
pauses.
"""

import argparse
import json
import os
import pty
import random
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

READY = b"ready"
REMOTE = "echo rea''dy; exec cat"
"""On the far side; quoted, so that no echo of the command is taken for its output."""
MEDIAN_S, SPREAD, LEAST_S, MOST_S = 0.2, 0.6, 0.05, 1.0
PATIENCE_S = 20.0
LETTERS = b"abcdefghijklmnopqrstuvwxyz"


class NoEchoError(RuntimeError):
    """The remote terminal did not answer in time, or ended."""


def pauses(count: int, seed: int) -> Iterator[float]:
    """Seconds before each key; the same for the same seed."""
    chance = random.Random(f"typing {seed}")
    for _ in range(count):
        yield min(MOST_S, max(LEAST_S, MEDIAN_S * chance.lognormvariate(0.0, SPREAD)))


def until(terminal: int, wanted: bytes) -> None:
    """Reads until these bytes have come.

    Raises:
        NoEchoError: they do not come.

    """
    seen = b""
    end = time.monotonic() + PATIENCE_S
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise NoEchoError(f"no {wanted!r} within {PATIENCE_S:g} s, only {seen[-200:]!r}")
        try:
            came = os.read(terminal, 4096)
        except OSError:  # what a terminal says when its last user has gone
            came = b""
        if not came:
            raise NoEchoError(f"the terminal ended: {seen[-200:]!r}")
        seen += came


def typed(terminal: int, keys: int, seed: int) -> list[float]:
    """Milliseconds until the echo of each key.

    Raises:
        NoEchoError: a key is not echoed.

    """
    found = []
    for number, pause in enumerate(pauses(keys, seed)):
        time.sleep(pause)
        letter = LETTERS[number % 26 : number % 26 + 1]
        began = time.monotonic_ns()
        os.write(terminal, letter)
        until(terminal, letter)
        found.append((time.monotonic_ns() - began) / 1e6)
        if number % 64 == 63:  # a terminal's line is not endless
            os.write(terminal, b"\x15")
            until(terminal, b"\b")
    return found


def main() -> int:
    """Runs the command, types, and writes the times as JSON."""
    parser = argparse.ArgumentParser(prog="sumrate.qoe.keystrokes", description=__doc__)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    began = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        # Ignored under nohup, and inherited: the command would outlive its terminal.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execvp(args.command[0], [*args.command, REMOTE])  # noqa: S606 (no shell is wanted)
    try:
        until(terminal, READY)
        prompt_ms = (time.monotonic() - began) * 1e3
        echoes = typed(terminal, args.keys, args.seed)
        os.write(terminal, b"\x15\x04")
    except NoEchoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    document = {"prompt_ms": prompt_ms, "echo_ms": echoes}
    args.output.write_text(json.dumps(document) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
