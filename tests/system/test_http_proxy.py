"""Requests of real programs through the HTTP proxy: each reaches the host that it names."""

import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from tests.watch.running import needs_sumrate, running

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Greedy:
    """A web server that keeps each connection open and answers whatever comes on it."""

    listener: socket.socket
    received: bytes = b""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when a connection has ended."""

    @property
    def url(self) -> str:
        host, port = self.listener.getsockname()
        return f"http://{host}:{port}"

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    while part := connection.recv(65536):
                        self.received += part
                        if self.received.endswith(b"\r\n\r\n"):
                            connection.sendall(ANSWER)
                self.over.set()


@contextlib.contextmanager
def greedy(address: str) -> Iterator[Greedy]:
    """Starts the server on a free port of an address."""
    with socket.create_server((address, 0)) as listener:
        server = Greedy(listener)
        threading.Thread(target=server.serve, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def with_curl(proxy: str, first: str, second: str) -> None:
    argv = ["curl", "-sS", "--noproxy", "", "-x", f"http://{proxy}", "-b", "of=whom"]
    done = subprocess.run(
        [*argv, f"{first}/page", f"{second}/login"], capture_output=True, check=True
    )
    assert done.stdout == b"okok"


def with_requests(proxy: str, first: str, second: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.proxies = {"http": f"http://{proxy}"}
        session.headers["Cookie"] = "of=whom"
        for url in (f"{first}/page", f"{second}/login"):
            assert session.get(url, timeout=50).text == "ok"


def pipelined(proxy: str, first: str, second: str) -> None:
    host, port = proxy.rsplit(":", 1)
    asked = "".join(
        f"GET {url} HTTP/1.1\r\nHost: x\r\nCookie: of=whom\r\n\r\n"
        for url in (f"{first}/page", f"{second}/login")
    )
    with socket.create_connection((host, int(port)), timeout=50) as client:
        client.sendall(asked.encode())
        answered = b""
        while answered.count(b"\r\n\r\nok") < 2 and (part := client.recv(65536)):
            answered += part
    assert answered.count(b"HTTP/1.1 200 ") == 2


@needs_sumrate
@pytest.mark.parametrize("client", [with_curl, with_requests, pipelined])
def test_each_request_reaches_its_own_host(
    client: Callable[[str, str, str], None], tmp_path: Path
) -> None:
    up = ["--http", "127.0.0.1:0"]
    with (
        greedy("127.0.0.1") as first,
        greedy("127.0.0.2") as second,
        running(tmp_path, serve=[], up=up) as ends,
    ):
        client(ends.client["http"], first.url, second.url)
        assert first.over.wait(50) and second.over.wait(50)
    assert first.received.startswith(b"GET /page ") and second.received.startswith(b"GET /login ")
    for server in (first, second):
        assert server.received.count(b"GET ") == 1, server.received
        assert server.received.count(b"of=whom") == 1
