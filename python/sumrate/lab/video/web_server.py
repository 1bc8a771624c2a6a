"""Serves a folder over HTTP/1.1 from a socket with the congestion control under test, or MPTCP."""

import argparse
import functools
import http.server
import sys
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


def main() -> int:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(
        prog="sumrate.lab.video.web_server",
        description=__doc__,
        epilog="example: python -m sumrate.lab.video.web_server --folder out/cache/hls-0 --port 80",
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--listen", default="0.0.0.0")  # noqa: S104  (in a private namespace)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cc", default="cubic", help="congestion control (cubic)")
    parser.add_argument("--mptcp", action="store_true", help="an MPTCP socket")
    parser.add_argument("--ready", type=Path, help="file that is made when it is ready")
    args = parser.parse_args()
    server = Server(args.folder, args.listen, args.port, args.cc, mptcp=args.mptcp)
    if args.ready:
        args.ready.write_text("ready\n", encoding="ascii")
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
