"""The thesis's coupled mode: each path's window scaled by alpha or beta, on kernel sockets.

Section 4.2.3 of the thesis leaves each TCP's window alone and scales what is scheduled on it:
at most factor * min(cwnd, rwnd) bytes are under way on a path. It gives no formula for the
factors. Here those of paths that share a bottleneck follow from RFC 6356's second goal, to take no
more than one TCP on the best of them would: max(x) / sum(x) with x = cwnd / RTT (equation 4.2's
rate). Paths that share nothing keep 1. Which paths share is told, not found out.

`python -m sumrate.lab.scaling serve --path GROUP@ADDRESS ...` sends; `fetch --path LOCAL@ADDRESS
...` receives on all paths for a while and writes JSON. Paths of one GROUP share a bottleneck.
"""

import argparse
import json
import selectors
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PORT = 5950
STEP_S = 0.001
"""How often the sender looks at its sockets."""
PIECE = memoryview(bytes(64 << 10))
TCP_INFO = struct.Struct("<8x24I4Q4I")
"""The kernel's struct tcp_info up to tcpi_min_rtt; its first eight bytes are flags."""
SND_MSS, UNACKED, SACKED, LOST, RETRANS, RTT_US, CWND = 2, 4, 5, 6, 7, 15, 18
NOTSENT = 30


@dataclass(frozen=True)
class Window:
    """A socket's TCP state: sizes in bytes, RTT in seconds."""

    mss: int
    cwnd: int
    under_way: int
    """In flight and not yet sent."""
    rtt_s: float

    @property
    def rate(self) -> float:
        """The window over the RTT in bytes per second (equation 4.2)."""
        return self.cwnd / max(self.rtt_s, 1e-6)

    @classmethod
    def of(cls, raw: bytes) -> "Window":
        """From the bytes of getsockopt(TCP_INFO)."""
        info = TCP_INFO.unpack(raw[: TCP_INFO.size])
        mss = info[SND_MSS]
        in_flight = info[UNACKED] - info[SACKED] - info[LOST] + info[RETRANS]
        return cls(
            mss=mss,
            cwnd=info[CWND] * mss,
            under_way=max(0, in_flight) * mss + info[NOTSENT],
            rtt_s=info[RTT_US] * 1e-6,
        )


def factors(rates: Sequence[float], groups: Sequence[str]) -> list[float]:
    """The factor of each path, 0 < factor <= 1.

    Args:
        rates: cwnd / RTT of each path.
        groups: name of the bottleneck of each path; paths of one name share it.

    """
    found = []
    for group in groups:
        shared = [rate for rate, other in zip(rates, groups, strict=True) if other == group]
        total = sum(shared)
        found.append(max(shared) / total if total > 0 else 1.0)
    return found


def room(window: Window, factor: float) -> int:
    """How many bytes may be scheduled now: factor * cwnd less what is under way, not negative."""
    return max(0, int(factor * window.cwnd) - window.under_way)


def serve(args: argparse.Namespace) -> int:
    """Accepts one connection per path, then sends for ever, each path within its share."""
    listeners = []
    for _, address in args.path:
        listener = socket.create_server((address, PORT))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, args.cc.encode())
        listeners.append(listener)
    args.ready.touch()
    connections = [listener.accept()[0] for listener in listeners]
    groups = [group for group, _ in args.path]
    for connection in connections:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    looks, cwnd, used = 0, 0, 0
    try:
        while True:
            windows = pump(connections, groups)
            looks += 1
            cwnd += sum(w.cwnd for w in windows)
            used += sum(w.under_way for w in windows)
            time.sleep(STEP_S)
    except OSError:  # the receiver has seen enough
        mean = {"cwnd_bytes": cwnd / max(1, looks), "under_way_bytes": used / max(1, looks)}
        args.output.write_text(json.dumps(mean) + "\n", encoding="utf-8")
        return 0


def pump(connections: Sequence[socket.socket], groups: Sequence[str]) -> list[Window]:
    """Fills every path up to its scaled window, once; the windows as they were before."""
    windows = [
        Window.of(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)) for c in connections
    ]
    scaled = factors([w.rate for w in windows], groups)
    for connection, window, factor in zip(connections, windows, scaled, strict=True):
        left = room(window, factor)
        while left >= window.mss:
            try:
                left -= connection.send(PIECE[: min(left, len(PIECE))])
            except BlockingIOError:
                break
    return windows


def fetch(args: argparse.Namespace) -> int:
    """Receives on all paths at once; counts after the warm-up."""
    waiting = selectors.DefaultSelector()
    names = {}
    for local, address in args.path:
        connection = socket.create_connection((address, PORT), 15, (local, 0))
        connection.setblocking(False)
        waiting.register(connection, selectors.EVENT_READ)
        names[connection.fileno()] = address
    counted = dict.fromkeys(names.values(), 0)
    begin = time.monotonic() + args.warmup
    end = begin + args.time
    buffer = memoryview(bytearray(1 << 20))
    while (now := time.monotonic()) < end:
        for key, _ in waiting.select(0.05):
            received = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
            if now >= begin:
                counted[names[key.fd]] += received
    rates = {address: count * 8e-6 / args.time for address, count in counted.items()}
    args.output.write_text(
        json.dumps({"path_mbps": rates, "bytes": sum(counted.values())}) + "\n", encoding="utf-8"
    )
    return 0


def pair(text: str) -> tuple[str, str]:
    """LEFT@RIGHT as two words."""
    left, _, right = text.partition("@")
    return left, right


def main() -> int:
    """Runs one end."""
    top = argparse.ArgumentParser(prog="sumrate.lab.scaling", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    sender = commands.add_parser("serve", help="send, each path within its share")
    sender.add_argument("--path", type=pair, action="append", metavar="GROUP@ADDRESS")
    sender.add_argument("--cc", default="cubic")
    sender.add_argument("--ready", type=Path, required=True, help="file that is made when ready")
    sender.add_argument("--output", type=Path, required=True, help="mean windows, at the end")
    sender.set_defaults(run=serve)
    receiver = commands.add_parser("fetch", help="receive and count")
    receiver.add_argument("--path", type=pair, action="append", metavar="LOCAL@ADDRESS")
    receiver.add_argument("--time", type=float, default=10.0)
    receiver.add_argument("--warmup", type=float, default=0.0)
    receiver.add_argument("--output", type=Path, required=True)
    receiver.set_defaults(run=fetch)
    args = top.parse_args()
    status: int = args.run(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
