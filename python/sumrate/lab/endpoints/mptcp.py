"""Kernel MPTCP over all links: unmodified programs, started by mptcpize."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.endpoints.base import (
    FILE_NAME,
    HTTP_PORT,
    Download,
    Measurement,
    Unavailable,
    curl,
    file_server,
    iperf,
)
from sumrate.lab.payload import Payload
from sumrate.lab.scene import Site

ENABLED = Path("/proc/sys/net/mptcp/enabled")


def configure(site: Site) -> list[str]:
    """Announces the server's other addresses; returns the commands, as they were run."""
    limits = ["ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"]
    shown = []
    for host in (site.client, site.server):
        host.run(limits)
        shown.append(f"{host.name}: {' '.join(limits)}")
    for link in site.links[1:]:
        endpoint = ["ip", "mptcp", "endpoint", "add", link.server_ip, "signal"]
        site.server.run(endpoint)
        shown.append(f"server: {' '.join(endpoint)}")
    return shown


@dataclass(frozen=True)
class KernelMptcp:
    """The kernel's multipath TCP, first subflow on the first link, default scheduler."""

    name: str = "mptcp"
    title: str = "Kernel MPTCP"

    def check(self) -> None:
        """Needs a kernel with MPTCP switched on, and mptcpize."""
        if not ENABLED.exists() or ENABLED.read_text(encoding="ascii").strip() != "1":
            raise Unavailable(f"this kernel has no MPTCP switched on ({ENABLED} is not 1)")
        if shutil.which("mptcpize") is None:
            raise Unavailable("mptcpize is not installed (apt-get install mptcpize)")

    @contextmanager
    def download(self, site: Site, payload: Payload) -> Iterator[Download]:
        """The file server with an MPTCP socket and an mptcpized curl."""
        commands = configure(site)
        address = site.links[0].server_ip
        with file_server(site, payload, address="0.0.0.0", mptcp=True) as server:  # noqa: S104
            url = f"http://{address}:{HTTP_PORT}/{FILE_NAME}"
            yield Download(
                ["mptcpize", "run", *curl(url)],
                [*commands, server.command_line],
                {"file server": server},
            )

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One mptcpized iperf3 stream over all links."""
        configure(site)
        return iperf(
            site,
            site.links[0].server_ip,
            seconds=seconds,
            warmup_s=warmup_s,
            prefix=("mptcpize", "run"),
        )
