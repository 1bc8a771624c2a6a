"""How unmodified programs on the client reach servers on the other host, whatever carries them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sumrate.lab.endpoints import Aggligator, Scheme
from sumrate.lab.scene import Site

MPTCPIZED = ("mptcpize", "run")


@dataclass(frozen=True)
class Carriage:
    """A scheme that is ready to carry TCP connections of other programs."""

    address: str
    """What the servers' names stand for on the client; servers listen on all addresses."""
    socks: tuple[str, int] | None = None
    """Host and port of the SOCKS5 proxy that clients go through."""
    prefix: tuple[str, ...] = ()
    """What the command line of each program, at both ends, begins with."""
    commands: tuple[str, ...] = ()
    """How the scheme itself was started."""
    counters: Callable[[], Mapping[str, tuple[float, str]]] = field(default=dict)
    """What the scheme counted so far: metric, value and unit."""

    @property
    def proxy(self) -> str:
        """The proxy as a URL by which names are resolved at its far end; empty without one."""
        return f"socks5h://{self.socks[0]}:{self.socks[1]}" if self.socks else ""


@contextmanager
def carried(scheme: Scheme, site: Site, ports: Sequence[int]) -> Iterator[Carriage]:
    """Starts what the scheme needs; these TCP ports of the server are reached while this lasts.

    Raises:
        Unavailable: the scheme carries no connections of other programs, or is not installed.

    """
    if isinstance(scheme, Aggligator):
        with scheme.tunnels(site, {port: port for port in ports}) as (commands, _, _):
            yield Carriage("127.0.0.1", commands=tuple(commands))
        return
    with scheme.stream(site) as reach:
        yield Carriage(
            reach.address,
            socks=reach.socks,
            prefix=MPTCPIZED if reach.mptcp else (),
            commands=tuple(reach.commands),
            counters=reach.counters,
        )
