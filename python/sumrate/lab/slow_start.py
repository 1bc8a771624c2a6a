"""Slow start that ends below what a link holds, as after an earlier connection.

A kernel that keeps metrics of its connections has the next one to the same address begin with the
slow-start threshold that the last one left: above it a window grows by congestion avoidance from
the start. Here the route says which threshold that is, and a connection of one byte each way makes
the entry in both kernels.
"""

import argparse
import socket
import sys
import time
from pathlib import Path

from sumrate.lab.links import Link
from sumrate.lab.namespaces import Host
from sumrate.lab.process import Process, listening

SETTINGS = {"net.ipv4.tcp_no_metrics_save": "0", "net.ipv4.tcp_no_ssthresh_metrics_save": "0"}
"""Both hosts need them: a kernel does not keep thresholds unless it is told to."""
PORT = 47_001
PATIENCE_S = 10.0


def route_options(link: Link) -> list[str]:
    """What a link's route says of it, for `ip route`."""
    return ["ssthresh", "lock", str(link.ssthresh)] if link.ssthresh else []


def remember(client: Host, server: Host, link: Link, folder: Path) -> None:
    """Has both kernels keep the threshold of the link's route.

    Raises RuntimeError: the connection could not be made, or a kernel has no entry afterwards.
    """
    own = [sys.executable, "-m", "sumrate.lab.slow_start"]
    log = folder / "slow-start.log"
    with Process([*own, "--listen", link.server_ip], log=log, host=server) as end:
        end.wait_until(lambda: listening(server, PORT), "to listen")
        client.run([*own, "--connect", link.server_ip])
        end.wait(PATIENCE_S)
    for host, peer in ((client, link.server_ip), (server, link.client_ip)):
        give_up = time.monotonic() + PATIENCE_S
        while not _is_kept(host, peer, link.ssthresh):
            if time.monotonic() > give_up:
                raise RuntimeError(
                    f"{host.name} keeps no slow-start threshold for {peer} ({link.name}); is "
                    "TCP's metrics cache built into this kernel?"
                )
            time.sleep(0.05)


def _is_kept(host: Host, peer: str, ssthresh: int) -> bool:
    """Whether the host has an entry of this peer with this threshold."""
    entries = host.run(["ip", "tcp_metrics", "show"]).splitlines()
    return any(
        line.split()[:1] == [peer] and f" ssthresh {ssthresh} " in f"{line} " for line in entries
    )


def _listen(address: str) -> None:
    with socket.create_server((address, PORT)) as listener:
        listener.settimeout(PATIENCE_S)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            connection.sendall(connection.recv(1))


def _connect(address: str) -> None:
    with socket.create_connection((address, PORT), PATIENCE_S) as connection:
        connection.sendall(b"x")
        connection.recv(1)


def main() -> int:
    """One end of the connection."""
    parser = argparse.ArgumentParser(prog="python -m sumrate.lab.slow_start", description=__doc__)
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--listen", metavar="ADDRESS")
    end.add_argument("--connect", metavar="ADDRESS")
    given = parser.parse_args()
    if given.listen:
        _listen(given.listen)
    else:
        _connect(given.connect)
    return 0


if __name__ == "__main__":
    sys.exit(main())
