"""One link alone: plain TCP."""

from collections.abc import Iterator
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
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.scene import Site


@dataclass(frozen=True)
class SinglePath:
    """Plain TCP over one of the links."""

    link: Link
    title: str

    @property
    def name(self) -> str:
        """The link's name."""
        return self.link.name

    def check(self) -> None:
        """Plain TCP is always there."""

    @contextmanager
    def download(self, site: Site, payload: Payload) -> Iterator[Download]:
        """The file server on the link's server address and a curl to it."""
        with file_server(site, payload, address=self.link.server_ip) as server:
            url = f"http://{self.link.server_ip}:{HTTP_PORT}/{FILE_NAME}"
            yield Download(curl(url), [server.command_line], {"file server": server})

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One iperf3 stream over the link."""
        return iperf(site, self.link.server_ip, seconds=seconds, warmup_s=warmup_s)

    @contextmanager
    def stream(self, site: Site) -> Iterator[Reach]:
        """A plain connection to the link's server address."""
        yield Reach(self.link.server_ip, self.link.server_ip, datagrams=True)
