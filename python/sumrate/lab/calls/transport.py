"""How messages reach the far end: as datagrams, or one after the other on a TCP connection."""

import argparse
import socket
from collections.abc import Iterator
from typing import Protocol

from sumrate.lab.stream.ends import CONNECT_TIMEOUT_S, connect
from sumrate.lab.stream.socks import associate, datagram_head

WAKE_S = 0.05
"""How often a silent receiver looks at the clock."""
LONGEST = 65_536


class Transport(Protocol):
    """Carries messages to the far end and back."""

    def send(self, message: bytes) -> None:
        """Sends one."""

    def receive(self) -> Iterator[bytes]:
        """What has come within WAKE_S, if anything."""


class Stream:
    """Messages of one size on a TCP connection."""

    def __init__(self, connection: socket.socket, size: int) -> None:
        """`connection` leads to the far end."""
        self._connection = connection
        self._size = size
        self._rest = b""
        # For the receiver; the sender's messages fit into the socket's buffer for minutes.
        connection.settimeout(WAKE_S)

    def send(self, message: bytes) -> None:
        """Sends one."""
        self._connection.sendall(message)

    def receive(self) -> Iterator[bytes]:
        """What has come within WAKE_S.

        Raises ConnectionError: the far end, or what is between, has closed the connection.
        """
        try:
            data = self._connection.recv(LONGEST)
        except TimeoutError:
            return
        if not data:
            raise ConnectionError("the connection was closed during the call")
        data = self._rest + data
        whole = len(data) - len(data) % self._size
        self._rest = data[whole:]
        for start in range(0, whole, self._size):
            yield data[start : start + self._size]


class Datagrams:
    """Messages as UDP datagrams, each with `head` before it on the wire."""

    def __init__(self, port: socket.socket, head: bytes, control: socket.socket | None) -> None:
        """`port` is connected; the association of a proxy lasts as long as `control`."""
        self._port = port
        self._head = head
        self._control = control
        port.settimeout(WAKE_S)

    def send(self, message: bytes) -> None:
        """Sends one; what the network refuses is lost."""
        try:
            self._port.send(self._head + message)
        except OSError:
            return

    def receive(self) -> Iterator[bytes]:
        """What has come within WAKE_S."""
        try:
            data = self._port.recv(LONGEST)
        except (TimeoutError, ConnectionError):
            return
        if len(data) > len(self._head):
            yield data[len(self._head) :]


def reach(args: argparse.Namespace) -> Transport:
    """The way to the far end that the flags name.

    Raises OSError: nobody answered. Raises SocksError: the proxy refused.
    """
    if not args.datagrams:
        connection = connect(args)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(connection, args.bytes)
    family = socket.AF_INET6 if ":" in args.address else socket.AF_INET
    port = socket.socket(family, socket.SOCK_DGRAM)
    if not args.socks:
        port.connect((args.address, args.port))
        return Datagrams(port, b"", None)
    control = socket.create_connection(args.socks, timeout=CONNECT_TIMEOUT_S)
    port.connect(associate(control))
    return Datagrams(port, datagram_head(args.address, args.port), control)
