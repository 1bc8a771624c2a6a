"""The few bytes of SOCKS5 (RFC 1928) that a client without a password needs."""

import ipaddress
import socket
import struct

VERSION = 5
NO_AUTHENTICATION = 0
CONNECT = 1
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


def request(address: str, port: int) -> bytes:
    """The CONNECT request to an IP address or a name."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        name = address.encode("idna")
        target = bytes([NAME, len(name)]) + name
    else:
        target = bytes([IPV4 if ip.version == 4 else IPV6]) + ip.packed
    return bytes([VERSION, CONNECT, 0]) + target + struct.pack("!H", port)


def connect_through(connection: socket.socket, address: str, port: int) -> None:
    """Asks the proxy at the other end of `connection` to connect; afterwards data flows.

    Raises:
        SocksError: the proxy wants a password, speaks something else, or could not connect.

    """
    connection.sendall(bytes([VERSION, 1, NO_AUTHENTICATION]))
    version, method = _exactly(connection, 2)
    if version != VERSION or method != NO_AUTHENTICATION:
        raise SocksError(f"the proxy answered version {version}, method {method}")
    connection.sendall(request(address, port))
    version, reply, _, kind = _exactly(connection, 4)
    if version != VERSION or reply != 0:
        raise SocksError(f"the proxy could not connect to {address}:{port} (reply {reply})")
    length = ADDRESS_BYTES.get(kind) or _exactly(connection, 1)[0]
    _exactly(connection, length + 2)
