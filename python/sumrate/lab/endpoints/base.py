"""What every scheme offers, and the parts that several of them use."""

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from sumrate.lab.payload import Payload
from sumrate.lab.process import Process, ProcessFailedError, listening
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Site

HTTP_PORT = 8080
IPERF_PORT = 5201
STREAM_PORT = 5202
FILE_NAME = "file.bin"


class Unavailable(Exception):  # noqa: N818  (a state that is reported, not a failure)
    """The scheme cannot run here; the message says why."""


@dataclass
class Download:
    """A scheme that is ready: the curl command to run on the client, and what runs behind it."""

    curl: list[str]
    commands: list[str]
    processes: dict[str, Process] = field(default_factory=dict)


@dataclass
class Reach:
    """How a plain program on the client reaches a TCP server on the server machine.

    `processes` are the scheme's own programs, which run while this is valid.
    """

    address: str
    """Where the client connects to (through `socks`, if that is given)."""
    listen_address: str
    """Where the server listens."""
    port: int = STREAM_PORT
    listen_port: int = STREAM_PORT
    socks: tuple[str, int] | None = None
    """Host and port of a SOCKS5 proxy on the client."""
    mptcp: bool = False
    """Both ends open an MPTCP socket."""
    commands: list[str] = field(default_factory=list)
    processes: dict[str, Process] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """What a bench run of one scheme gave."""

    goodput_mbps: float
    command: str
    details: Mapping[str, Any]


class Scheme(Protocol):
    """A transport under test."""

    @property
    def name(self) -> str:
        """Its name in results."""

    @property
    def title(self) -> str:
        """Its name in reports."""

    def check(self) -> None:
        """Raises Unavailable if it cannot run on this machine."""

    def download(self, site: Site, payload: Payload) -> AbstractContextManager[Download]:
        """Starts what the scheme needs and gives the curl command."""

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """Sends from the server to the client for some seconds and gives the goodput."""

    def stream(self, site: Site) -> AbstractContextManager[Reach]:
        """Starts what the scheme needs for one plain TCP connection from client to server.

        Raises Unavailable if the scheme carries no TCP connection of other programs.
        """


def file_server(site: Site, payload: Payload, *, address: str, mptcp: bool = False) -> Process:
    """Starts the HTTP server on the server machine and waits until it accepts connections."""
    ready = site.folder / "file-server.ready"
    ready.unlink(missing_ok=True)
    argv = [
        *(sys.executable, "-m", "sumrate.lab.fileserver"),
        *("--listen", address, "--port", str(HTTP_PORT), "--file", str(payload.path)),
        *("--cc", site.congestion_control, "--ready", str(ready)),
    ]
    process = Process(
        [*argv, "--mptcp"] if mptcp else argv,
        log=site.folder / "file-server.log",
        host=site.server,
        env={"PYTHONPATH": str(REPOSITORY / "python")},
    )
    process.wait_until(ready.exists, "the file server accepts connections")
    return process


def curl(url: str, *options: str) -> list[str]:
    """A plain curl that downloads to its standard output."""
    return ["curl", "--silent", "--show-error", "--fail", *options, url]


def iperf(
    site: Site, address: str, *, seconds: float, warmup_s: float, prefix: tuple[str, ...] = ()
) -> Measurement:
    """Runs iperf3 from the server to the client.

    Raises:
        ProcessFailedError: a side failed; the message has what it said.

    """
    server_argv = [*prefix, "iperf3", "--server", "--one-off", "--port", str(IPERF_PORT)]
    client_argv = [
        *(*prefix, "iperf3", "--client", address, "--port", str(IPERF_PORT), "--reverse"),
        *("--congestion", site.congestion_control, "--time", f"{seconds:g}", "--json"),
    ]
    if warmup_s:
        client_argv += ["--omit", f"{warmup_s:g}"]
    answer = site.folder / "iperf.json"
    answer.unlink(missing_ok=True)
    log = site.folder / "iperf.log"
    with Process(server_argv, log=log, host=site.server) as server:
        server.wait_until(lambda: listening(site.server, IPERF_PORT), "iperf3 listens")
        with Process(client_argv, log=log, host=site.client, stdout=answer) as client:
            status = client.wait(seconds + warmup_s + 60)
    result = json.loads(answer.read_text(encoding="utf-8") or "{}")
    if status != 0 or "end" not in result or "sum_received" not in result["end"]:
        raise ProcessFailedError(f"`{client.command_line}`: {result.get('error', client.tail())}")
    end = result["end"]
    return Measurement(
        goodput_mbps=end["sum_received"]["bits_per_second"] / 1e6,
        command=client.command_line,
        details={
            "retransmits": end.get("sum_sent", {}).get("retransmits"),
            "congestion_control": end.get("sender_tcp_congestion"),
            "series_mbps": [i["sum"]["bits_per_second"] / 1e6 for i in result["intervals"]],
            "cpu_seconds": {"client": client.cpu_seconds, "server": server.cpu_seconds},
        },
    )
