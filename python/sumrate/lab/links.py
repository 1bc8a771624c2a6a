"""Emulated links: what they are, the emulator's configuration, and the emulator while it runs."""

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from sumrate.lab.namespaces import run
from sumrate.lab.process import Process
from sumrate.lab.programs import program
from sumrate.traces import Trace, read

CLIENT = "client"
DEFAULT_MTU = 1500
SERVER = "server"


@dataclass(frozen=True)
class Impairment:
    """What one direction of a link does to packets."""

    rate_mbps: float
    """Mbit/s of IP bytes; with a trace its mean, for those who read it."""
    delay_ms: float
    """One-way delay."""
    queue_ms: float = 20.0
    loss: float = 0.0
    """Loss probability of each MTU segment."""
    trace: Path | None = None
    """File with a rate over time, which the link follows instead of `rate_mbps`."""
    burst_bytes: int = 0
    """Token bucket: what an idle line saves up, and lets out without spacing."""
    loss_burst: float = 1.0
    """Mean length of a burst of losses, in segments; 1: independent losses."""
    policer: bool = False
    """Whether segments beyond `burst_bytes` are dropped instead of queued."""
    jitter_sd_ms: float = 0.0
    """Standard deviation of each segment's delay."""
    reorder: bool = False
    """Whether segments overtake each other."""
    gather_ms: float = 0.0
    """Packets leave together, at multiples of this time; 0: each on its own."""

    def toml(self) -> str:
        """The keys of this direction in the emulator's configuration, as its fields name them."""
        always = ("delay_ms", "queue_ms", "rate_mbps" if self.trace is None else "trace")
        found = {}
        for key in fields(self):
            value = getattr(self, key.name)
            if key.name in always or (key.default is not MISSING and value != key.default):
                found[key.name] = float(value) if key.type is float else value
        if not self.loss:
            found.pop("loss_burst", None)
        return _pairs(**found)


@dataclass(frozen=True)
class Blackout:
    """An interval in which a link carries nothing, in seconds after the schedule's start."""

    start_s: float
    end_s: float
    direction: str = "both"
    """`both`, or `a_to_b` (towards the server) or `b_to_a` only."""


@dataclass(frozen=True)
class AckDelay:
    """Nothing leaves towards the server for `hold_s` in every `every_s`; then all of it at once."""

    hold_s: float
    every_s: float


@dataclass(frozen=True)
class Sleep:
    """The radio sleeps after `after_ms` without a packet; what comes then waits `wake_ms`."""

    after_ms: float
    wake_ms: float


