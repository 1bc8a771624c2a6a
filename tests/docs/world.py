"""Where the commands of the documentation are run: machines in network namespaces.

    desk ---- laptop ==== wlan0, usb0, ... (emulated) ==== server ---- internet (example.org)

`laptop` is the machine with the radios; each of its interfaces has a default route, as a network
manager gives it one. `desk` is another machine of its local network. `server` has one address,
SERVER_IP, and leads to `internet`, where example.org answers over HTTPS. `here` is none of them.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sumrate.lab.links import Link
from sumrate.lab.namespaces import Host, run
from sumrate.lab.process import Process, listening
from sumrate.lab.programs import REPOSITORY, program
from sumrate.lab.scene import radio, scene

SERVER_IP = "203.0.113.5"
LAPTOP_LAN_IP = "192.168.1.2"
"""The laptop's address in its local network."""
EXAMPLE_IP = "93.184.216.34"
HTTPS_PORT = 443
LINK = re.compile(r"sumrate://\S+")
PLACEHOLDER = "sumrate://SERVER_IP:7443?v=1#k=...&c=..."
HOSTS = ("here", "laptop", "desk", "server", "internet")
COMMAND_TIMEOUT_S = 200

RADIOS = {
    "docs/guide/home-office.md": (radio("ppp", 1, 50.0, 20.0), radio("wwan", 2, 80.0, 40.0)),
}
"""Links of a page's story, where they are not WiFi and a phone."""
WIFI_AND_PHONE = (radio("wlan", 1, 200.0, 5.0), radio("usb", 2, 80.0, 40.0))

