"""As many plain TCPs as there are links, of one iperf3, over the first link.

A process has one address to send to, so this is for links that are alike and that nothing but the
processors limits: what one program moves over so many sockets.
"""

from dataclasses import dataclass

from sumrate.lab.endpoints.base import LoadGenerator, Measurement, iperf
from sumrate.lab.scene import Site


@dataclass(frozen=True)
class Parallel(LoadGenerator):
    """One iperf3 with a TCP for each link."""

    name: str = "parallel"
    title: str = "one iperf3 with as many TCPs"

    def check(self) -> None:
        """Plain TCP is always there."""

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """All connections of one process at each end; their goodputs are added by it."""
        first, count = site.links[0], len(site.links)
        return iperf(site, first.server_ip, seconds=seconds, warmup_s=warmup_s, connections=count)
