"""A real headless Chromium on the client host, driven over a Unix socket."""

import json
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import MissingProgramError
from sumrate.lab.scene import Site
from sumrate.qoe.carriage import Carriage

FOLDER = Path(__file__).parent / "browser"
DRIVER = FOLDER / "load.js"
LIBRARY = FOLDER / "node_modules" / "playwright-core"
BROWSERS = ("chromium", "chromium-headless-shell", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # it runs as root of its namespaces, which Chromium's sandbox refuses
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
)
READY_S = 60.0
"""Time for a browser to start on a busy machine."""


@dataclass(frozen=True)
class Loaded:
    """When a page was there, in ms from the start of its navigation on, and what came."""

    onload_ms: float
    """The load event: everything that the document, its scripts and styles drew in is there."""
    fcp_ms: float | None
    """First contentful paint."""
    lcp_ms: float | None
    """Largest contentful paint so far."""
    names: tuple[str, ...]
    """Addresses of all objects, the document's first."""
    bytes: int
    """Over the network, headers included."""
    body_bytes: int
    """Size of all objects, those from the cache too."""
    protocols: tuple[str, ...]


def parse(line: str) -> Loaded:
    """What the driver answered.

    Raises:
        ValueError: the page, or an object of it, was not loaded; or it is no answer.

    """
    try:
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise ValueError(found["error"])
        if found["failed"]:
            raise ValueError(f"failed: {', '.join(found['failed'][:5])}")
        return Loaded(
            float(found["onload_ms"]),
            found["fcp_ms"],
            found["lcp_ms"],
            tuple(found["names"]),
            int(found["bytes"]),
            int(found["body_bytes"]),
            tuple(found["protocols"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"no answer of the driver: {line[:200]!r}") from error


def check() -> str:
    """The browser's path.

    Raises:
        MissingProgramError: the browser, node or the library is not there; the message says what
            brings it.

    """
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise MissingProgramError("chromium not found: run `apt-get install chromium` as root")
    if shutil.which("node") is None:
        raise MissingProgramError("node not found: run `apt-get install nodejs npm` as root")
    if not LIBRARY.is_dir():
        raise MissingProgramError("playwright-core is not installed: run `make browser`")
    return found


def settings(executable: str, carriage: Carriage, key_hash: str, wrapper: Path) -> dict[str, Any]:
    """How the browser is started; `wrapper` is written where its command line has a prefix."""
    arguments = [*ARGUMENTS, f"--ignore-certificate-errors-spki-list={key_hash}"]
    if carriage.prefix:
        prefix = " ".join(carriage.prefix)
        wrapper.write_text(f'#!/bin/sh\nexec {prefix} {executable} "$@"\n', encoding="ascii")
        wrapper.chmod(0o755)
        executable = str(wrapper)
    # A browser resolves names at the far end of a SOCKS5 proxy by itself.
    proxy = carriage.proxy.replace("socks5h://", "socks5://")
    if not proxy:
        arguments.append("--no-proxy-server")
    return {"executable": executable, "arguments": arguments, "proxy": proxy}


class Browser:
    """A browser that waits for pages to load."""

    def __init__(self, process: Process, connection: socket.socket) -> None:
        """Takes the driver and the connection to it."""
        self.process = process
        self._connection = connection
        self._answers = connection.makefile("r", encoding="utf-8")

    def begin_afresh(self) -> None:
        """Forgets what is cached and closes all connections, which still says so to the servers.

        Raises:
            ProcessFailedError: the browser is gone.

        """
        answer = self._ask({"afresh": True}, READY_S)
        if answer.strip() != '{"afresh":true}':
            tail = self.process.tail(400)
            raise ProcessFailedError(f"the browser did not begin afresh: {answer[:200]!r} {tail}")

    def load(self, url: str, *, objects: int, timeout_s: float) -> Loaded:
        """Loads a page.

        Args:
            url: its address.
            objects: how many it has, the document too.
            timeout_s: a page that is not there by then has failed.

        Raises:
            ProcessFailedError: the page was not loaded as a whole, or the browser is gone.

        """
        request = {"url": url, "objects": objects, "timeout_ms": timeout_s * 1e3}
        try:
            return parse(self._ask(request, timeout_s + 15.0))
        except ValueError as error:
            raise ProcessFailedError(f"{url}: {error} {self.process.tail(400)}") from error

    def _ask(self, request: Mapping[str, Any], timeout_s: float) -> str:
        self._connection.settimeout(timeout_s)
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            return self._answers.readline()
        except OSError as error:
            raise ProcessFailedError(f"{request}: {error} {self.process.tail(400)}") from error


@contextmanager
def browser(site: Site, how: Mapping[str, Any], prefix: Sequence[str] = ()) -> Iterator[Browser]:
    """A Chromium on the client host.

    Raises:
        ProcessFailedError: it did not start.

    """
    path = site.folder / "browser.sock"
    path.unlink(missing_ok=True)
    home = site.folder / "home"
    home.mkdir(exist_ok=True)
    argv = [*prefix, "node", str(DRIVER), str(path), json.dumps(how)]
    env = {"HOME": str(home), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    with (
        Process(argv, log=site.folder / "browser.log", host=site.client, env=env) as process,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        there = partial(connected, connection, path)
        process.wait_until(there, "the browser is there", READY_S)
        yield Browser(process, connection)


def connected(connection: socket.socket, path: Path) -> bool:
    """Whether the driver has taken the connection: its socket is there before it listens."""
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True