SERVER = """
import functools, http.server, ssl
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="{folder}")
server = http.server.ThreadingHTTPServer(("{address}", {port}), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("{folder}/site.crt", "{folder}/site.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@dataclass
class World:
    """The machines of one story, and what its commands have printed."""

    folder: Path
    """Of all machines: commands run in it."""
    machines: Mapping[str, Host] = field(default_factory=dict)
    defaults: tuple[tuple[str, ...], ...] = ()
    """The laptop's default routes, which go with an interface that is taken down."""
    join_link: str = ""
    """What the last `sumrate serve` or `credential add` printed."""

    def substituted(self, text: str) -> str:
        """A block as this world's machines take it.

        Raises:
            ValueError: it needs a join link, and no block before it printed one.

        """
        if PLACEHOLDER in text and not self.join_link:
            raise ValueError("a join link is used before a block has printed one")
        return text.replace(PLACEHOLDER, self.join_link).replace("SERVER_IP", SERVER_IP)

    def command(self, host: str, text: str) -> list[str]:
        """The command that runs a block on a machine."""
        argv = ["bash", "-euo", "pipefail", "-c", self.substituted(text)]
        return self.machines[host].command(argv) if host in self.machines else argv

    def environment(self, host: str) -> dict[str, str]:
        """Of a machine's user: own home, state and runtime folders, our programs in the path."""
        home = self.folder / f"home-{host}"
        runtime = home / "run"
        runtime.mkdir(parents=True, exist_ok=True)
        runtime.chmod(0o700)
        return {
            **os.environ,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(runtime),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY / "python"),
            "CURL_CA_BUNDLE": str(self.folder / "www" / "site.crt"),
            "MPLCONFIGDIR": str(home),
        }

    def run(self, host: str, text: str) -> str:
        """Runs a block to its end; standard input is the join link.

        Returns:
            What it printed.

        Raises:
            AssertionError: it failed or took too long; the message has its output.

        """
        try:
            done = subprocess.run(
                self.command(host, text),
                cwd=self.folder,
                env=self.environment(host),
                input=self.join_link + "\n",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=COMMAND_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still runs after {late.timeout:.0f} s:\n{text}") from late
        assert done.returncode == 0, f"exit status {done.returncode} of\n{text}\n{done.stdout}"
        self.learn(done.stdout)
        self.manage_network()
        return done.stdout

    def start(self, host: str, text: str, says: str, log: Path) -> Process:
        """Starts a block that keeps running, and waits until its output has these words."""
        argv = ["env", "-C", str(self.folder), *self.command(host, text)]
        process = Process(argv, log=log, env=self.environment(host))
        try:
            process.wait_until(lambda: says in log.read_text(errors="replace"), f"`{says}`")
        except BaseException:
            process.stop()
            raise
        self.learn(log.read_text(errors="replace"))
        return process

    def manage_network(self) -> None:
        """Gives the laptop's interfaces that are up their default routes, as a manager does."""
        for route in self.defaults:
            with suppress(RuntimeError):  # the interface is down
                self.machines["laptop"].run(["ip", "route", "replace", "default", *route])

    def learn(self, output: str) -> None:
        """Keeps the join link that was printed."""
        if found := LINK.findall(output):
            self.join_link = found[-1]


def programs(folder: Path) -> None:
    """Puts the programs that the documentation names into a folder."""
    folder.mkdir()
    scripts = {
        "python": f'exec {sys.executable} "$@"',
        "sumrate-lab": f'exec {sys.executable} -m sumrate.lab "$@"',
        "sudo": 'exec "$@"',
    }
    for name in ("sumrate", "sumrate-link"):
        (folder / name).symlink_to(program(name))
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


@contextmanager
def nowhere(folder: Path) -> Iterator[World]:
    """A world of this machine alone, for pages whose commands make their own networks."""
    programs(folder / "bin")
    yield World(folder)


@contextmanager
def world(folder: Path, page: str) -> Iterator[World]:
    """All machines, with the links that the page's story has."""
    links = RADIOS.get(page, WIFI_AND_PHONE)
    programs(folder / "bin")
    with scene(links, seed=1, folder=folder / "scene") as built, ExitStack() as stack:
        others = {name: Host(name) for name in ("desk", "internet")}
        for host in others.values():
            stack.callback(host.delete)
        machines = {"laptop": built.client, "server": built.server, **others}
        _routes(machines)
        _names(folder)
        stack.enter_context(_example_org(others["internet"], folder))
        made = World(folder, machines, defaults=tuple(_defaults(links)))
        made.manage_network()
        yield made


def _defaults(links: tuple[Link, ...]) -> Iterator[tuple[str, ...]]:
    """A default route for each interface, the first one preferred."""
    for metric, link in enumerate(links, start=100):
        yield "via", link.server_ip, "dev", link.interface, "metric", str(metric)


def _routes(machines: Mapping[str, Host]) -> None:
    laptop, desk = machines["laptop"], machines["desk"]
    server, internet = machines["server"], machines["internet"]
    server.run(["ip", "address", "add", f"{SERVER_IP}/32", "dev", "lo"])
    _join(laptop, f"{LAPTOP_LAN_IP}/24", desk, "192.168.1.3/24", "lan0")
    _join(server, "100.64.0.1/30", internet, "100.64.0.2/30", "up0")
    internet.run(["ip", "address", "add", f"{EXAMPLE_IP}/32", "dev", "lo"])
    # What it sends is from the address that it is known by.
    source = ["src", EXAMPLE_IP]
    internet.run(["ip", "route", "change", "100.64.0.0/30", "dev", "up0", *source])
    server.run(["ip", "route", "add", f"{EXAMPLE_IP}/32", "via", "100.64.0.2"])


def _join(one: Host, its: str, other: Host, others: str, interface: str) -> None:
    """A wire between two machines."""
    peer = ["peer", "name", interface, "netns", other.name]
    run(["ip", "link", "add", interface, "netns", one.name, "type", "veth", *peer])
    for host, address in ((one, its), (other, others)):
        host.run(["ip", "address", "add", address, "dev", interface])
        host.run(["ip", "link", "set", interface, "up"])


def _names(folder: Path) -> None:
    """Names are looked up in a file of this mount namespace alone."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{EXAMPLE_IP} example.org\n")
    run(["mount", "--bind", str(hosts), "/etc/hosts"])


@contextmanager
def _example_org(host: Host, folder: Path) -> Iterator[None]:
    """A web server with a certificate of its own, which curl is told to trust."""
    www = folder / "www"
    www.mkdir()
    (www / "index.html").write_text("<h1>Example Domain</h1>\n")
    (www / "large.iso").write_bytes(bytes(range(256)) * (64 << 12))
    names = ["-subj", "/CN=example.org", "-addext", "subjectAltName=DNS:example.org"]
    key = ["-keyout", str(www / "site.key"), "-out", str(www / "site.crt")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    run(["openssl", "req", "-x509", "-nodes", "-days", "2", *kind, *names, *key])
    script = SERVER.format(folder=www, address=EXAMPLE_IP, port=HTTPS_PORT)
    with Process([sys.executable, "-c", script], log=folder / "www.log", host=host) as server:
        server.wait_until(lambda: listening(host, HTTPS_PORT), "listening")
        yield


def have_programs() -> str:
    """Which program that a world needs is not installed; empty if all are."""
    return next((name for name in ("openssl", "ip", "curl") if shutil.which(name) is None), "")
