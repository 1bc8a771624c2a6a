"""The sender and the receiver themselves, and their command line.

`source` sends without end to whoever connects: as fast as it is taken, or `--paced` in blocks that
begin with the time at which they were due. `sink` connects (plain, MPTCP, through SOCKS5), or reads
a FIFO, and writes what it got as JSON: goodput, bytes in 5 ms bins, the exact gaps of 5 ms and more
between two reads, the longest of all, and the delay of every paced block. Both run on one machine,
so both have one clock. SIGTERM ends a sink early, with the result of what it got.

Neither limits a socket buffer unless a sink is given a `--window`: autotuning works as in any
program. A held source sends when its standard input ends: its connection stands by then. For
uploads the source connects and the sink listens. A block that could not be sent in time because
the connection took no more keeps the stamp of when it was due; one that is only late because this
process woke up late gets the stamp of the moment.
"""

import argparse
import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from sumrate.lab.stream.record import HEADER, Blocks, Recorder
from sumrate.lab.stream.socks import SocksError, connect_through

SCHEMA = "sumrate.lab.stream.v1"
IPPROTO_MPTCP = 262
SEND_BYTES = 1 << 20
READ_BYTES = 1 << 20
SO_MAX_PACING_RATE = 47
FASTEST_PACE = struct.pack("Q", 10**12)
"""Bytes per second: paced by the congestion control alone."""
SO_RCVBUFFORCE = 33
WAKE_S = 0.05
"""How often a silent sink looks at the clock."""
CONNECT_TIMEOUT_S = 15.0
FIRST_BYTE = "first-byte"

Read = Callable[[memoryview], int | None]
"""Reads into a buffer; None when nothing came for WAKE_S."""


def _socket(address: str, *, mptcp: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP if mptcp else 0)


def listen(address: str, port: int, congestion_control: str, *, mptcp: bool) -> socket.socket:
    """A listening socket whose connections inherit the congestion control."""
    listener = _socket(address, mptcp=mptcp)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    listener.bind((address, port))
    listener.listen(64)
    return listener


def send_endlessly(connection: socket.socket) -> None:
    """Sends until the peer leaves."""
    data = memoryview(bytearray(SEND_BYTES))
    with connection, contextlib.suppress(OSError):
        while True:
            connection.sendall(data)


def send_paced(connection: socket.socket, mbps: float, block_bytes: int) -> None:
    """Sends blocks at `mbps` (Mbit/s) until the peer leaves."""
    block = bytearray(block_bytes)
    every_ns = round(block_bytes * 8e3 / mbps)
    with connection, contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        due = time.monotonic_ns()
        while True:
            stamp = due
            if (ahead := due - time.monotonic_ns()) > 0:
                time.sleep(ahead / 1e9)
                stamp = time.monotonic_ns()
            HEADER.pack_into(block, 0, stamp, block_bytes)
            connection.sendall(block)
            due += every_ns


def serve(connection: socket.socket, args: argparse.Namespace, go: threading.Event) -> None:
    """Sends over one connection, once it may."""
    if args.pacing:
        connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, FASTEST_PACE)
    go.wait()
    if args.paced:
        send_paced(connection, args.paced, args.block)
    else:
        send_endlessly(connection)


def set_at_end_of_input(go: threading.Event) -> None:
    """Sets an event when standard input ends."""
    sys.stdin.buffer.read()
    go.set()


def source(args: argparse.Namespace) -> int:
    """Serves until it is told to stop, or sends over the connection that it makes."""
    if args.paced and args.block <= HEADER.size:
        print(f"error: --block must be more than {HEADER.size}", file=sys.stderr)
        return 2
    go = threading.Event()
    if args.hold:
        threading.Thread(target=set_at_end_of_input, args=(go,), daemon=True).start()
    else:
        go.set()
    connection = connect(args) if args.address else None
    listener = None if connection else listen(args.listen, args.port, args.cc, mptcp=args.mptcp)
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    if connection:
        connection.setblocking(True)
        serve(connection, args, go)
    while listener:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, args, go), daemon=True).start()
    return 0


def limit_window(connection: socket.socket, window: int) -> None:
    """Has the peer send at most so many bytes ahead; the kernel forgets it with each new MSS."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window)


def opened(args: argparse.Namespace) -> socket.socket:
    """The sink's connection: the one that it makes, or the first that comes."""
    if args.address:
        return connect(args, args.window)
    connection, _ = listen(args.listen, args.port, args.cc, mptcp=args.mptcp).accept()
    return connection


