"""Two hosts and plain shaped wires between them, on which faults are made.

The links are veth pairs with a token bucket and not the emulator, so that an interface can be
removed and added again, and a fault of the emulator cannot look like one of the transport.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.links import CLIENT, SERVER, Impairment, Link
from sumrate.lab.namespaces import Host, run
from sumrate.lab.scene import SERVICE_IP

TABLE = "fault"
"""Name of the packet filter's table that holds a fault."""


def wire(name: str, subnet: int, rate_mbps: float) -> Link:
    """A link's description; `Bench.plug` makes it."""
    direction = Impairment(rate_mbps=rate_mbps, delay_ms=0.0)
    return Link(name, subnet, down=direction, up=direction)


@dataclass
class Bench:
    """Two hosts and shaped wires between them; has what the endpoints need of a scene."""

    folder: Path
    client: Host
    server: Host
    links: tuple[Link, ...]
    congestion_control: str = "cubic"

    def plug(self, link: Link) -> None:
        """Makes the interface on both hosts, with addresses and rate."""
        name = link.interface
        run(
            [
                *("ip", "link", "add", name, "netns", CLIENT),
                *("type", "veth", "peer", "name", name, "netns", SERVER),
            ]
        )
        for host, address in ((self.client, link.client_ip), (self.server, link.server_ip)):
            host.run(["ip", "address", "add", f"{address}/24", "dev", name])
            rate = f"{link.down.rate_mbps:g}mbit"
            shape = ["rate", rate, "burst", "200k", "latency", "20ms"]
            host.run(["tc", "qdisc", "add", "dev", name, "root", "tbf", *shape])
            host.run(["ip", "link", "set", name, "up"])

    def unplug(self, link: Link) -> None:
        """Removes the interface on both hosts."""
        self.client.run(["ip", "link", "delete", link.interface])

    def refuse(self, link: Link, port: int) -> None:
        """The server answers everything to this port on this link with a reset, until `accept`."""
        match = f"tcp dport {port} counter reject with tcp reset"
        filter_input(self.server, link, match)

    def accept(self) -> None:
        """Ends what `refuse` began."""
        unfilter(self.server)

    def filter(self, links: tuple[Link, ...], rule: str) -> None:
        """Has both hosts do this to what they receive on these links, until `pass_all`.

        Args:
            links: the links.
            rule: an nftables statement, such as `counter drop`; its counter is read by
                `pass_all`.

        """
        for link in links:
            for host in (self.client, self.server):
                filter_input(host, link, rule)

    def pass_all(self) -> int:
        """Ends what `filter` began; gives the number of packets that it concerned."""
        return sum(unfilter(host) for host in (self.client, self.server))


def filter_input(host: Host, link: Link, rule: str) -> None:
    """Adds a rule for what this host receives on the link."""
    host.run(["nft", "add", "table", "inet", TABLE])
    hook = "{ type filter hook input priority 0 ; }"
    host.run(["nft", "add", "chain", "inet", TABLE, "input", hook])
    words = f'iifname "{link.interface}" {rule}'.split()
    host.run(["nft", "add", "rule", "inet", TABLE, "input", *words])


def unfilter(host: Host) -> int:
    """Removes all rules; gives how many packets they counted."""
    listed = ""
    with suppress(RuntimeError):  # there is no table
        listed = host.run(["nft", "list", "table", "inet", TABLE])
        host.run(["nft", "delete", "table", "inet", TABLE])
    words = listed.split()
    return sum(int(words[i + 1]) for i, word in enumerate(words) if word == "packets")


def add_addresses(
    built: Bench, link: Link, first: int, count: int, *, action: str = "add"
) -> list[str]:
    """Gives the client so many addresses more on a link, or takes them away (`delete`)."""
    network = link.client_ip.rpartition(".")[0]
    addresses = [f"{network}.{first + number}" for number in range(count)]
    lines = [f"address {action} {address}/24 dev {link.interface}\n" for address in addresses]
    batch = built.folder / "addresses"
    batch.write_text("".join(lines), encoding="ascii")
    built.client.run(["ip", "-batch", str(batch)])
    return addresses


@contextmanager
def bench(folder: Path, *links: Link) -> Iterator[Bench]:
    """The hosts, with every link plugged in."""
    with ExitStack() as stack:
        hosts = []
        for name in (CLIENT, SERVER):
            host = Host(name)
            stack.callback(host.delete)
            hosts.append(host)
        built = Bench(folder, hosts[0], hosts[1], links)
        built.server.run(["ip", "address", "add", f"{SERVICE_IP}/32", "dev", "lo"])
        for link in links:
            built.plug(link)
        yield built
