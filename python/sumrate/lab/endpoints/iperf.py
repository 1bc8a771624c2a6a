"""Plain TCPs of one iperf3 over the first link: several at once, or one that is paced."""

from dataclasses import dataclass

from sumrate.lab.endpoints.base import LoadGenerator, Measurement, iperf
from sumrate.lab.scene import Site

PACE = ("--fq-rate", "10G")
"""SO_MAX_PACING_RATE above any link's rate: a limit is what turns pacing on. The kernel spreads
segments over the round trip, at twice the window's rate in slow start and at 1.2 times it
afterwards, as with Sumrate's sockets (docs/sender.md, F7)."""


@dataclass(frozen=True)
class Parallel(LoadGenerator):
    """One iperf3 with a TCP for each link, all over the first: a process sends to one address.

    For links that are alike and that nothing but the processors limits.
    """

    name: str = "parallel"
    title: str = "one iperf3 with as many TCPs"

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """All connections of one process at each end; their goodputs are added by it."""
        first, count = site.links[0], len(site.links)
        return iperf(site, first.server_ip, seconds=seconds, warmup_s=warmup_s, connections=count)


@dataclass(frozen=True)
class Paced(LoadGenerator):
    """An iperf3 whose sender's socket is paced."""

    name: str = "paced"
    title: str = "one plain TCP, paced"

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One iperf3 stream over the link."""
        address = site.links[0].server_ip
        return iperf(site, address, seconds=seconds, warmup_s=warmup_s, options=PACE)
