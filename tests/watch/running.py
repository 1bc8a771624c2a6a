"""A server and a client on this machine's loopback, with a file to carry."""

import contextlib
import http.server
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.programs import binary_folder

PATIENCE_S = 60

needs_sumrate = pytest.mark.skipif(
    not (binary_folder() / "sumrate").exists(), reason="sumrate is not built: `make build`"
)


@dataclass
class Running:
    """Both ends, and what they said when they were ready."""

    server: dict[str, Any]
    client: dict[str, Any]
    web: str
    pids: dict[str, int]
    """Process ids of `serve` and `up`."""

    def fetch(self, size: int) -> subprocess.Popen[bytes]:
        """Starts a download of `size` bytes through the client."""
        proxy = f"socks5h://{self.client['socks']}"
        argv = ["curl", "-sS", "--fail", "--noproxy", "", "--proxy", proxy, "-o", "/dev/null"]
        return subprocess.Popen([*argv, f"http://{self.web}/{size}"])


class _Bytes(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        size = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        block = bytes(1 << 16)
        with contextlib.suppress(OSError):
            while size > 0:
                size -= self.wfile.write(block[:size])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's)
        pass


@contextlib.contextmanager
def running(
    scratch: Path, *, serve: list[str], up: list[str] | Callable[[str], list[str]]
) -> Iterator[Running]:
    """Runs `sumrate serve` and `sumrate up` with further flags, and a web server behind them.

    Flags of `up` may depend on the address at which the server listens.
    """
    sumrate = str(binary_folder() / "sumrate")
    environment = {
        "PATH": "/usr/bin:/bin",
        "XDG_RUNTIME_DIR": str(scratch),
        "XDG_STATE_HOME": str(scratch / "state"),
    }
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Bytes)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    pids = {}
    with contextlib.ExitStack() as stack:
        stack.callback(web.shutdown)

        def start(*argv: str) -> dict[str, Any]:
            process = subprocess.Popen(
                [sumrate, *argv], stdout=subprocess.PIPE, env=environment, text=True
            )
            stack.callback(process.wait, PATIENCE_S)
            stack.callback(process.terminate)
            pids[argv[0]] = process.pid
            assert process.stdout is not None
            line: dict[str, Any] = json.loads(process.stdout.readline())
            return line

        listening = start(
            *("serve", "--json", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8", *serve)
        )
        flags = up(listening["listen"][0]) if callable(up) else up
        ready = start("up", listening["link"], "--json", "--socks", "127.0.0.1:0", *flags)
        yield Running(listening, ready, f"127.0.0.1:{web.server_address[1]}", pids)
