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
    Reach,
    Unavailable,
    curl,
    file_server,
    iperf,
)
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.scene import Site

ENABLED = Path("/proc/sys/net/mptcp/enabled")


def configure(site: Site, first: Link, backup: Link | None = None) -> list[str]:
    """Announces the server's other addresses; returns the commands, as they were run.

    Args:
        site: the two hosts.
        first: the link of the first subflow.
        backup: the link that is used only while no other works.

    """
    limits = ["ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"]
    shown = []
    for host in (site.client, site.server):
        host.run(limits)
        shown.append(f"{host.name}: {' '.join(limits)}")
    for link in site.links:
        if link != first:
            endpoint = ["ip", "mptcp", "endpoint", "add", link.server_ip, "signal"]
            endpoint += ["backup"] if link == backup else []
            site.server.run(endpoint)
            shown.append(f"server: {' '.join(endpoint)}")
    return shown


def link_named(site: Site, name: str) -> Link:
    """One of the links, by its name.

    Raises Unavailable: there is none of this name.
    """
    for link in site.links:
        if link.name == name:
            return link
    raise Unavailable(f"there is no link {name!r} here")


@dataclass(frozen=True)
class KernelMptcp:
    """The kernel's multipath TCP over all links at once, default scheduler."""

    name: str = "mptcp"
    title: str = "Kernel MPTCP"
    first: str = ""
    """Name of the link that the connection begins on; the first one if empty."""

    def check(self) -> None:
        """Needs a kernel with MPTCP switched on, and mptcpize."""
        if not ENABLED.exists() or ENABLED.read_text(encoding="ascii").strip() != "1":
            raise Unavailable(f"this kernel has no MPTCP switched on ({ENABLED} is not 1)")
        if shutil.which("mptcpize") is None:
            raise Unavailable("mptcpize is not installed (apt-get install mptcpize)")

    def first_link(self, site: Site) -> Link:
        """The link that the connection begins on."""
        return link_named(site, self.first) if self.first else site.links[0]

    def backup_link(self, site: Site) -> Link | None:
        """The link that is a backup, if one is."""
        return None

    def prepare(self, site: Site) -> tuple[str, list[str]]:
        """Configures both hosts; the server's address to connect to, and the commands."""
        first = self.first_link(site)
        return first.server_ip, configure(site, first, self.backup_link(site))

    def plugged(self, site: Site, link: Link) -> None:
        """Announces the interface again, as a network manager does: the kernel forgot it."""
        endpoint = ["ip", "mptcp", "endpoint", "add", link.client_ip, "dev", link.interface]
        for line in site.client.run(["ip", "mptcp", "endpoint", "show"]).splitlines():
            if line.split()[0] == link.client_ip:
                words = line.split()
                number = words[words.index("id") + 1]
                site.client.run(["ip", "mptcp", "endpoint", "delete", "id", number])
        site.client.run([*endpoint, "subflow", "fullmesh"])

    @contextmanager
    def download(self, site: Site, payload: Payload) -> Iterator[Download]:
        """The file server with an MPTCP socket and an mptcpized curl."""
        address, commands = self.prepare(site)
        with file_server(site, payload, address="0.0.0.0", mptcp=True) as server:  # noqa: S104
            url = f"http://{address}:{HTTP_PORT}/{FILE_NAME}"
            yield Download(
                ["mptcpize", "run", *curl(url)],
                [*commands, server.command_line],
                {"file server": server},
            )

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One mptcpized iperf3 stream over all links."""
        address, _ = self.prepare(site)
        return iperf(site, address, seconds=seconds, warmup_s=warmup_s, prefix=("mptcpize", "run"))

    @contextmanager
    def stream(self, site: Site) -> Iterator[Reach]:
        """An MPTCP socket at both ends."""
        address, commands = self.prepare(site)
        yield Reach(address, "0.0.0.0", mptcp=True, commands=commands)  # noqa: S104


@dataclass(frozen=True)
class KernelMptcpBackup(KernelMptcp):
    """Kernel MPTCP with one link that carries data only while the others do not work."""

    name: str = "mptcp-backup"
    title: str = "Kernel MPTCP, one link as backup"
    backup: str = ""
    """Name of the link that is the backup; the last one if empty."""

    def backup_link(self, site: Site) -> Link | None:
        """The backup; none where there is only one link."""
        if len(site.links) == 1:
            return None
        return link_named(site, self.backup) if self.backup else site.links[-1]

    def first_link(self, site: Site) -> Link:
        """The connection cannot begin on the backup."""
        if self.first:
            return super().first_link(site)
        return next(link for link in site.links if link != self.backup_link(site))