def connect(args: argparse.Namespace, window: int = 0) -> socket.socket:
    """A connection, ready for data; its peer sends at most `window` bytes ahead, if that is not 0.

    Raises OSError: nobody answered. Raises SocksError: the proxy refused.
    """
    host, port = args.socks or (args.address, args.port)
    connection = _socket(host, mptcp=args.mptcp)
    connection.settimeout(CONNECT_TIMEOUT_S)
    if window:  # a buffer of a fixed size keeps the kernel from raising the window
        connection.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, min(4 * window, 1 << 30))
        limit_window(connection, window)
    if args.bind:
        connection.bind((args.bind, 0))
    connection.connect((host, port))
    if args.socks:
        connect_through(connection, args.address, args.port)
    return connection


def socket_reader(connection: socket.socket, window: int = 0) -> Read:
    """Blocking reads that wake up now and then, at one system call per read without a window."""
    connection.setblocking(True)
    limit = struct.pack("ll", 0, int(WAKE_S * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def read(view: memoryview) -> int | None:
        if window:
            limit_window(connection, window)
        try:
            return connection.recv_into(view)
        except BlockingIOError:
            return None

    return read


def fifo_reader(path: Path) -> Read:
    """Reads a FIFO that another program writes; waits until it opens it."""
    file = os.open(path, os.O_RDONLY)
    os.set_blocking(file, False)
    fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, READ_BYTES)
    ready = select.poll()
    ready.register(file, select.POLLIN)

    def read(view: memoryview) -> int | None:
        if not ready.poll(WAKE_S * 1e3):
            return None
        return os.readv(file, [view])

    return read


class Stopped(Exception):  # noqa: N818  (a request, not a failure)
    """SIGTERM: the result is wanted now."""


def stop_on_sigterm() -> None:
    """Has SIGTERM raise Stopped."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGTERM, stop)


def receive(
    read: Read,
    recorder: Recorder,
    blocks: Blocks | None,
    *,
    patience_s: float,
    on_first_byte: Callable[[], object],
) -> int | None:
    """Reads until the measured time is over.

    Returns when the sender ended, if it ended before that (ns).

    Raises TimeoutError: no first byte within `patience_s` seconds.
    """
    buffer = memoryview(bytearray(READ_BYTES))
    clock = time.monotonic_ns
    end = clock() + round(patience_s * 1e9)
    while True:
        count = read(buffer)
        now = clock()
        if now >= end:
            break
        if count is None:
            continue
        if count == 0:
            return now
        if not recorder.started:
            on_first_byte()
            recorder.start(now)
            end = recorder.end_ns
        recorder.add(now, count)
        if blocks is not None:
            blocks.feed(buffer[:count], now, count=now >= recorder.counted_from_ns)
    if not recorder.started:
        raise TimeoutError(f"no byte came within {patience_s:g} s")
    return None


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Connects, reads, and gives the result."""
    used = 0.0

    def first_byte() -> None:
        nonlocal used
        used = time.process_time()
        print(FIRST_BYTE, flush=True)
        if args.ready:
            args.ready.touch()

    recorder = Recorder(warmup_ns=round(args.warmup * 1e9), time_ns=round(args.time * 1e9))
    blocks = Blocks() if args.paced else None
    gc.disable()  # a collection would be measured as a stall
    began = time.monotonic_ns()
    read = fifo_reader(args.fifo) if args.fifo else socket_reader(opened(args), args.window)
    stopped = False
    stop_on_sigterm()
    try:
        ended = receive(read, recorder, blocks, patience_s=args.patience, on_first_byte=first_byte)
    except Stopped:
        ended, stopped = time.monotonic_ns(), True
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not recorder.started:
        raise ConnectionError("the sender closed the connection before the first byte")
    used = time.process_time() - used
    early = ended is not None and not args.fifo and not stopped
    return {
        "schema": SCHEMA,
        **recorder.finish(ended),
        "first_byte_after_s": round((recorder.first_ns - began) / 1e9, 6),
        "first_byte_at_s": round(recorder.first_ns / 1e9, 6),
        "cpu_s": round(used, 4),
        "delay": blocks.finish() if blocks else None,
        "error": "the connection ended before the time was over" if early else None,
    }


def sink(args: argparse.Namespace) -> int:
    """Measures and writes the result; the exit status is 1 if the transfer broke."""
    return reported(measure, args)


def reported(
    receive: Callable[[argparse.Namespace], dict[str, Any]], args: argparse.Namespace
) -> int:
    """Writes what a client received to the output, or prints it.

    Returns:
        The exit status: 1 if it failed or the result says that the transfer broke.

    """
    try:
        document = receive(args)
    except (OSError, ValueError, SocksError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = json.dumps(document)
    if args.output:
        args.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    if document["error"]:
        print(f"error: {document['error']}", file=sys.stderr)
        return 1
    return 0
