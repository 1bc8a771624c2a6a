"""TQUIC over all links: multipath QUIC, its own HTTP server and client, encrypted.

The server answers on an address that no link leads to, and each of the client's addresses has its
own route to it, so that every QUIC path stays on its link. The client writes the body into a FIFO,
which the sink of the method `stream` reads: the goodput is what an application gets, in order.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.base import FILE_NAME, Download, Measurement, Reach, Unavailable
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.process import Process, ProcessFailedError, processor_time
from sumrate.lab.programs import MissingProgramError, peer
from sumrate.lab.scene import SERVICE_IP, Site
from sumrate.lab.stream.driver import PROGRAM, run_sink, timing

PORT = 4443
HOST_NAME = "example.org"
FIRST_TABLE = 100
"""Number of the first link's routing table; the next links' follow."""
FASTEST_MBPS = 800.0
"""The server reads the whole file into memory before it answers, which takes seconds for each GB.
So the file lasts the measured time at this rate; what is faster is measured until its end."""
SPARE_S = 3.0
UDP_PAYLOAD = 1400
"""Its default of 1200 would cost it a seventh of what a link carries."""
SAMPLE_S = 0.1
SCHEDULERS = ("minrtt", "roundrobin")
"""Of its own, by its names; its third one, `redundant`, adds nothing up."""
CONGESTION_CONTROL = {"cubic": "CUBIC", "bbr": "BBR"}
"""Its name for each of the kernel's algorithms (its own implementations)."""


def congestion_control(name: str) -> str:
    """TQUIC's name of a congestion control.

    Raises Unavailable: it does not have it.
    """
    if name not in CONGESTION_CONTROL:
        raise Unavailable(f"TQUIC has no congestion control {name}")
    return CONGESTION_CONTROL[name]


def protocol_options(algorithm: str, links: int, scheduler: str) -> list[str]:
    """The flags that both ends share: multipath, scheduler, congestion control."""
    return [
        *("--congestion-control-algor", congestion_control(algorithm)),
        *("--enable-multipath", "--multipath-algor", scheduler),
        *("--send-udp-payload-size", str(UDP_PAYLOAD)),
        *("--active-cid-limit", str(max(4, 2 * links)), "--log-level", "ERROR"),
    ]


def client_command(
    links: Sequence[Link], algorithm: str, scheduler: str, folder: Path
) -> list[str]:
    """One request over all links, its body written into `folder`."""
    return [
        *(str(peer("tquic_client")), "--connect-to", f"{SERVICE_IP}:{PORT}"),
        *("--local-addresses", ",".join(link.client_ip for link in links)),
        *protocol_options(algorithm, len(links), scheduler),
        *("--dump-dir", str(folder), f"https://{HOST_NAME}/{FILE_NAME}"),
    ]


def file_bytes(links: Sequence[Link], seconds: float) -> int:
    """How large the file is: enough for the time."""
    total = sum(link.down.rate_mbps for link in links)
    return int(min(total, FASTEST_MBPS) * 125e3 * (seconds + SPARE_S))


def intervals(bins: Mapping[str, Any]) -> list[dict[str, float]]:
    """The sink's bins as the intervals of 0.1 s that a benchmark reports."""
    width = round(SAMPLE_S / bins["step_s"])
    ends = [0, *bins["bytes"][width - 1 :: width]]
    return [
        {
            "start_s": round(i * SAMPLE_S, 3),
            "end_s": round((i + 1) * SAMPLE_S, 3),
            "goodput_mbps": (after - before) * 8e-6 / SAMPLE_S,
        }
        for i, (before, after) in enumerate(pairwise(ends))
    ]


def add_routes(site: Site) -> list[str]:
    """Has each of the client's addresses reach the server over its own link; the commands."""
    shown = []
    for number, link in enumerate(site.links):
        table = str(FIRST_TABLE + number)
        route = ["ip", "route", "replace", SERVICE_IP, "via", link.server_ip, "table", table]
        rule = ["ip", "rule", "add", "from", link.client_ip, "table", table]
        for command in (route, rule):
            site.client.run(command)
            shown.append(f"client: {' '.join(command)}")
    return shown


