"""One TCP connection over one radio at a time, moved between radios at link level.

The model of fast session transfer (FST, IEEE 802.11ad): addresses stay, the frames go by the other
band from one moment to the next, and what was on its way is lost with the band. The moments are
those at which the emulated radio goes dark and returns, so that no detection delays it: hardware
would be slower. Here it is a route that both hosts change at the same time.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sumrate.lab.endpoints.base import (
    FILE_NAME,
    HTTP_PORT,
    Download,
    Measurement,
    Reach,
    curl,
    file_server,
    iperf,
)
from sumrate.lab.endpoints.mptcp import link_named
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.scene import SERVICE_IP, Site

CLIENT_IP = "192.168.77.2"
"""The client's address for the session, whatever radio it is on."""


@dataclass(frozen=True)
class Handover:
    """Plain TCP between two addresses of no radio, over whichever radio works."""

    name: str = "handover"
    title: str = "TCP, link-level handover"
    first: str = ""
    """Name of the radio that is preferred; the first one if empty."""

    def check(self) -> None:
        """Routes are always there."""

    def preferred(self, site: Site) -> Link:
        """The radio that is used while it works."""
        return link_named(site, self.first) if self.first else site.links[0]

    def prepare(self, site: Site) -> None:
        """Gives the client its address and both ends their routes."""
        site.client.run(["ip", "address", "add", f"{CLIENT_IP}/32", "dev", "lo"])
        self.move(site, self.preferred(site))

    def move(self, site: Site, link: Link) -> None:
        """The session goes over this radio from now on."""
        for host, target, source, gateway in (
            (site.client, SERVICE_IP, CLIENT_IP, link.server_ip),
            (site.server, CLIENT_IP, SERVICE_IP, link.client_ip),
        ):
            host.run(
                [
                    *("ip", "route", "replace", f"{target}/32", "via", gateway),
                    *("dev", link.interface, "src", source),
                    *("congctl", site.congestion_control),
                ]
            )

    def moves(self, site: Site) -> list[tuple[float, Link]]:
        """When the session moves, in seconds of the schedule, and where to."""
        return moves(site.links, self.preferred(site))

    @contextmanager
    def download(self, site: Site, payload: Payload) -> Iterator[Download]:
        """The file server on the session's address and a curl to it."""
        self.prepare(site)
        with file_server(site, payload, address=SERVICE_IP) as server:
            url = f"http://{SERVICE_IP}:{HTTP_PORT}/{FILE_NAME}"
            yield Download(curl(url), [server.command_line], {"file server": server})

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One iperf3 stream between the session's addresses."""
        self.prepare(site)
        return iperf(site, SERVICE_IP, seconds=seconds, warmup_s=warmup_s)

    @contextmanager
    def stream(self, site: Site) -> Iterator[Reach]:
        """A plain connection between the session's addresses."""
        self.prepare(site)
        yield Reach(SERVICE_IP, SERVICE_IP)


def moves(links: Sequence[Link], preferred: Link) -> list[tuple[float, Link]]:
    """When a session on `preferred` moves, in seconds, and to which link.

    It leaves a link the moment that this goes dark in both directions, for the first link that is
    not, and returns the moment that the preferred one is back. While all are dark it stays.
    """
    dark = {link.name: [b for b in link.blackouts if b.direction == "both"] for link in links}
    times = sorted({at for found in dark.values() for b in found for at in (b.start_s, b.end_s)})
    order = [preferred, *(link for link in links if link != preferred)]
    current, found = preferred, []
    for at in times:
        light = [
            link for link in order if not any(b.start_s <= at < b.end_s for b in dark[link.name])
        ]
        if light and light[0] != current:
            current = light[0]
            found.append((at, current))
    return found
