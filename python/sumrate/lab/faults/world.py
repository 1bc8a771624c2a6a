"""What faults are made on: a server, an origin behind it, and clients that are busy meanwhile.

Every client has wires of its own, so that what happens on one client's wires reaches another only
through the server.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.sumrate import SERVER_PORT, serve, status, up
from sumrate.lab.faults.bench import Bench, bench, wire
from sumrate.lab.faults.confinement import MemoryGroup, memory_group, panics, peak_memory
from sumrate.lab.faults.pump import COUNTER
from sumrate.lab.links import Link
from sumrate.lab.namespaces import mount_tmpfs
from sumrate.lab.process import Process
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import SERVICE_IP

ORIGIN_PORT = 8090
SILENT_PORT = 8091
MEMORY_LIMIT = 768 << 20
"""Bytes of each `sumrate` process: one session may hold a window of 256 MiB in each direction."""
STATE_SIZE = 1 << 20
"""Bytes of the file system that holds the server's state."""
USUAL_DESCRIPTORS = 1024
"""Soft limit of open files that programs have when they start on most systems."""
PATIENCE_S = 60.0
"""A wait for something that is to happen only ends a run that would hang."""
PYTHON = (sys.executable, "-m")
PYTHON_ENV = {"PYTHONPATH": str(REPOSITORY / "python")}


@dataclass(frozen=True)
class Load:
    """What a client's programs do."""

    workers: int
    smallest: int
    largest: int
    direction: str = "down"
    pause: bool = False


@dataclass(frozen=True)
class Member:
    """A client that is to take part."""

    name: str
    links: tuple[Link, ...]
    load: Load
    options: tuple[str, ...] = ()


class Pump:
    """The programs of one client: what they were delivered, and what became of it."""

    def __init__(self, built: Bench, member: Member, socks_port: int, seed: int) -> None:
        """Starts them."""
        load = member.load
        self.log = built.folder / f"{member.name}.transfers"
        self._read = 0
        self._counter = built.folder / f"{member.name}.delivered"
        argv = [
            *(*PYTHON, "sumrate.lab.faults.pump", "--socks", str(socks_port)),
            *("--target", SERVICE_IP, "--port", str(ORIGIN_PORT), "--seed", str(seed)),
            *("--workers", str(load.workers), "--direction", load.direction),
            *("--smallest", str(load.smallest), "--largest", str(load.largest)),
            *("--log", str(self.log), "--counter", str(self._counter)),
            *(("--pause",) if load.pause else ()),
        ]
        log = built.folder / f"{member.name}.pump.log"
        self.process = Process(argv, log=log, host=built.client, env=PYTHON_ENV)

    def delivered(self) -> int:
        """Bytes that its transfers were delivered so far."""
        data = self._counter.read_bytes() if self._counter.exists() else b""
        return sum(number for (number,) in COUNTER.iter_unpack(data))

    def finish(self) -> None:
        """Has it finish what it began, and waits for that."""
        self._end(signal.SIGUSR1)

    def stop(self) -> None:
        """Has it give up what it does, and waits for that."""
        self._end(signal.SIGTERM)

    def results(self) -> list[dict[str, Any]]:
        """What became of each transfer that ended since the last call: `Order` and `Result`."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + 1 if whole else 0
        return [json.loads(line) for line in whole.splitlines()]

    def _end(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(2 * PATIENCE_S)
        if self.process.poll() != 0:
            raise RuntimeError(f"the programs of {self.log.stem} failed: {self.process.tail()}")


@dataclass
class Client:
    """A client with its daemon and its programs."""

    member: Member
    socks_port: int
    daemon: Process
    group: MemoryGroup | None
    pump: Pump | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.member.name


@dataclass
class World:
    """Server, origin and clients, all running."""

    bench: Bench
    clients: dict[str, Client]
    origin: Process
    server: Process
    server_group: MemoryGroup | None
    seed: int
    env: Mapping[str, str] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    def start_server(self) -> None:
        """Starts the server anew, with the state that it had."""
        self.server = _server(self.bench, self.server_group, self.env)
        self.stack.callback(self.server.stop)

    def start_pumps(self) -> None:
        """Has the programs of all clients begin."""
        for number, client in enumerate(self.clients.values()):
            client.pump = Pump(
                self.bench, client.member, client.socks_port, self.seed * 100 + number
            )
            self.stack.callback(client.pump.process.stop)

    def active_paths(self, name: str) -> set[str]:
        """Names of a client's paths that are active now."""
        sessions = status(self.bench, name)["sessions"]
        paths = [path for session in sessions for path in session["paths"]]
        return {path["name"] for path in paths if path["health"] == "active"}

    def whole(self, name: str) -> bool:
        """Whether all paths of a client are active."""
        client = self.clients[name]
        return self.active_paths(name) == {link.name for link in client.member.links}

    def wait_whole(self, name: str) -> None:
        """Waits until all paths of a client are active."""
        wanted = sorted(link.name for link in self.clients[name].member.links)
        self.clients[name].daemon.wait_until(
            lambda: self.whole(name), f"{name}'s paths {wanted} active", timeout_s=PATIENCE_S
        )

    def delivered(self, name: str) -> int:
        """Bytes that a client's programs were delivered so far."""
        pump = self.clients[name].pump
        return pump.delivered() if pump else 0

    def wait_delivered(self, name: str, count: int) -> None:
        """Waits until a client's programs were delivered so many bytes more."""
        wanted = self.delivered(name) + count
        self.clients[name].daemon.wait_until(
            lambda: self.delivered(name) >= wanted, f"{name}: bytes", timeout_s=PATIENCE_S
        )

    @contextmanager
    def fetch(self, socks_port: int) -> Iterator[Callable[[], bool]]:
        """Small downloads through a proxy; gives what says whether one is complete."""
        log = self.bench.folder / "fetch.transfers"
        log.unlink(missing_ok=True)
        argv = [
            *("--socks", str(socks_port), "--target", SERVICE_IP, "--port", str(ORIGIN_PORT)),
            *("--seed", str(self.seed), "--smallest", "100000", "--largest", "100001"),
            *("--log", str(log), "--counter", str(self.bench.folder / "fetch.delivered")),
        ]
        with self.run_python("pump", *argv, log="fetch.pump.log"):
            yield lambda: log.exists() and '"right"' in log.read_text(encoding="utf-8")

    def daemons(self) -> dict[str, Process]:
        """The processes of `sumrate`, by what they are."""
        return {"server": self.server, **{n: c.daemon for n, c in self.clients.items()}}

    def panics(self) -> list[str]:
        """Lines of all logs that tell of a panic."""
        return [line for log in sorted(self.bench.folder.glob("*.log")) for line in panics(log)]

    def peaks(self) -> dict[str, tuple[int, str]]:
        """Most memory in bytes that each process took, and by what it is known and bounded."""
        groups = {"server": self.server_group}
        groups.update({name: client.group for name, client in self.clients.items()})
        found = {}
        for name, process in self.daemons().items():
            group = groups[name]
            found[name] = (
                (group.peak(), "control group") if group else (peak_memory(process), "VmHWM")
            )
        return found

    def run_python(self, module: str, *arguments: str, log: str, host: str = "client") -> Process:
        """Starts one of this package's programs; it is stopped with the world."""
        process = Process(
            [*PYTHON, f"sumrate.lab.faults.{module}", *arguments],
            log=self.bench.folder / log,
            host=self.bench.client if host == "client" else self.bench.server,
            env=PYTHON_ENV,
        )
        self.stack.callback(process.stop)
        return process


