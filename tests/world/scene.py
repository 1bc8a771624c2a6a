"""A client with two radios, two routers that masquerade, a server, and the Internet behind it.

    c wifi0 10.1.0.2 - 10.1.0.1 lan r1 wan 10.11.0.2 - 10.11.0.1 s1 s
    c lte0  10.2.0.2 - 10.2.0.1 lan r2 wan 10.12.0.2 - 10.12.0.1 s2 s
    s net0  8.20.0.1 - 8.20.0.2 net0 w                203.0.113.1 lo s

The network is what a user has: the client knows default routes only, no address of the server is
its neighbour, and names come from the router of the first radio.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.links import Emulator, Impairment, Link
from sumrate.lab.namespaces import Host, run
from sumrate.lab.process import Process, listening
from sumrate.lab.programs import REPOSITORY, program
from tests.world.node import Node

SERVER_IP, SERVER_PORT = "203.0.113.1", 4433
INTERNET_IP, EXIT_IP = "8.20.0.2", "8.20.0.1"
"""A host behind the server, and the server's address towards it: the exit's."""
SERVER_IP6, INTERNET_IP6 = "2a00:20:203::1", "2a00:20:8::2"
SILENT_NETWORK = "9.9.0.0/16"
"""Addresses on the Internet from which nothing comes back, not even an error."""
SOCKS_PORT, HTTP_PORT = 1080, 8081
WEB_PORT, ECHO_PORT = 80, 7
WIFI, LTE = "wifi0", "lte0"
COUNTED, CUT = "counted", "cut"
"""Tables of the routers' packet filters: what passed, and what must not pass."""
ELEMENT = re.compile(r"([0-9a-f.:]+) \. ([0-9]+) counter packets ([0-9]+)")


@dataclass(frozen=True)
class Wire(Link):
    """A link between any two nodes, whose ends have names and addresses of their own."""

    a: tuple[str, str] = ("", "")
    """Node and interface of one end."""
    b: tuple[str, str] = ("", "")
    network4: str = ""
    """First three octets of the addresses; `a` is HOSTS[0], `b` HOSTS[1]."""
    hosts: tuple[int, int] = (2, 1)
    network6: str = ""
    """The /64 of its IPv6 addresses, if it has some."""

    def addresses(self, end: int) -> list[str]:
        """Addresses with prefix lengths of an end: 0 is `a`."""
        found = [f"{self.network4}.{self.hosts[end]}/24"]
        return found + ([f"{self.network6}::{self.hosts[end]}/64"] if self.network6 else [])

    def ends(self, sharing: Sequence[Link]) -> Iterator[tuple[str, str, str, list[str]]]:
        """Both ends in the emulator's configuration."""
        del sharing
        for end, (node, interface), index in (("a", self.a, 0), ("b", self.b, 1)):
            yield end, node, interface, self.addresses(index)

    def plug(self) -> None:
        """Makes a pair of interfaces without rate and delay."""
        (a, a_name), (b, b_name) = self.a, self.b
        peer = ["type", "veth", "peer", "name", b_name, "netns", b]
        run(["ip", "link", "add", a_name, "netns", a, *peer])
        for index, (node, name) in enumerate((self.a, self.b)):
            for address in self.addresses(index):
                extra = ["nodad"] if ":" in address else []
                run(["ip", "-n", node, "address", "add", address, "dev", name, *extra])
            run(["ip", "-n", node, "link", "set", name, "up"])


def wires(shapes: Mapping[str, Impairment], *, ipv6: bool) -> list[Wire]:
    """The links of the scene, by the names that `shapes` has too."""
    ends = {
        WIFI: (("c", WIFI), ("r1", "lan"), "10.1.0", (2, 1), "fd00:1"),
        LTE: (("c", LTE), ("r2", "lan"), "10.2.0", (2, 1), "fd00:2"),
        "uplink1": (("r1", "wan"), ("s", "s1"), "10.11.0", (2, 1), "fd00:11"),
        "uplink2": (("r2", "wan"), ("s", "s2"), "10.12.0", (2, 1), "fd00:12"),
        "internet": (("s", "net0"), ("w", "net0"), "8.20.0", (1, 2), "2a00:20:8"),
    }
    plain = Impairment(rate_mbps=1000.0, delay_ms=0.0)
    found = []
    for number, (name, (a, b, network4, hosts, network6)) in enumerate(ends.items()):
        shape = shapes.get(name, plain)
        six = network6 if ipv6 else ""
        wire = Wire(name, number, shape, shape, a=a, b=b, network4=network4, hosts=hosts,
                    network6=six)  # fmt: skip
        found.append(wire)
    return found


