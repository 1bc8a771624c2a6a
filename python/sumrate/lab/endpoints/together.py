"""Plain TCP over every link at the same time, one connection each: nobody puts the bytes together.

What two sockets and these processors carry without a protocol above; each end is one process per
link, so that the kernel may use a core for each.
"""

from contextlib import ExitStack
from dataclasses import dataclass

from sumrate.lab.endpoints.base import (
    IPERF_PORT,
    LoadGenerator,
    Measurement,
    iperf_client,
    iperf_result,
    iperf_server,
)
from sumrate.lab.process import listening, processor_time
from sumrate.lab.scene import Site


@dataclass(frozen=True)
class Together(LoadGenerator):
    """One iperf3 per link, all at once."""

    name: str = "together"
    title: str = "one plain TCP per link, at once"

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """All transfers at the same time; goodputs and CPU times are added."""
        log = site.folder / "iperf.log"
        with ExitStack() as stack:
            servers, clients, answers = [], [], []
            for number in range(len(site.links)):
                server = iperf_server(site, IPERF_PORT + number, log=log)
                servers.append(stack.enter_context(server))
            for number, server in enumerate(servers):
                port = IPERF_PORT + number
                server.wait_until(lambda port=port: listening(site.server, port), "iperf3 listens")  # type: ignore[misc]
            for number, link in enumerate(site.links):
                answer = site.folder / f"iperf-{link.name}.json"
                client = iperf_client(
                    site,
                    link.server_ip,
                    IPERF_PORT + number,
                    seconds=seconds,
                    warmup_s=warmup_s,
                    answer=answer,
                )
                clients.append(stack.enter_context(client))
                answers.append(answer)
            for client in clients:
                client.wait(seconds + warmup_s + 60)
            ends = [iperf_result(c, a) for c, a in zip(clients, answers, strict=True)]
            for server in servers:
                server.stop()
            rates = [end["sum_received"]["bits_per_second"] / 1e6 for end in ends]
            return Measurement(
                goodput_mbps=sum(rates),
                command=" & ".join(client.command_line for client in clients),
                details={
                    "path_mbps": dict(zip([k.name for k in site.links], rates, strict=True)),
                    "bytes": sum(end["sum_received"]["bytes"] for end in ends),
                    **processor_time(client=clients, server=servers),
                },
            )