def certificate(site: Site) -> tuple[Path, Path]:
    """A key and a certificate that it signed itself, as files."""
    certificate_file, key = site.folder / "tquic.crt", site.folder / "tquic.key"
    site.server.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={HOST_NAME}"),
            *("-keyout", str(key), "-out", str(certificate_file)),
        ]
    )
    return certificate_file, key


@dataclass(frozen=True)
class Tquic:
    """Multipath QUIC with one of its own schedulers."""

    name: str = "tquic"
    title: str = "TQUIC (multipath QUIC)"
    options: tuple[str, ...] = ("minrtt",)
    """The scheduler, one of `SCHEDULERS`."""

    def check(self) -> None:
        """Needs what `make peers` installs, openssl for a certificate, and a known scheduler."""
        if self.options not in {(name,) for name in SCHEDULERS}:
            known, given = " or ".join(SCHEDULERS), " ".join(self.options)
            raise Unavailable(f"TQUIC's scheduler is {known}, not {given!r}")
        try:
            for program in ("tquic_server", "tquic_client"):
                peer(program)
        except MissingProgramError as error:
            raise Unavailable(str(error)) from error
        if shutil.which("openssl") is None:
            raise Unavailable("openssl is not installed (apt-get install openssl)")

    def download(self, site: Site, payload: Payload) -> contextlib.AbstractContextManager[Download]:
        """Its client is no curl."""
        raise Unavailable("TQUIC comes with its own HTTP client; curl cannot speak through it")

    def stream(self, site: Site) -> contextlib.AbstractContextManager[Reach]:
        """Its programs forward nothing."""
        raise Unavailable(
            "TQUIC's programs carry HTTP requests only, no other program's connection"
        )

    @contextlib.contextmanager
    def server(self, site: Site, size: int) -> Iterator[Process]:
        """The HTTP server with a file of `size` zero bytes."""
        root = site.folder / "tquic"
        root.mkdir(exist_ok=True)
        with (root / FILE_NAME).open("wb") as file:
            file.truncate(size)
        certificate_file, key = certificate(site)
        argv = [
            *(str(peer("tquic_server")), "--listen", f"{SERVICE_IP}:{PORT}", "--root", str(root)),
            *("--cert", str(certificate_file), "--key", str(key)),
            *protocol_options(site.congestion_control, len(site.links), self.options[0]),
        ]
        with Process(argv, log=site.folder / "tquic-server.log", host=site.server) as process:
            process.wait_until(
                lambda: bool(site.server.run(["ss", "-Hlun", f"sport = :{PORT}"]).strip()),
                "tquic_server listens",
            )
            yield process

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One download, measured from its first byte for the given seconds or to its end."""
        routes = add_routes(site)
        size = file_bytes(site.links, seconds + warmup_s)
        folder = site.folder / "tquic-body"
        folder.mkdir(exist_ok=True)
        fifo, output = folder / FILE_NAME, site.folder / "tquic.json"
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
        sink = [*PROGRAM, "sink", "--fifo", str(fifo), *timing(seconds, warmup_s, output)]
        argv = client_command(site.links, site.congestion_control, self.options[0], folder)
        with (
            self.server(site, size) as server,
            Process(argv, log=site.folder / "tquic-client.log", host=site.client) as client,
        ):
            try:
                document, _ = run_sink(site, sink, output, measured_s=seconds + warmup_s)
            except ProcessFailedError as error:
                raise ProcessFailedError(f"{error}; tquic_client: {client.tail()}") from error
            client.kill()
        return Measurement(
            goodput_mbps=document["goodput_mbps"],
            command=client.command_line,
            details={
                **{key: value for key, value in document.items() if key != "bins"},
                "bytes": document["counted_bytes"],
                "intervals": intervals(document["bins"]),
                "server_command": server.command_line,
                "routes": routes,
                "file_bytes": size,
                **processor_time(client=[client], server=[server]),
            },
        )