@dataclass(frozen=True)
class Radio:
    """One of the client's ways: its interface and the router behind it."""

    name: str
    router: Node
    number: int
    metric: int
    """Of the client's default route by it."""

    @property
    def gateway(self) -> str:
        """The router's address for the client."""
        return f"10.{self.number}.0.1"

    @property
    def uplink(self) -> str:
        """The address as which the server sees the client on this way."""
        return f"10.1{self.number}.0.2"


@dataclass
class World:
    """The running scene. Everything that it starts ends with it."""

    folder: Path
    client: Node
    server: Node
    internet: Node
    radios: Mapping[str, Radio]
    ipv6: bool
    links: Mapping[str, Wire]
    stack: ExitStack
    emulator: Emulator | None = None
    names: dict[str, list[str]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    dns_servers: dict[str, Process] = field(default_factory=dict)

    def measured(self, words: str) -> None:
        """Says in the table what Sumrate did here."""
        self.said.append(words)

    def start(
        self, node: Host, argv: Sequence[str], name: str, *, env: Mapping[str, str] | None = None
    ) -> Process:
        """Starts a program on a node; its output goes to `NAME.log` of the folder."""
        process = Process(argv, log=self.folder / f"{name}.log", host=node, env=dict(env or {}))
        self.stack.callback(process.stop)
        return process

    def run(
        self, node: Host, argv: Sequence[str], *, timeout_s: float = 15.0
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program on a node to its end; whoever calls judges its status and output."""
        command = node.command(argv)
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=timeout_s
        )

    def python(self, node: Host, module: str, *words: str, name: str = "") -> Process:
        """Starts a module of these tests on a node."""
        argv = [sys.executable, "-m", f"tests.world.{module}", *words]
        path = {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'python'}"}
        return self.start(node, argv, name or module, env=path)

    # Sumrate

    def serve(
        self,
        *options: str,
        name: str = "serve",
        node: Node | None = None,
        listen: str = f"0.0.0.0:{SERVER_PORT}",
        advertise: Sequence[str] = (f"{SERVER_IP}:{SERVER_PORT}",),
        state: str = "state",
        prefix: Sequence[str] = (),
    ) -> Process:
        """Starts `sumrate serve` and waits for its link file (`link_file`).

        Args:
            options: further flags.
            name: of its log, link file and status socket.
            node: where it runs; the server if absent.
            listen: address and port.
            advertise: what its link names.
            state: folder of its credentials, below the scene's.
            prefix: what the command line begins with.

        """
        link_file = self.link_file(name)
        link_file.unlink(missing_ok=True)
        told = [word for address in advertise for word in ("--advertise", address)]
        argv = [
            *(*prefix, str(program("sumrate")), "serve", "--listen", listen, *told),
            *("--config", "none"),
            *("--state", str(self.folder / state), "--link-file", str(link_file)),
            *("--status-socket", str(self.folder / f"{name}.sock"), *options),
        ]
        process = self.start(node or self.server, argv, name)
        process.wait_until(link_file.exists, "the join link is written")
        return process

    def link_file(self, name: str = "serve") -> Path:
        """Where a server writes its join link."""
        return self.folder / f"{name}.link"

    def credential(self, name: str, *options: str, state: str = "state") -> Path:
        """Makes another credential of the server; gives the file of its link."""
        file = self.folder / f"{name}.link"
        argv = [str(program("sumrate")), "credential", "add", "--name", name, *options]
        where = ["--state", str(self.folder / state)]
        said = self.server.run([*argv, *where, "--advertise", f"{SERVER_IP}:{SERVER_PORT}"])
        file.write_text(said.splitlines()[0], encoding="utf-8")
        file.chmod(0o600)
        return file

    def up(
        self,
        *options: str,
        name: str = "up",
        link: str | Path | None = None,
        node: Node | None = None,
        socks_port: int = SOCKS_PORT,
        wait: bool = True,
        prefix: Sequence[str] = (),
    ) -> Process:
        """Starts `sumrate up` and waits until it serves.

        Args:
            options: further flags; without `--path` it finds its interfaces itself.
            name: of its log and status socket.
            link: join link, or the file with it; the server's if absent.
            node: where it runs; the client if absent.
            socks_port: port of its SOCKS5 proxy.
            wait: whether to wait until it is ready.
            prefix: what the command line begins with.

        """
        ready = self.folder / f"{name}.ready"
        ready.unlink(missing_ok=True)
        given = self.link_file() if link is None else link
        argv = [
            *(
                *prefix,
                str(program("sumrate")),
                "up",
                f"@{given}" if isinstance(given, Path) else given,
            ),
            *("--socks", f"127.0.0.1:{socks_port}", "--config", "none"),
            *("--status-socket", str(self.folder / f"{name}.sock")),
            *(() if "--state" in options else ("--state", str(self.folder / f"{name}.state"))),
            *("--ready-file", str(ready), *options),
        ]
        process = self.start(node or self.client, argv, name)
        if wait:
            process.wait_until(ready.exists, "the proxy serves")
        return process

    def status(self, name: str = "up") -> dict[str, Any]:
        """The answer of `sumrate status --json` for the `serve` or `up` of this name."""
        argv = [str(program("sumrate")), "status", "--socket", str(self.folder / f"{name}.sock")]
        answer: dict[str, Any] = json.loads(self.client.run([*argv, "--json"]))
        return answer

    def active_paths(self, name: str = "up") -> set[str]:
        """Names of the paths that are active now."""
        sessions = self.status(name)["sessions"]
        return {p["name"] for s in sessions for p in s["paths"] if p["health"] == "active"}

    def wait_for_paths(self, daemon: Process, *wanted: str, timeout_s: float = 15.0) -> None:
        """Waits until exactly these paths are active: both radios if none is named."""
        expected = set(wanted or self.radios)
        what = f"paths {sorted(expected)} active"
        daemon.wait_until(lambda: self.active_paths() == expected, what, timeout_s)

    # What is reached

    def web(self, node: Node | None = None, port: int = WEB_PORT) -> Process:
        """Starts a web server that keeps connections open and answers with what it was asked."""
        on = node or self.internet
        process = self.python(on, "services", "web", str(port), name=f"web-{on.name}-{port}")
        process.wait_until(lambda: listening(on, port), "the web server listens")
        return process

    def echo(self, node: Node | None = None, port: int = ECHO_PORT) -> Process:
        """Starts a server that sends TCP bytes and UDP datagrams back."""
        on = node or self.internet
        process = self.python(on, "services", "echo", str(port), name=f"echo-{on.name}-{port}")
        process.wait_until(lambda: listening(on, port), "the echo server listens")
        return process

    def curl(self, url: str, *options: str, proxy: str | None = None) -> str:
        """What curl gets on the client: its output, or `curl: ERROR`.

        Args:
            url: the target.
            options: further flags of curl.
            proxy: URL of a proxy; the SOCKS5 proxy of `up` if absent, none if empty.

        """
        given = f"socks5h://127.0.0.1:{SOCKS_PORT}" if proxy is None else proxy
        through = ["--proxy", given] if given else ["--noproxy", "*"]
        argv = ["curl", "-sS", "--max-time", "8", *through, *options, url]
        done = self.run(self.client, argv)
        return done.stdout if done.returncode == 0 else done.stderr.strip()

    def service(self, kind: str, node: Node, port: int) -> Process:
        """Starts another service of `services.py`.

        Args:
            kind: `endless` sends without end; `silent` takes everything, and never answers.
            node: where it runs.
            port: for TCP, and for UDP of a silent one.

        """
        process = self.python(node, "services", kind, str(port), name=f"{kind}-{node.name}")
        process.wait_until(lambda: listening(node, port), f"the {kind} server listens")
        return process

    # Names

    def name(self, name: str, *addresses: str) -> None:
        """Has the Internet's name server answer a name with these addresses from now on."""
        self.names[name] = list(addresses)
        lines = [f"{a} {n}\n" for n, given in self.names.items() for a in given]
        (self.folder / "names").write_text("".join(lines), encoding="utf-8")
        self.internet_dns.send_signal(1)

    @property
    def internet_dns(self) -> Process:
        """The name server on the Internet."""
        return self.dns_servers["w"]

    def dns(self, node: Node, *options: str) -> Process:
        """(Re)starts dnsmasq on a node with these options instead of those before."""
        before = self.dns_servers.pop(node.name, None)
        if before:
            before.stop()
        argv = [
            *("dnsmasq", "--keep-in-foreground", "--user=root", "--group=root", "--no-resolv"),
            *("--conf-file=/dev/null", "--pid-file=", "--no-hosts", "--log-facility=-", *options),
        ]
        process = self.start(node, argv, f"dns-{node.name}")
        process.wait_until(lambda: listening(node, 53), "the name server listens")
        self.dns_servers[node.name] = process
        return process

    # Faults

    def cut(self, radio: str, how: str = "drop", *, router_too: bool = False) -> None:
        """Lets nothing pass between the radio's router and the rest, until `restore`.

        Args:
            radio: its interface at the client.
            how: `drop`, or what nftables does with those packets that it concerns, such as
                `reject with tcp reset`.
            router_too: whether the client also cannot reach the router itself.

        """
        hooks = ("forward", "input", "output") if router_too else ("forward",)
        router = self.radios[radio].router
        rule = how if how == "drop" else f"{how}; drop"
        router.filter(CUT, dict.fromkeys(hooks, rule), priority=-10)

    def restore(self, radio: str) -> None:
        """Ends what `cut` began."""
        self.radios[radio].router.unfilter(CUT)

    def carrier(self, radio: str, *, up: bool) -> None:
        """Takes the router's end of a radio down or up: the client's interface follows.

        Addresses and routes stay, as nothing manages the client's network.
        """
        self.radios[radio].router.run(["ip", "link", "set", "lan", "up" if up else "down"])

    def unplug(self, radio: str) -> None:
        """Removes the client's interface, as when a device is pulled out."""
        self.client.run(["ip", "link", "delete", radio])

    def plug(self, radio: str) -> None:
        """Makes it again, with its address and default route."""
        self.links[radio].plug()
        route(self.client, self.radios[radio], ipv6=self.ipv6)

    def shape(self, link: str, direction: str = "both", **values: object) -> None:
        """Changes a link that the scene was built with a shape for (see `Impairment`)."""
        if not self.emulator:
            raise RuntimeError("no link of this scene is emulated")
        self.emulator.set(link, direction, **values)

    # Counts

    def syns(self, radio: str) -> dict[str, int]:
        """SYNs that the radio's router got from the client, by `ADDRESS:PORT`, since `reset`."""
        listed = self.radios[radio].router.run(["nft", "list", "table", "inet", COUNTED])
        return {f"{host}:{port}": int(count) for host, port, count in ELEMENT.findall(listed)}

    def reset_counts(self) -> None:
        """Counts from 0 on."""
        for radio in self.radios.values():
            count_syns(radio.router)


def count_syns(router: Node) -> None:
    """Counts the SYNs that the router's client sends, by destination."""
    rules = []
    for name, kind in (("four", "ipv4_addr"), ("six", "ipv6_addr")):
        rules.append(
            f"set {name} {{ type {kind} . inet_service; flags dynamic; size 65535; counter; }}"
        )
    for name, match in (("four", "ip"), ("six", "ip6")):
        rules.append(
            f"chain {name}_syns {{ type filter hook prerouting priority -300; "
            f'iifname "lan" tcp flags & (syn | ack) == syn '
            f"update @{name} {{ {match} daddr . tcp dport counter }}; }}"
        )
    router.table(COUNTED, *rules)


def route(client: Node, radio: Radio, *, ipv6: bool) -> None:
    """Gives the client its default route by a radio."""
    way = ["dev", radio.name, "metric", str(radio.metric)]
    client.run(["ip", "route", "replace", "default", "via", radio.gateway, *way])
    if ipv6:
        gateway = f"fd00:{radio.number}::1"
        client.run(["ip", "-6", "route", "replace", "default", "via", gateway, *way])


def masquerade(router: Node, number: int, *, ipv6: bool) -> None:
    """Makes a node the router of a radio."""
    router.forwards()
    router.run(["ip", "route", "add", "default", "via", f"10.1{number}.0.1"])
    if ipv6:
        router.run(["ip", "-6", "route", "add", "default", "via", f"fd00:1{number}::1"])
    chain = "chain post { type nat hook postrouting priority 100; oifname wan masquerade; }"
    router.table("nat", chain)
    count_syns(router)


@contextmanager
def world(
    folder: Path, *, shapes: Mapping[str, Impairment] | None = None, ipv6: bool = False
) -> Iterator[World]:
    """Builds the scene; everything is removed on leaving.

    Args:
        folder: an empty one.
        shapes: links (`wifi0`, `lte0`, `uplink1`, `uplink2`, `internet`) that `sumrate link`
            gives delay, loss and rate.
        ipv6: whether there are IPv6 addresses and routes too.

    """
    with ExitStack() as stack:
        nodes = {name: Node(name, folder) for name in ("c", "r1", "r2", "s", "w")}
        for node in nodes.values():
            stack.callback(node.delete)
        links = {wire.name: wire for wire in wires(shapes or {}, ipv6=ipv6)}
        shaped = [wire for name, wire in links.items() if name in (shapes or {})]
        for wire in links.values():
            if wire not in shaped:
                wire.plug()
        emulator = None
        if shaped:
            emulator = stack.enter_context(Emulator(shaped, seed=1, folder=folder))
        radios = {
            WIFI: Radio(WIFI, nodes["r1"], 1, metric=100),
            LTE: Radio(LTE, nodes["r2"], 2, metric=200),
        }
        built = World(
            folder, nodes["c"], nodes["s"], nodes["w"], radios, ipv6, links, stack, emulator
        )
        connect(built)
        yield built


def connect(built: World) -> None:
    """Addresses, routes and name servers on top of the links."""
    client, server, internet, ipv6 = built.client, built.server, built.internet, built.ipv6
    server.run(["ip", "address", "add", f"{SERVER_IP}/32", "dev", "lo"])
    server.forwards()
    server.run(["ip", "route", "add", "default", "via", INTERNET_IP])
    if ipv6:
        server.run(["ip", "-6", "route", "add", "default", "via", INTERNET_IP6])
    internet.run(["ip", "route", "add", "default", "via", EXIT_IP])
    internet.run(["ip", "route", "add", "blackhole", SILENT_NETWORK])
    internet.forwards()
    if ipv6:
        server.run(["ip", "address", "add", f"{SERVER_IP6}/128", "dev", "lo", "nodad"])
        internet.run(["ip", "-6", "route", "add", "default", "via", "2a00:20:8::1"])
    for radio in built.radios.values():
        masquerade(radio.router, radio.number, ipv6=ipv6)
        route(client, radio, ipv6=ipv6)
    # As Debian sets it: answers come in by the radio that is not the best way to their source.
    client.sysctl("net.ipv4.conf.all.rp_filter", "2")
    names = built.folder / "names"
    names.touch()
    built.dns(internet, f"--addn-hosts={names}", "--local=/#/")
    built.dns(built.radios[WIFI].router, f"--server={INTERNET_IP}")
    client.name_servers(built.radios[WIFI].gateway)
    server.name_servers(INTERNET_IP)
    built.name("server.test", SERVER_IP)
    built.name("internet.test", INTERNET_IP, *([INTERNET_IP6] if ipv6 else []))
