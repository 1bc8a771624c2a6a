"""Hostile peers: strangers at the server's port, a client that floods, a target that is silent."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sumrate.lab.endpoints.sumrate import SERVER_PORT, up
from sumrate.lab.faults.bench import add_addresses
from sumrate.lab.faults.fault import (
    BYSTANDER,
    SERVER,
    VICTIM,
    Fault,
    break_first_path,
    proven,
)
from sumrate.lab.faults.world import ATTACK, PATIENCE_S, SILENT_PORT, World
from sumrate.lab.namespaces import run
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import program
from sumrate.lab.scene import SERVICE_IP

HALF_OPEN = 10_000
HALF_OPEN_AT_ONCE = 2000
SOURCES = 40
"""Addresses that strangers come from: 40 times what the server takes of one is more than it takes
in all."""
FIRST_SOURCE = 100
DRIPPING = 600
FLOOD = 2000
"""Streams of one client at once."""
UNANSWERED = 700
"""Connections that are asked for at once and never answered."""
AUTHENTICATING = 1024
"""Connections whose handshake the server waits for at once."""
DROPPED_PORT = 8092
FLOODER_SOCKS = 1099


class Attack:
    """A running attacker and its counts."""

    def __init__(self, process: Process, state: Path) -> None:
        """Takes over a process that writes its status there."""
        self.process = process
        self._state = state

    def counts(self) -> dict[str, int]:
        """What it has counted so far."""
        found: dict[str, int] = json.loads(self._state.read_text(encoding="ascii"))
        return found

    def wait(self, name: str, count: int) -> None:
        """Waits until a count is reached.

        Raises ProcessFailedError: it was not in time; the message has all counts.
        """
        try:
            reached = f"{count} {name}"
            self.process.wait_until(lambda: self.counts()[name] >= count, reached, PATIENCE_S)
        except ProcessFailedError as error:
            raise ProcessFailedError(f"{error} (counted: {self.counts()})") from error


@contextmanager
def attack(world: World, kind: str, address: str, port: int, *options: str) -> Iterator[Attack]:
    """An attacker on the client's host, from when it has begun until the end of the block."""
    state = world.bench.folder / "attack.json"
    state.unlink(missing_ok=True)
    with world.run_python(
        "attacker", kind, address, str(port), str(state), *options, log="attack.log"
    ) as process:
        process.wait_until(state.exists, "the attack has begun", PATIENCE_S)
        yield Attack(process, state)


@contextmanager
def _sources(world: World) -> Iterator[list[str]]:
    """Many addresses on the attackers' wire, as options."""
    addresses = add_addresses(world.bench, ATTACK, FIRST_SOURCE, SOURCES)
    try:
        yield [part for address in addresses for part in ("--source", address)]
    finally:
        add_addresses(world.bench, ATTACK, FIRST_SOURCE, SOURCES, action="delete")


def half_open(world: World, hold_s: float) -> Mapping[str, int]:
    """10,000 handshakes are begun from 40 addresses and never finished, and more all the time.

    A path that breaks meanwhile comes back meanwhile.
    """
    many = ("--connections", str(HALF_OPEN_AT_ONCE))
    with (
        _sources(world) as sources,
        attack(world, "half-open", ATTACK.server_ip, SERVER_PORT, *many, *sources) as running,
    ):
        running.wait("made", HALF_OPEN)
        break_first_path(world)
        world.wait_whole(VICTIM)
        time.sleep(hold_s)
        counts = running.counts()
    return proven(handshakes=counts["made"], ended_by_the_server=counts["closed"])


def slow_loris(world: World, hold_s: float) -> Mapping[str, int]:
    """Hundreds of handshakes arrive a byte at a time, for longer than a handshake may take."""
    many = ("--connections", str(DRIPPING))
    with (
        _sources(world) as sources,
        attack(world, "drip", ATTACK.server_ip, SERVER_PORT, *many, *sources) as running,
    ):
        running.wait("made", DRIPPING)
        running.wait("closed", 1)
        time.sleep(hold_s)
        counts = running.counts()
    return proven(handshakes=counts["made"], ended_by_the_server=counts["closed"])


