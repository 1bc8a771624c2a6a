"""One plain TCP over the first link that is paced, as Sumrate's sockets are.

SO_MAX_PACING_RATE above any link's rate: the kernel spreads segments over the round trip, at twice
the window's rate in slow start and at 1.2 times it afterwards (docs/sender.md, F7).
"""

from dataclasses import dataclass

from sumrate.lab.endpoints.base import LoadGenerator, Measurement, iperf
from sumrate.lab.scene import Site

LIMIT = ("--fq-rate", "10G")
"""More than any emulated link carries; a limit is what turns pacing on."""


@dataclass(frozen=True)
class Paced(LoadGenerator):
    """An iperf3 whose sender's socket is paced."""

    name: str = "paced"
    title: str = "one plain TCP, paced"

    def check(self) -> None:
        """Plain TCP is always there."""

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One iperf3 stream over the link."""
        address = site.links[0].server_ip
        return iperf(site, address, seconds=seconds, warmup_s=warmup_s, options=LIMIT)
