"""What every scheme offers, and the parts that several of them use."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never, Protocol, runtime_checkable

from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.process import Process, ProcessFailedError, listening, processor_time
from sumrate.lab.scene import Site
from sumrate.lab.stream.driver import serving

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
    datagrams: bool = False
    """UDP reaches the server's address too (through the proxy's UDP ASSOCIATE, if there is one)."""
    event_log: Path | None = None
    """Where the sender writes what happens to its paths, if it was asked to."""
    messages: bool = False
    """What the server sends is framed as messages (`crates/fbdt/examples/message_relay.rs`)."""
    commands: list[str] = field(default_factory=list)
    processes: dict[str, Process] = field(default_factory=dict)
    counters: Callable[[], Mapping[str, tuple[float, str]]] = dict
    """What the scheme itself counted so far: metric, value and unit."""


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


@runtime_checkable
class FollowsInterfaces(Protocol):
    """A scheme that has to be told when an interface comes back."""

    def plugged(self, site: Site, link: Link) -> None:
        """Does what the system's network manager would do."""


class LoadGenerator:
    """A scheme that makes its own bytes and carries nobody else's."""

    def check(self) -> None:
        """Plain TCP is always there."""

    def download(self, site: Site, payload: Payload) -> Never:
        """It carries no files."""
        del site, payload
        raise Unavailable("a load generator carries no files")

    def stream(self, site: Site) -> Never:
        """It carries nothing of other programs."""
        del site
        raise Unavailable("a load generator carries no other program's bytes")


def file_server(
    site: Site, payload: Payload, *, address: str, mptcp: bool = False
) -> AbstractContextManager[Process]:
    """The HTTP server on the server machine, once it accepts connections."""
    reach = Reach(address, address, listen_port=HTTP_PORT, mptcp=mptcp)
    return serving(site, reach, "file-server", ["file-server", "--file", str(payload.path)])


def curl(url: str, *options: str) -> list[str]:
    """A plain curl that downloads to its standard output."""
    return ["curl", "--silent", "--show-error", "--fail", *options, url]


def iperf_server(site: Site, port: int, *, log: Path, prefix: tuple[str, ...] = ()) -> Process:
    """Starts an iperf3 on the server that ends after one transfer."""
    argv = [*prefix, "iperf3", "--server", "--one-off", "--port", str(port)]
    return Process(argv, log=log, host=site.server)


def iperf_client(
    site: Site,
    address: str,
    port: int,
    *,
    seconds: float,
    warmup_s: float,
    answer: Path,
    prefix: tuple[str, ...] = (),
    connections: int = 1,
    options: tuple[str, ...] = (),
) -> Process:
    """Starts the iperf3 on the client that receives from `address`; JSON goes to `answer`."""
    argv = [
        *(*prefix, "iperf3", "--client", address, "--port", str(port), "--reverse"),
        *("--congestion", site.congestion_control, "--time", f"{seconds:g}", "--json"),
        *options,
    ]
    if warmup_s:
        argv += ["--omit", f"{warmup_s:g}"]
    if connections > 1:
        argv += ["--parallel", str(connections)]
    answer.unlink(missing_ok=True)
    return Process(argv, log=site.folder / "iperf.log", host=site.client, stdout=answer)


def iperf_result(client: Process, answer: Path) -> dict[str, Any]:
    """What an iperf3 that has ended says at its end, with `intervals` beside it.

    Raises ProcessFailedError: it failed; the message has what it said.
    """
    result = json.loads(answer.read_text(encoding="utf-8") or "{}")
    if client.poll() != 0 or "sum_received" not in result.get("end", {}):
        raise ProcessFailedError(f"`{client.command_line}`: {result.get('error', client.tail())}")
    return {**result["end"], "intervals": result["intervals"]}


def iperf(
    site: Site,
    address: str,
    *,
    seconds: float,
    warmup_s: float,
    prefix: tuple[str, ...] = (),
    connections: int = 1,
    options: tuple[str, ...] = (),
) -> Measurement:
    """Runs iperf3 from the server to the client; several connections are of one process.

    Raises ProcessFailedError: a side failed; the message has what it said.
    """
    answer = site.folder / "iperf.json"
    with iperf_server(site, IPERF_PORT, log=site.folder / "iperf.log", prefix=prefix) as server:
        server.wait_until(lambda: listening(site.server, IPERF_PORT), "iperf3 listens")
        with iperf_client(
            site,
            address,
            IPERF_PORT,
            seconds=seconds,
            warmup_s=warmup_s,
            answer=answer,
            prefix=prefix,
            connections=connections,
            options=options,
        ) as client:
            client.wait(seconds + warmup_s + 60)
    end = iperf_result(client, answer)
    return Measurement(
        goodput_mbps=end["sum_received"]["bits_per_second"] / 1e6,
        command=client.command_line,
        details={
            "retransmits": end.get("sum_sent", {}).get("retransmits"),
            "congestion_control": end.get("sender_tcp_congestion"),
            "series_mbps": [i["sum"]["bits_per_second"] / 1e6 for i in end["intervals"]],
            **processor_time(client=[client], server=[server]),
        },
    )