@dataclass(frozen=True)
class Link:
    """A point-to-point link between the client and the server, alike in both directions."""

    name: str
    subnet: int
    """Third octet of its addresses: 10.1.SUBNET.1 is the client, .2 the server."""
    down: Impairment
    up: Impairment
    blackouts: tuple[Blackout, ...] = field(default=())
    wire: str = ""
    """The link whose interfaces it uses, and whose queue it shares; its own if empty."""
    host: int = 1
    """Fourth octet of the client's address; the server's is one more."""
    mtu: int = 1500
    """Largest IP packet, in bytes."""
    rate_steps: tuple[tuple[float, float], ...] = ()
    """Seconds after the schedule's start, and the factor of both rates from then on."""
    queue_of_bytes: bool = False
    """The queue holds as many bytes at every rate; otherwise it is as long in time."""
    ack_delay: AckDelay | None = None
    """From the schedule's start on, over and over."""
    sleep: Sleep | None = None
    returns: str = ""
    """The link over whose wire the client answers; its own if empty."""
    ssthresh: int = 0
    """Segments at which TCP's slow start ends on it, as after an earlier one; 0: wherever."""

    @property
    def is_scheduled(self) -> bool:
        """Whether something happens to it while it runs."""
        traced = self.up.trace or self.down.trace
        return bool(self.blackouts or self.rate_steps or self.ack_delay or traced)

    @property
    def interface(self) -> str:
        """Name of the network interface on both hosts."""
        return f"{self.wire or self.name}0"

    @property
    def client_ip(self) -> str:
        """The client's address on this link."""
        return f"10.1.{self.subnet}.{self.host}"

    @property
    def server_ip(self) -> str:
        """The server's address on this link."""
        return f"10.1.{self.subnet}.{self.host + 1}"

    @property
    def network(self) -> str:
        """The link's IPv4 network."""
        return f"10.1.{self.subnet}.0/24"

    def without_variation(self) -> "Link":
        """The same link without token buckets, policers, gathering and steps of the rate."""
        return replace(
            self,
            rate_steps=(),
            down=replace(self.down, burst_bytes=0, policer=False, gather_ms=0.0),
            up=replace(self.up, burst_bytes=0, policer=False, gather_ms=0.0),
        )

    def with_trace(self, path: Path, direction: str = "both") -> "Link":
        """The same link with a rate that follows a trace, from each trigger on anew.

        Until the first trigger it follows the trace from the emulator's start.

        Args:
            path: a file in the emulator's native format (docs/traces.md).
            direction: `both`, or `a_to_b` (towards the server) or `b_to_a` only.

        Raises ValueError: the file is no trace, or there is no such direction.
        """
        if direction not in ("both", "a_to_b", "b_to_a"):
            raise ValueError(f"a direction is both, a_to_b or b_to_a, not {direction!r}")
        trace = read(path)
        return replace(
            self,
            up=self.up if direction == "b_to_a" else _following(self.up, path, trace),
            down=self.down if direction == "a_to_b" else _following(self.down, path, trace),
        )

    def toml(self, sharing: "Sequence[Link]" = ()) -> str:
        """The link, with others on its interfaces, as the emulator reads it; `a` is the client."""
        parts = [self._head()]
        for end, host, interface, addresses in self.ends(sharing):
            parts.append(f"[link.{end}]")
            parts.append(_pairs(netns=host, interface=interface, address=addresses))
        parts += [f"[link.a_to_b]\n{self.up.toml()}", f"[link.b_to_a]\n{self.down.toml()}"]
        return "\n".join([*parts, *self._schedule()])

    def ends(self, sharing: "Sequence[Link]") -> Iterator[tuple[str, str, str, list[str]]]:
        """Of both ends the name, the host, the interface, and addresses with prefix lengths."""
        pairs = (self, *sharing)
        for end, host, addresses in (
            ("a", CLIENT, [link.client_ip for link in pairs]),
            ("b", SERVER, [link.server_ip for link in pairs]),
        ):
            yield end, host, self.interface, [f"{address}/24" for address in addresses]

    def _schedule(self) -> Iterator[str]:
        """The entries of the link's schedule: traces, steps of the rate, blackouts and holds."""
        ways = (("a_to_b", self.up), ("b_to_a", self.down))
        for way, direction in ways:
            if direction.trace:
                yield _entry(0.0, way, trace=direction.trace)
        # A trigger begins the schedule anew: the first rate holds again.
        first = [(0.0, 1.0)] if self.rate_steps and self.rate_steps[0][0] > 0 else []
        for at, factor in (*first, *self.rate_steps):
            for way, direction in ways:
                queue = {"queue_ms": direction.queue_ms / factor} if self.queue_of_bytes else {}
                yield _entry(at, way, rate_mbps=direction.rate_mbps * factor, **queue)
        for blackout in self.blackouts:
            for at, dark in ((blackout.start_s, True), (blackout.end_s, False)):
                yield _entry(at, blackout.direction, blackout=dark)
        if self.ack_delay:
            for at, hold in ((0.0, True), (self.ack_delay.hold_s, False)):
                yield _entry(at, "a_to_b", hold=hold)

    def _head(self) -> str:
        """The keys of the whole link."""
        head: dict[str, object] = {"name": self.name}
        head |= {"mtu": self.mtu} if self.mtu != DEFAULT_MTU else {}
        head |= {"schedule_start": "trigger"} if self.is_scheduled else {}
        head |= {"schedule_every_s": float(self.ack_delay.every_s)} if self.ack_delay else {}
        if self.sleep:
            head |= {"sleep_after_ms": float(self.sleep.after_ms)}
            head |= {"wake_ms": float(self.sleep.wake_ms)}
        return f"[[link]]\n{_pairs(**head)}"


def _following(impairment: Impairment, path: Path, trace: Trace) -> Impairment:
    return replace(impairment, trace=path, rate_mbps=trace.mean_rate_mbps)


def _entry(at_s: float, direction: str, **change: object) -> str:
    return f"[[link.schedule]]\n{_pairs(at_s=float(at_s), direction=direction, **change)}"


