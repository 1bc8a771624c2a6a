"""The two machines of an experiment, with explicit and equal TCP settings on both."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sumrate.lab.links import CLIENT, SERVER, Blackout, Emulator, Impairment, Link, Wires, paths
from sumrate.lab.namespaces import Host
from sumrate.lab.priority import raise_threads
from sumrate.lab.slow_start import SETTINGS as METRICS_SETTINGS
from sumrate.lab.slow_start import remember, route_options

SERVICE_IP = "192.168.77.1"
"""A private address of the server machine that no link leads to: only the exit reaches it."""

TCP_SETTINGS = {"net.ipv4.tcp_no_metrics_save": "1"}
"""Set on both hosts: without it a scheme would inherit the RTT and ssthresh of the one before."""

RECORDED_SETTINGS = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_slow_start_after_idle",
)


def radio(name: str, subnet: int, rate_mbps: float, rtt_ms: float, *dark: Blackout) -> Link:
    """A symmetric link of this rate and round-trip time with a queue of 20 ms."""
    direction = Impairment(rate_mbps=rate_mbps, delay_ms=rtt_ms / 2)
    return Link(name, subnet, down=direction, up=direction, blackouts=tuple(dark))


class Site(Protocol):
    """What the programs under test need to know about where they run."""

    client: Host
    server: Host
    links: tuple[Link, ...]
    folder: Path
    """Where logs, keys and answers are left."""
    congestion_control: str


@dataclass
class Scene:
    """Two hosts joined by emulated links, made afresh for every scheme and repetition."""

    client: Host
    server: Host
    links: tuple[Link, ...]
    emulator: Emulator | Wires
    folder: Path
    congestion_control: str

    def raise_emulator(self) -> bool:
        """Keeps programs from holding up the links, where that is granted; False if not.

        For experiments whose bytes are few: the emulator takes little of a processor.
        """
        emulator = self.emulator
        return isinstance(emulator, Emulator) and raise_threads(emulator.process.pid)

    def settings(self) -> dict[str, str]:
        """The recorded TCP settings of the client, and that the server's are the same."""
        values = {key: self.client.sysctl(key) for key in RECORDED_SETTINGS}
        if values != {key: self.server.sysctl(key) for key in RECORDED_SETTINGS}:
            raise RuntimeError("the TCP settings of the two hosts differ")
        return {**values, "congestion control": self.congestion_control}

    def pin_congestion_control(self, link: Link) -> None:
        """Has every connection over this link use the scene's congestion control, on both ends.

        The default of new namespaces cannot be changed everywhere, a route's can.
        """
        for host, source in ((self.client, link.client_ip), (self.server, link.server_ip)):
            host.run(
                [
                    *("ip", "route", "replace", link.network, "dev", link.interface),
                    *("proto", "kernel", "scope", "link", "src", source),
                    *("congctl", self.congestion_control),
                    *route_options(link),
                ]
            )

    def return_by(self, link: Link) -> None:
        """Has the client answer over another wire than the one it receives by."""
        self.client.run(
            [
                *("ip", "route", "replace", f"{link.server_ip}/32", "dev", f"{link.returns}0"),
                *("src", link.client_ip, "congctl", self.congestion_control),
            ]
        )

    def unplug(self, link: Link) -> None:
        """Takes the client's interface of a link down, as when a radio loses its network."""
        self.client.run(["ip", "link", "set", link.interface, "down"])

    def plug(self, link: Link) -> None:
        """Brings it up again, with its route."""
        self.client.run(["ip", "link", "set", link.interface, "up"])
        self.pin_congestion_control(link)


@contextmanager
def scene(
    links: Sequence[Link],
    *,
    seed: int,
    folder: Path,
    congestion_control: str = "cubic",
    settings: Mapping[str, str] | None = None,
    wires: bool = False,
) -> Iterator[Scene]:
    """Builds the hosts and links; everything is removed on leaving.

    Args:
        links: the links between the two hosts.
        seed: seed of the emulator's random choices.
        folder: where configuration, logs and statistics are left.
        congestion_control: name of the kernel's congestion control for every connection.
        settings: further sysctls of both hosts.
        wires: bare interfaces instead of emulated links.

    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        hosts = []
        metrics = METRICS_SETTINGS if any(link.ssthresh for link in links) else {}
        for name in (CLIENT, SERVER):
            host = Host(name)
            stack.callback(host.delete)
            for key, value in {**TCP_SETTINGS, **metrics, **(settings or {})}.items():
                host.sysctl(key, value)
            hosts.append(host)
        client, server = hosts
        server.run(["ip", "address", "add", f"{SERVICE_IP}/32", "dev", "lo"])
        emulator: Emulator | Wires = (
            Wires(links) if wires else Emulator(links, seed=seed, folder=folder)
        )
        stack.enter_context(emulator)
        built = Scene(client, server, paths(links), emulator, folder, congestion_control)
        for link in links:
            if not link.wire:
                built.pin_congestion_control(link)
            if link.returns:
                built.return_by(link)
        for link in links:
            if link.ssthresh:
                remember(client, server, link, folder)
        emulator.stats(reset=True)  # lateness while the links were being made is no matter
        yield built
