"""Aggligator over all links: several TCP connections joined into one in user space, unencrypted.

Its TCP connections follow the congestion control that the routes pin; it has no flag for it.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations

from sumrate.lab.endpoints.base import (
    FILE_NAME,
    HTTP_PORT,
    STREAM_PORT,
    Download,
    Measurement,
    Reach,
    Unavailable,
    curl,
    file_server,
)
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.process import Process, ProcessFailedError, listening, processor_time
from sumrate.lab.programs import MissingProgramError, peer
from sumrate.lab.scene import Site

SPEED_PORT = 5700
TUNNEL_PORT = 5800
LOCAL_PORT = 5203
"""Where the tunnel's client end accepts connections."""
RULE = 100
"""Priority of its routing rules on the server, before the one for local addresses."""
UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""Its units are powers of 1024, whatever their names say."""


def server_addresses(links: Sequence[Link], port: int) -> list[str]:
    """One `--tcp` for each of the server's addresses."""
    flags = []
    for link in links:
        flags += ["--tcp", f"{link.server_ip}:{port}"]
    return flags


def speed_command(links: Sequence[Link], seconds: float) -> list[str]:
    """The speed test's client; only received data counts (its figure of what was sent is high)."""
    return [
        *(str(peer("agg-speed")), "client", "-4", "-n", "-r", "-t", f"{math.ceil(seconds)}"),
        *server_addresses(links, SPEED_PORT),
    ]


def downstream_mbps(text: str) -> float | None:
    """The goodput in Mbit/s that the speed test printed."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    found = re.search(r"Downstream:\s*([\d.]+)\s*([KMGT]?B)/s", plain)
    return float(found[1]) * UNITS[found[2]] * 8 / 1e6 if found else None


def keep_to_links(site: Site) -> list[str]:
    """Has the server refuse what comes over one link for its address on another.

    Aggligator binds to each interface and tries each address from it. Our links are networks of
    their own, so what passes from one to another is an artefact of a host that answers for all its
    addresses; it would give aggligator as many TCP connections for each radio as there are radios,
    where every other scheme has one. Returns the commands.
    """
    commands = [["ip", "rule", "add", "lookup", "local", "priority", str(RULE + 1)]]
    for link, other in permutations(site.links, 2):
        crossing = ["iif", link.interface, "to", f"{other.server_ip}/32"]
        commands.append(["ip", "rule", "add", *crossing, "unreachable", "priority", str(RULE)])
    commands.append(["ip", "rule", "delete", "lookup", "local", "priority", "0"])
    for command in commands:
        site.server.run(command)
    return [f"server: {' '.join(command)}" for command in commands]


@dataclass(frozen=True)
class Aggligator:
    """The programs of aggligator-util: agg-speed measures, agg-tunnel carries TCP connections."""

    name: str = "aggligator"
    title: str = "aggligator"
    one_per_link: bool = True
    """One TCP connection for each link, as the other schemes have; else for each pair of them."""

    def check(self) -> None:
        """Needs what `make peers` installs."""
        try:
            for program in ("agg-speed", "agg-tunnel"):
                peer(program)
        except MissingProgramError as error:
            raise Unavailable(str(error)) from error

    @contextmanager
    def tunnel(self, site: Site, port: int) -> Iterator[tuple[list[str], Process, Process]]:
        """A tunnel to this port of the server's loopback: commands, server end, client end."""
        with self.tunnels(site, {port: LOCAL_PORT}) as made:
            yield made

    @contextmanager
    def tunnels(
        self, site: Site, ports: Mapping[int, int]
    ) -> Iterator[tuple[list[str], Process, Process]]:
        """Tunnels to ports of the server's loopback, each with the client's port that leads to it.

        Commands, server end, client end.
        """
        rules = keep_to_links(site) if self.one_per_link else []
        log = site.folder / "aggligator.log"
        program = str(peer("agg-tunnel"))
        accept, offer = ["server", "-n"], ["client", "-4", "-n"]
        for port, local in ports.items():
            accept += ["--port", f"127.0.0.1:{port}:{port}"]
            offer += ["--port", f"{port}:{local}"]
        accept += ["--tcp", str(TUNNEL_PORT)]
        offer += server_addresses(site.links, TUNNEL_PORT)
        first = next(iter(ports.values()))
        with Process([program, *accept], log=log, host=site.server) as server:
            server.wait_until(lambda: listening(site.server, TUNNEL_PORT), "agg-tunnel listens")
            with Process([program, *offer], log=log, host=site.client) as client:
                client.wait_until(lambda: listening(site.client, first), "agg-tunnel offers")
                yield [*rules, server.command_line, client.command_line], server, client

    @contextmanager
    def download(self, site: Site, payload: Payload) -> Iterator[Download]:
        """The file server behind the tunnel, and a curl to the tunnel's client end."""
        with (
            file_server(site, payload, address="127.0.0.1") as files,
            self.tunnel(site, HTTP_PORT) as (commands, server, client),
        ):
            yield Download(
                curl(f"http://127.0.0.1:{LOCAL_PORT}/{FILE_NAME}"),
                [files.command_line, *commands],
                {"file server": files, "agg-tunnel server": server, "agg-tunnel client": client},
            )

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """The speed test, which takes whole seconds and counts its first ones too."""
        log, answer = site.folder / "aggligator.log", site.folder / "agg-speed.txt"
        answer.unlink(missing_ok=True)
        rules = keep_to_links(site) if self.one_per_link else []
        accept = [str(peer("agg-speed")), "server", "-n", "-i", "--oneshot"]
        accept += ["--tcp", str(SPEED_PORT)]
        with Process(accept, log=log, host=site.server) as server:
            server.wait_until(lambda: listening(site.server, SPEED_PORT), "agg-speed listens")
            argv = speed_command(site.links, seconds)
            with Process(argv, log=log, host=site.client, stdout=answer) as client:
                client.wait(seconds + 60)
        goodput = downstream_mbps(answer.read_text(encoding="utf-8"))
        if goodput is None:
            raise ProcessFailedError(f"`{client.command_line}`: {client.tail()}")
        return Measurement(
            goodput_mbps=goodput,
            command=client.command_line,
            details={
                "server_command": server.command_line,
                "rules": rules,
                "warmup_not_left_out_s": warmup_s,
                **processor_time(client=[client], server=[server]),
            },
        )

    @contextmanager
    def stream(self, site: Site) -> Iterator[Reach]:
        """Through agg-tunnel, which offers the port after this one too: for a download beside."""
        ports = {STREAM_PORT: LOCAL_PORT, STREAM_PORT + 1: LOCAL_PORT + 1}
        with self.tunnels(site, ports) as (commands, server, client):
            yield Reach(
                "127.0.0.1",
                "127.0.0.1",
                port=LOCAL_PORT,
                commands=commands,
                processes={"agg-tunnel server": server, "agg-tunnel client": client},
            )
