"""Serves a folder over HTTP/1.1 from a socket with the congestion control under test, or MPTCP."""

import argparse
import functools
import http.server
from pathlib import Path

from sumrate.lab.stream.ends import listen


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Keeps connections open, logs nothing."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        """Nothing: the log is for failures."""


class Server(http.server.ThreadingHTTPServer):
    """Listens on a socket that it is given."""

    daemon_threads = True

    def __init__(self, folder: Path, address: str, port: int, cc: str, *, mptcp: bool) -> None:
        """Begins to listen."""
        handler = functools.partial(Quiet, directory=str(folder))
        super().__init__((address, port), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listen(address, port, cc, mptcp=mptcp)


def run(args: argparse.Namespace) -> int:
    """Serves until it is told to stop."""
    server = Server(args.folder, args.listen, args.port, args.cc, mptcp=args.mptcp)
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    server.serve_forever()
    return 0
