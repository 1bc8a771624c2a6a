"""The far end: sends back what comes, over TCP and UDP."""

import argparse
import contextlib
import socket
import threading

from sumrate.lab.stream.ends import listen

READ_BYTES = 65_536


def echo_datagrams(port: socket.socket) -> None:
    """Sends every datagram back to where it came from, for ever."""
    while True:
        # A peer that has gone is said by ICMP, as an error of the next call.
        with contextlib.suppress(ConnectionError):
            data, peer = port.recvfrom(READ_BYTES)
            port.sendto(data, peer)


def echo_stream(connection: socket.socket) -> None:
    """Sends every byte back until the peer leaves."""
    with connection, contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(READ_BYTES):
            connection.sendall(data)


def serve(args: argparse.Namespace) -> int:
    """Serves until it is told to stop."""
    listener = listen(args.listen, args.port, args.cc, mptcp=args.mptcp)
    family = socket.AF_INET6 if ":" in args.listen else socket.AF_INET
    datagrams = socket.socket(family, socket.SOCK_DGRAM)
    datagrams.bind((args.listen, args.port))
    threading.Thread(target=echo_datagrams, args=(datagrams,), daemon=True).start()
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=echo_stream, args=(connection,), daemon=True).start()
