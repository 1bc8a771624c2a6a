"""The few bytes of SOCKS5 (RFC 1928) that a client without a password needs."""

import ipaddress
import socket
import struct

VERSION = 5
NO_AUTHENTICATION = 0
CONNECT = 1
UDP_ASSOCIATE = 3
IPV4, NAME, IPV6 = 1, 3, 4
ADDRESS_BYTES = {IPV4: 4, IPV6: 16}


class SocksError(RuntimeError):
    """The proxy refused; the message has its answer."""


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise SocksError("the proxy closed the connection during the handshake")
        data += more
    return data


def _target(address: str, port: int) -> bytes:
    """An IP address or a name, and a port, as the protocol writes them."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        name = address.encode("idna")
        target = bytes([NAME, len(name)]) + name
    else:
        target = bytes([IPV4 if ip.version == 4 else IPV6]) + ip.packed
    return target + struct.pack("!H", port)


def request(address: str, port: int) -> bytes:
    """The CONNECT request to an IP address or a name."""
    return bytes([VERSION, CONNECT, 0]) + _target(address, port)


def datagram_head(address: str, port: int) -> bytes:
    """What stands before a datagram to the proxy, and before those that come back (section 7)."""
    return bytes(3) + _target(address, port)


def _ask(connection: socket.socket, wanted: bytes, what: str) -> tuple[str, int]:
    """Greets the proxy and makes a request; the address and port that it answers with."""
    connection.sendall(bytes([VERSION, 1, NO_AUTHENTICATION]))
    version, method = _exactly(connection, 2)
    if version != VERSION or method != NO_AUTHENTICATION:
        raise SocksError(f"the proxy answered version {version}, method {method}")
    connection.sendall(wanted)
    version, reply, _, kind = _exactly(connection, 4)
    if version != VERSION or reply != 0:
        raise SocksError(f"the proxy could not {what} (reply {reply})")
    length = ADDRESS_BYTES.get(kind) or _exactly(connection, 1)[0]
    bound = _exactly(connection, length)
    name = bound.decode("idna") if kind == NAME else str(ipaddress.ip_address(bound))
    (port,) = struct.unpack("!H", _exactly(connection, 2))
    return name, port


def connect_through(connection: socket.socket, address: str, port: int) -> None:
    """Asks the proxy at the other end of `connection` to connect; afterwards data flows.

    Raises SocksError: the proxy wants a password, speaks something else, or could not connect.
    """
    _ask(connection, request(address, port), f"connect to {address}:{port}")


def associate(connection: socket.socket) -> tuple[str, int]:
    """Asks the proxy to carry datagrams; where to send them, as long as `connection` is open.

    Raises SocksError: the proxy wants a password, speaks something else, or carries none.
    """
    wanted = bytes([VERSION, UDP_ASSOCIATE, 0]) + _target("0.0.0.0", 0)  # noqa: S104 (from any)
    return _ask(connection, wanted, "carry datagrams")
