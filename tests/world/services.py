"""What clients reach: servers that say what they were asked, echo, send without end, or are silent.

Run: python -m tests.world.services web|echo|endless|silent PORT
"""

import contextlib
import http.server
import json
import socket
import socketserver
import sys
import threading


class Asked(http.server.BaseHTTPRequestHandler):
    """Answers each request with its source, method, path, headers and body, as JSON."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """Says what was asked."""
        length = int(self.headers.get("Content-Length") or 0)
        said = {
            "source": self.client_address[0].removeprefix("::ffff:"),
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(length).decode("latin-1"),
        }
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def log_message(self, *_arguments: object) -> None:
        """Says nothing."""


class Web(http.server.ThreadingHTTPServer):
    """Over both families."""

    address_family = socket.AF_INET6


class Echo(socketserver.BaseRequestHandler):
    """Sends bytes back until they end."""

    def handle(self) -> None:
        """One connection."""
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Endless(socketserver.BaseRequestHandler):
    """Sends until nobody takes it any more."""

    def handle(self) -> None:
        """One connection."""
        with contextlib.suppress(OSError):
            while True:
                self.request.sendall(bytes(65536))


class Server(socketserver.ThreadingTCPServer):
    """Over both families."""

    address_family = socket.AF_INET6
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1024


def echo_datagrams(port: int) -> None:
    """Sends each datagram back to where it came from."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as own:
        own.bind(("::", port))
        while True:
            data, source = own.recvfrom(65535)
            own.sendto(data, source)


def silence(port: int) -> None:
    """Takes connections and datagrams, and never answers."""
    with (
        socket.create_server(("::", port), family=socket.AF_INET6, backlog=4096),
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("::", port))
        while True:
            datagrams.recv(65535)


def main(kind: str, port: int) -> None:
    """Serves until it is ended."""
    if kind == "web":
        Web(("::", port), Asked).serve_forever()
    if kind == "endless":
        Server(("::", port), Endless).serve_forever()
    if kind == "silent":
        silence(port)
    threading.Thread(target=echo_datagrams, args=(port,), daemon=True).start()
    Server(("::", port), Echo).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