@contextmanager
def _flooder(world: World) -> Iterator[Process]:
    """A client of the attackers', with a valid credential of its own.

    Sessions of one credential share what it may use of the server.
    """
    site = world.bench
    state = ["--state", str(site.folder / "server-state")]
    advertise = ["--advertise", f"{ATTACK.server_ip}:{SERVER_PORT}"]
    link = site.folder / "flooder.link"
    link.touch(0o600)
    link.write_text(
        run([str(program("sumrate")), "credential", "add", *state, *advertise]), encoding="utf-8"
    )
    path = ["--path", f"attack={ATTACK.interface}@{ATTACK.server_ip}:{SERVER_PORT}"]
    flags = ("--max-connections", "8192")
    port = FLOODER_SOCKS
    with up(site, *flags, name="flooder", socks_port=port, paths=path, link_file=link) as process:
        yield process


def stream_flood(world: World, hold_s: float) -> Mapping[str, int]:
    """A client opens thousands of streams to a target that accepts, and never reads or answers."""
    target = f"{SERVICE_IP}:{SILENT_PORT}"
    many = ("--connections", str(FLOOD), "--target", target)
    with (
        _flooder(world),
        attack(world, "flood", "127.0.0.1", FLOODER_SOCKS, *many) as running,
    ):
        running.wait("answered", FLOOD)
        time.sleep(hold_s)
        counts = running.counts()
    return proven(streams=counts["answered"])


def silent_target(world: World, hold_s: float) -> Mapping[str, int]:
    """A client asks for hundreds of connections to a target that never answers.

    Another client's programs connect to theirs before the first of those is given up.
    """
    rule = f"tcp dport {DROPPED_PORT} counter drop"
    nft = world.bench.server.run
    nft(["nft", "add", "table", "inet", "silent"])
    nft(
        [
            "nft",
            "add",
            "chain",
            "inet",
            "silent",
            "input",
            "{ type filter hook input priority 0 ; }",
        ]
    )
    nft(["nft", "add", "rule", "inet", "silent", "input", *rule.split()])
    many = ("--connections", str(UNANSWERED), "--target", f"{SERVICE_IP}:{DROPPED_PORT}")
    try:
        with (
            _flooder(world),
            attack(world, "flood", "127.0.0.1", FLOODER_SOCKS, *many) as running,
        ):
            running.wait("made", UNANSWERED)
            running.process.wait_until(lambda: bool(_dialling(world)), "the exit dials", PATIENCE_S)
            first = _dialling(world)
            with world.fetch(world.clients[BYSTANDER].socks_port) as fetched:
                running.process.wait_until(
                    lambda: fetched() or not first <= _dialling(world),
                    "another client's new connection, or the end of a first attempt",
                    PATIENCE_S,
                )
                still = first <= _dialling(world)
            time.sleep(hold_s)
            unanswered = running.counts()["held"]
    finally:
        nft(["nft", "delete", "table", "inet", "silent"])
    return proven(connections=unanswered, served_before_any_was_given_up=int(still))


def _dialling(world: World) -> set[str]:
    """Local ports of the connections that the exit attempts."""
    query = ["ss", "-Htn", "state", "syn-sent", "dport", "=", f":{DROPPED_PORT}"]
    lines = world.bench.server.run(query).splitlines()
    return {line.split()[2].rpartition(":")[2] for line in lines}


FAULTS = (
    Fault("half-open-handshakes", "10,000 handshakes begun from 40 addresses, none finished",
          half_open, opens={SERVER: AUTHENTICATING}),
    Fault("slow-loris", "600 handshakes, a byte at a time", slow_loris,
          opens={SERVER: DRIPPING}),
    Fault("stream-flood", "a client opens 2,000 streams to a target that never reads",
          stream_flood, opens={SERVER: FLOOD}),
    Fault("silent-target", "a client asks for 700 connections that are never answered",
          silent_target, opens={SERVER: UNANSWERED}),
)  # fmt: skip