def _server(built: Bench, group: MemoryGroup | None, env: Mapping[str, str]) -> Process:
    return serve(built, prefix=_limited(group), env=env)


def _limited(group: MemoryGroup | None) -> list[str]:
    """What a command line begins with so that the process has the limits of a usual system."""
    return ["prlimit", f"--nofile={USUAL_DESCRIPTORS}:", *(group.prefix() if group else ())]


def _origin(built: Bench) -> Process:
    ready = built.folder / "origin.ready"
    argv = [
        *(*PYTHON, "sumrate.lab.faults.origin", "--listen", SERVICE_IP),
        *("--port", str(ORIGIN_PORT), "--silent-port", str(SILENT_PORT), "--ready", str(ready)),
    ]
    log = built.folder / "origin.log"
    process = Process(argv, log=log, host=built.server, env=PYTHON_ENV)
    process.wait_until(ready.exists, "the origin accepts connections")
    return process


def _path_options(links: Sequence[Link]) -> list[str]:
    """Paths bound to interfaces: the address may change."""
    options = []
    for link in links:
        options += ["--path", f"{link.name}={link.interface}@{link.server_ip}:{SERVER_PORT}"]
    return options


@contextmanager
def world(
    folder: Path,
    members: Sequence[Member],
    *,
    seed: int,
    spare: Sequence[Link] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[World]:
    """Starts everything but the clients' programs; all of it is gone afterwards.

    Args:
        folder: an empty folder for logs and sockets.
        members: the clients.
        seed: seed of everything that is drawn.
        spare: wires that no client uses.
        env: further environment variables of the `sumrate` processes.

    """
    links = tuple(link for member in members for link in member.links)
    with ExitStack() as stack:
        built = stack.enter_context(bench(folder, *links, *spare))
        state = folder / "server-state"
        state.mkdir()
        mount_tmpfs(state, STATE_SIZE)
        groups = {}
        for name in ("server", *(member.name for member in members)):
            groups[name] = memory_group(name, MEMORY_LIMIT)
            if (group := groups[name]) is not None:
                stack.callback(_remove, group)
        origin = stack.enter_context(_origin(built))
        made = World(built, {}, origin, origin, groups["server"], seed, env or {}, stack)
        made.start_server()
        for number, member in enumerate(members):
            group = groups[member.name]
            daemon = up(
                built,
                *member.options,
                name=member.name,
                socks_port=1080 + number,
                paths=_path_options(member.links),
                prefix=_limited(group),
                env=env,
            )
            stack.enter_context(daemon)
            made.clients[member.name] = Client(member, 1080 + number, daemon, group)
        for name in made.clients:
            made.wait_whole(name)
        yield made


def _remove(group: MemoryGroup) -> None:
    """Removes a group once the kernel has let go of its processes."""
    for _ in range(100):
        group.remove()
        if not group.folder.exists():
            return
        time.sleep(0.01)


WIFI = wire("wifi", 1, 150.0)
WIGIG = wire("wigig", 2, 200.0)
ETHERNET = wire("ethernet", 3, 60.0)
ATTACK = wire("attack", 4, 400.0)