def _pairs(**values: object) -> str:
    """Lines `key = value` of TOML, whose strings, lists, numbers and truth are those of JSON."""
    plain = {k: str(v.resolve()) if isinstance(v, Path) else v for k, v in values.items()}
    return "\n".join(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in plain.items())


def paths(links: Sequence[Link]) -> tuple[Link, ...]:
    """The links that are paths: not those that only bring back what others carried."""
    backward = {link.returns for link in links}
    return tuple(link for link in links if link.name not in backward)


def configuration(links: Sequence[Link], seed: int) -> str:
    """The emulator's whole configuration file."""
    parts = [
        link.toml([other for other in links if other.wire == link.name])
        for link in links
        if not link.wire
    ]
    return f"version = 1\nseed = {seed}\n\n" + "\n\n".join(parts) + "\n"


class Emulator:
    """A running `sumrate-link`; its interfaces exist while it does."""

    def __init__(self, links: Sequence[Link], *, seed: int, folder: Path) -> None:
        """Starts the emulator and waits until the links carry packets."""
        self.links = tuple(links)
        self.folder = folder
        self.control = folder / "link.sock"
        self.stats_file = folder / "link-stats.json"
        config = folder / "links.toml"
        config.write_text(configuration(links, seed), encoding="utf-8")
        ready = folder / "link.ready"
        ready.unlink(missing_ok=True)
        argv = [
            *(str(program("sumrate-link")), "run", str(config)),
            *("--control", str(self.control), "--stats", str(self.stats_file)),
            *("--ready", str(ready)),
        ]
        self.process = Process(
            argv,
            log=folder / "link.log",
        )
        try:
            self.process.wait_until(ready.exists, "the links are up")
        except BaseException:
            self.process.stop()
            raise

    def __enter__(self) -> Self:
        """The emulator itself; it is stopped on leaving."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the emulator; its interfaces go with it."""
        self.process.stop()

    def _argv(self, *words: str) -> list[str]:
        command, *rest = words
        return [str(program("sumrate-link")), command, "--control", str(self.control), *rest]

    def trigger(self) -> None:
        """Starts the schedules now.

        Straight through the control socket: starting a program would hold up the sampling.

        Raises RuntimeError: the emulator refused.
        """
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(str(self.control))
            control.sendall(b'{"command":"trigger"}\n')
            answer = control.makefile("r", encoding="utf-8").readline()
        if "error" in json.loads(answer or '{"error": "no answer"}'):
            raise RuntimeError(f"the emulator refused to start the schedule: {answer}")

    def set(self, link: str, direction: str, **values: object) -> None:
        """Changes parameters of one link while it runs; direction is a_to_b, b_to_a or both."""
        run(self._argv("set", link, direction, *(f"{k}={_toml(v)}" for k, v in values.items())))

    def stats(self, *, reset: bool = False) -> dict[str, Any]:
        """The emulator's counters now; `reset` starts its lateness afresh."""
        loaded: dict[str, Any] = json.loads(
            run(self._argv("stats", *(["--reset"] if reset else [])))
        )
        return loaded


class Wires:
    """Bare veth pairs between the hosts: no rate, no delay, never late."""

    def __init__(self, links: Sequence[Link]) -> None:
        """Makes a pair for every link."""
        self.links = tuple(links)
        for link in links:
            name = link.interface
            ends = ["netns", CLIENT, "type", "veth", "peer", "name", name, "netns", SERVER]
            run(["ip", "link", "add", name, *ends])
            for host, address in ((CLIENT, link.client_ip), (SERVER, link.server_ip)):
                run(["ip", "-n", host, "address", "add", f"{address}/24", "dev", name])
                run(["ip", "-n", host, "link", "set", name, "mtu", str(link.mtu), "up"])

    def __enter__(self) -> Self:
        """The wires themselves; they go with their hosts."""
        return self

    def __exit__(self, *_: object) -> None:
        """Removes them."""
        for link in self.links:
            run(["ip", "-n", CLIENT, "link", "delete", link.interface])

    def trigger(self) -> None:
        """Nothing happens to wires.

        Raises RuntimeError: always.
        """
        raise RuntimeError("bare wires have no schedule")

    def stats(self, *, reset: bool = False) -> dict[str, Any]:
        """As an emulator that is on time."""
        del reset
        return {"lateness_since_reset": {"worst_ms": 0.0, "late_over_2ms": 0, "events": 0}}


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
