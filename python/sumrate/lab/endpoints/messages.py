"""Sumrate's messages: each is whole, has an importance and a lifetime, and overtakes others."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

from sumrate.lab.endpoints.base import STREAM_PORT, Reach, Unavailable
from sumrate.lab.endpoints.sumrate import copies_by_class
from sumrate.lab.payload import Payload
from sumrate.lab.process import Process, listening
from sumrate.lab.programs import MissingProgramError, example
from sumrate.lab.scene import Site

SESSION_PORT = 4434
RELAY_PORT = 5903


@dataclass(frozen=True)
class SumrateMessages:
    """`crates/fbdt/examples/message_relay.rs` at both ends; the sender frames what it sends."""

    name: str = "sumrate-messages"
    title: str = "Sumrate, messages"

    def check(self) -> None:
        """Needs the built example."""
        self._program()

    def _program(self) -> Path:
        try:
            return example("message_relay", package="fbdt")
        except MissingProgramError as error:
            raise Unavailable(str(error)) from error

    def download(self, site: Site, payload: Payload) -> Never:
        """It carries no files."""
        del site, payload
        raise Unavailable("messages carry no files")

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Never:
        """It has no load generator."""
        del site, seconds, warmup_s
        raise Unavailable("messages have no load generator")

    @contextmanager
    def stream(self, site: Site) -> Iterator[Reach]:
        """To the relay beside the client; the sender listens beside its own."""
        program, link = str(self._program()), site.folder / "messages.link"
        for end in ("", ".serve.json", ".dial.json"):
            link.with_name(link.name + end).unlink(missing_ok=True)
        control = site.congestion_control
        served = [f"{given.server_ip}:{SESSION_PORT}" for given in site.links]
        accept = [
            *(program, "serve", control, str(site.folder / "messages-state"), str(link)),
            *(f"127.0.0.1:{STREAM_PORT}", *served),
        ]
        with Process(accept, log=site.folder / "messages-serve.log", host=site.server) as server:
            server.wait_until(link.exists, "the relay has written its link")
            paths = [
                f"{given.client_ip}@{address}"
                for given, address in zip(site.links, served, strict=True)
            ]
            dial = [program, "dial", control, str(link), f"127.0.0.1:{RELAY_PORT}", *paths]
            log = site.folder / "messages-dial.log"
            with Process(dial, log=log, host=site.client) as client:
                client.wait_until(lambda: listening(site.client, RELAY_PORT), "the relay listens")
                yield Reach(
                    "127.0.0.1",
                    "127.0.0.1",
                    port=RELAY_PORT,
                    messages=True,
                    commands=[server.command_line, client.command_line],
                    processes={"message_relay serve": server, "message_relay dial": client},
                    counters=lambda: counters(link),
                )


def counters(link: Path) -> Mapping[str, tuple[float, str]]:
    """What both relays have counted, as `sumrate.counters` has it, and what was dropped.

    A relay that has written nothing yet counts nothing.
    """
    sending, receiving = (_counted(link, end) for end in ("serve", "dial"))
    found: dict[str, tuple[float, str]] = {}
    if sending and receiving.get("received_bytes"):
        found["redundant_share"] = (
            sending["redundant_bytes"] / receiving["received_bytes"],
            "ratio",
        )
        found["reassembly_peak_bytes"] = (receiving["receive_buffer_peak_bytes"], "B")
    if given := sending.get("messages_acknowledged", 0) + sending.get("messages_dropped", 0):
        found["messages_dropped_share"] = (sending["messages_dropped"] / given, "ratio")
    return found | copies_by_class([end for end in (sending, receiving) if end])


def _counted(link: Path, end: str) -> dict[str, Any]:
    file = link.with_name(f"{link.name}.{end}.json")
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found
