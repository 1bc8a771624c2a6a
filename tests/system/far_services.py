"""What the programs of the matrix are to reach: web pages and a name server, on the far host.

Run: python -m tests.system.far_services FOLDER ADDRESS...
"""

import http.server
import socket
import socketserver
import ssl
import struct
import sys
import threading
from functools import partial
from pathlib import Path

from tests.system.programs import NAME, PLAIN_PORT, TLS_PORT

A, AAAA = 1, 28


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; a sleeping client holds up no other."""

    def log_message(self, *_arguments: object) -> None:
        """Says nothing."""


class Server(http.server.ThreadingHTTPServer):
    """Over IPv4 or IPv6."""

    def __init__(self, address: str, port: int, handler: partial[Quiet]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), handler)


def reply(question: bytes, address: str) -> bytes:
    """The answer to one question (RFC 1035): NAME has the address, nothing else exists."""
    end = question.index(0, 12) + 5
    name, kind = question[12 : end - 4], struct.unpack("!H", question[end - 4 : end - 2])[0]
    labels = NAME.encode().split(b".")
    wanted = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    known = name.lower() == wanted
    found = known and kind == A
    head = question[:2] + struct.pack("!HHHHH", 0x8180 | (0 if known else 3), 1, int(found), 0, 0)
    record = struct.pack("!HHHLH", 0xC00C, A, 1, 5, 4) + socket.inet_aton(address)
    return head + question[12:end] + (record if found else b"")


def name_server(address: str) -> None:
    """Answers over UDP and TCP."""

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            question, out = self.request
            out.sendto(reply(question, address), self.client_address)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while head := self.rfile.read(2):
                answer = reply(self.rfile.read(struct.unpack("!H", head)[0]), address)
                self.wfile.write(struct.pack("!H", len(answer)) + answer)

    for server in (
        socketserver.ThreadingUDPServer((address, 53), Datagram),
        socketserver.ThreadingTCPServer((address, 53), Stream),
    ):
        threading.Thread(target=server.serve_forever).start()


def main() -> None:
    """Serves until it is killed."""
    folder, *addresses = sys.argv[1:]
    handler = partial(Quiet, directory=str(Path(folder) / "www"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(folder) / "certificate.pem", Path(folder) / "key.pem")
    for address in addresses:
        plain, secure = (Server(address, port, handler) for port in (PLAIN_PORT, TLS_PORT))
        secure.socket = context.wrap_socket(
            secure.socket, server_side=True, do_handshake_on_connect=False
        )
        for server in (plain, secure):
            threading.Thread(target=server.serve_forever).start()
    name_server(addresses[0])
    (Path(folder) / "serving").touch()


if __name__ == "__main__":
    main()
