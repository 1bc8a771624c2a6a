"""Sumrate over all links: `serve` on the server, `up` on the client, programs through SOCKS5."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.base import (
    FILE_NAME,
    HTTP_PORT,
    Download,
    Measurement,
    Reach,
    Unavailable,
    curl,
    file_server,
)
from sumrate.lab.links import Link
from sumrate.lab.payload import Payload
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import have, program
from sumrate.lab.scene import SERVICE_IP, Site

SERVER_PORT = 4433
SOCKS_PORT = 1080
CLASSES = ("conversational", "interactive", "streaming", "background")
"""Of traffic; a status has those that have carried something."""
ALLOWANCE_BYTES = dict(zip(CLASSES, (4 << 20, 4 << 20, 1 << 20, 64 << 10), strict=True))
"""What a sender may copy of each by choice before its share counts (`Budget::DEFAULT`)."""
CROWD_TIMEOUT_S = 60.0
"""After this a transfer of a crowd that still runs has not completed."""
GATHERING_S = 60.0
"""Within this all clients of a crowd have connected, or the others start without them."""


def path_options(links: Sequence[Link], backup: str = "") -> list[str]:
    """One `--path` per link, bound to the client's and the server's address on it.

    Args:
        links: the links.
        backup: name of the one that stands by, if one does.

    """
    options = []
    for link in links:
        standby = ",backup" if link.name == backup else ""
        bound = f"{link.client_ip}@{link.server_ip}:{SERVER_PORT}{standby}"
        options += ["--path", f"{link.name}={bound}"]
    return options


def serve(
    site: Site,
    *options: str,
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Process:
    """Starts `sumrate serve` and waits until it has written the join link.

    Args:
        site: where it runs.
        options: further flags.
        prefix: what the command line begins with.
        env: further environment variables.

    """
    link_file = link_file_of(site)
    link_file.unlink(missing_ok=True)
    advertised: list[str] = []
    for link in site.links:
        advertised += ["--advertise", f"{link.server_ip}:{SERVER_PORT}"]
    process = Process(
        [
            *(*prefix, str(program("sumrate")), "serve", "--listen", f"0.0.0.0:{SERVER_PORT}"),
            *(*advertised, "--state", str(site.folder / "server-state")),
            *("--link-file", str(link_file), "--allow", f"{SERVICE_IP}/32"),
            # What a user's own file says is no part of the experiment.
            *("--config", "none", "--status-socket", str(status_socket(site, "serve"))),
            *("--cc", site.congestion_control, *options),
        ],
        log=site.folder / "serve.log",
        host=site.server,
        env=dict(env or {}),
    )
    process.wait_until(link_file.exists, "the join link is written")
    return process


def link_file_of(site: Site) -> Path:
    """Where `sumrate serve` writes its join link (a secret: it is given to programs as a file)."""
    return site.folder / "sumrate.link"


def status_socket(site: Site, role: str) -> Path:
    """Where `serve` or `up` answers `sumrate status`."""
    return site.folder / f"{role}.sock"


def status(site: Site, role: str) -> dict[str, Any]:
    """The answer of `sumrate status --json` for `serve` or `up`."""
    host = site.server if role == "serve" else site.client
    argv = [str(program("sumrate")), "status", "--socket", str(status_socket(site, role))]
    answer: dict[str, Any] = json.loads(host.run([*argv, "--json"]))
    return answer


def up(
    site: Site,
    *options: str,
    name: str = "up",
    socks_port: int = SOCKS_PORT,
    paths: Sequence[str] | None = None,
    link_file: Path | None = None,
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Process:
    """Starts `sumrate up` and waits until its proxy serves.

    Args:
        site: where it runs.
        options: further flags.
        name: what its log and status socket are called, where there are several.
        socks_port: port of its SOCKS5 proxy.
        paths: options that name its paths; all links if absent.
        link_file: the file with its join link, if not the server's own.
        prefix: what the command line begins with.
        env: further environment variables.

    """
    ready = site.folder / f"{name}.ready"
    ready.unlink(missing_ok=True)
    process = Process(
        [
            *(*prefix, str(program("sumrate")), "up", f"@{link_file or link_file_of(site)}"),
            *(path_options(site.links) if paths is None else paths),
            *("--socks", f"127.0.0.1:{socks_port}", "--cc", site.congestion_control),
            *("--config", "none", "--status-socket", str(status_socket(site, name))),
            *("--ready-file", str(ready), *options),
        ],
        log=site.folder / f"{name}.log",
        host=site.client,
        env=dict(env or {}),
    )
    process.wait_until(ready.exists, "the proxy serves")
    return process


EVENT_INTERVAL_S = "0.02"


@dataclass(frozen=True)
class Sumrate:
    """Our own transport, encrypted and authenticated as a user runs it."""

    name: str = "sumrate"
    title: str = "Sumrate"
    options: tuple[str, ...] = ()
    """Protocol flags, such as `--window-mode thesis`, for both ends: each sender follows it."""
    backup: str = ""
    """Name of the link that stands by while another works; none if empty."""
    policy: tuple[str, ...] = ()
    """How the client uses its paths: values of `--policy`."""
    event_log: bool = False
    """The server, which sends, writes what happens to its paths."""

    def check(self) -> None:
        """Needs the built `sumrate` binary."""
        if not have("sumrate"):
            raise Unavailable("the binary `sumrate` is not built (make build)")

    def paths(self, site: Site) -> list[str]:
        """The options that name the paths."""
        return path_options(site.links, self.backup)

    def policies(self) -> list[str]:
        """The options that say how the client uses them."""
        return [word for policy in self.policy for word in ("--policy", policy)]

    @contextmanager
    def download(self, site: Site, payload: Payload) -> Iterator[Download]:
        """The file server on an address behind the exit, and a curl through SOCKS5."""
        with (
            file_server(site, payload, address=SERVICE_IP) as files,
            serve(site, *self.options) as server,
            up(site, *self.options, *self.policies(), paths=self.paths(site)) as daemon,
        ):
            url = f"http://{SERVICE_IP}:{HTTP_PORT}/{FILE_NAME}"
            proxy = ("--proxy", f"socks5h://127.0.0.1:{SOCKS_PORT}")
            yield Download(
                curl(url, *proxy),
                [files.command_line, server.command_line, daemon.command_line],
                {"file server": files, "sumrate serve": server, "sumrate up": daemon},
            )

    def bench(self, site: Site, seconds: float, warmup_s: float) -> Measurement:
        """One stream of `sumrate bench --reverse` over all links."""
        answer = site.folder / "bench.json"
        answer.unlink(missing_ok=True)
        with (
            serve(site, *self.options) as server,
            Process(
                [
                    *(str(program("sumrate")), "bench", f"@{link_file_of(site)}"),
                    *self.paths(site),
                    *("--reverse", "--time", f"{seconds:g}", "--warmup", f"{warmup_s:g}"),
                    *("--cc", site.congestion_control, "--json", *self.options),
                ],
                log=site.folder / "bench.log",
                host=site.client,
                stdout=answer,
            ) as client,
        ):
            status = client.wait(seconds + warmup_s + 60)
            text = answer.read_text(encoding="utf-8")
            if status != 0 or not text:
                raise ProcessFailedError(f"`{client.command_line}`: {client.tail()}")
            result = json.loads(text)
            return Measurement(
                goodput_mbps=float(result["goodput_mbps"]),
                command=client.command_line,
                details={**result, "server_command": server.command_line},
            )

    def crowd(self, site: Site, sessions: int, streams: int, stream_bytes: int) -> Measurement:
        """Many clients at once, each with a session of its own and `streams` downloads in it.

        They start together, once all have connected by every path. A client that does not complete
        is counted, not fatal.
        """
        answers = [site.folder / f"crowd-{number}.json" for number in range(sessions)]
        log = site.folder / "crowd.log"
        with ExitStack() as stack:
            server = stack.enter_context(serve(site, *self.options))
            argv = [
                *(str(program("sumrate")), "bench", f"@{link_file_of(site)}"),
                *self.paths(site),
                *("--reverse", "--bytes", str(streams * stream_bytes), "--streams", str(streams)),
                *("--cc", site.congestion_control, "--json", "--hold", *self.options),
            ]
            clients = []
            held, start = os.pipe()
            for answer in answers:
                client = Process(argv, log=log, host=site.client, stdout=answer, stdin=held)
                clients.append(stack.enter_context(client))
            os.close(held)
            gather(site, sessions)
            began = time.monotonic()
            os.close(start)
            ends = [_ended(client, began + CROWD_TIMEOUT_S) for client in clients]
            elapsed = time.monotonic() - began
            command = clients[0].command_line
        done = [
            json.loads(answer.read_text(encoding="utf-8")) | {"ended_s": answer.stat().st_mtime}
            for answer, status in zip(answers, ends, strict=True)
            if status == 0
        ]
        failed = [client for client, end in zip(clients, ends, strict=True) if end != 0]
        whole = [d for d in done if d["bytes"] == streams * stream_bytes]
        return Measurement(
            goodput_mbps=sum(d["bytes"] for d in done) * 8e-6 / elapsed,
            command=f"{sessions} times: {command}",
            details={
                "server_command": server.command_line,
                "completed_share": len(whole) / sessions,
                "elapsed_s": elapsed,
                "transfers_at_once": at_once(
                    (d["ended_s"] - d["duration_s"], d["ended_s"]) for d in done
                ),
                "stream_jain": [d["jain_index"] for d in whole],
                "stream_mbps": [d["stream_goodput_mbps"] for d in whole],
                "session_mbps": [d["goodput_mbps"] for d in whole],
                "failures": [client.tail(300) for client in failed[:3]],
            },
        )

    @contextmanager
    def stream(self, site: Site) -> Iterator[Reach]:
        """Through the SOCKS5 proxy to an address behind the exit."""
        log = site.folder / "serve.events" if self.event_log else None
        watch = ("--event-log", str(log), "--event-interval", EVENT_INTERVAL_S) if log else ()
        with (
            serve(site, *self.options, *watch) as server,
            up(site, *self.options, *self.policies(), paths=self.paths(site)) as daemon,
        ):
            yield Reach(
                SERVICE_IP,
                SERVICE_IP,
                socks=("127.0.0.1", SOCKS_PORT),
                datagrams=True,
                event_log=log,
                commands=[server.command_line, daemon.command_line],
                processes={"sumrate serve": server, "sumrate up": daemon},
                counters=lambda: counters(site),
            )


def at_once(intervals: Iterable[tuple[float, float]]) -> int:
    """How many of the intervals share a moment, at most."""
    events = [event for begin, end in intervals for event in ((begin, 1), (end, -1))]
    return max(accumulate(change for _, change in sorted(events)), default=0)


def gather(site: Site, sessions: int) -> None:
    """Waits until so many sessions have all of the site's paths at the server."""
    deadline = time.monotonic() + GATHERING_S
    while time.monotonic() < deadline:
        paths = [session["paths"] for session in status(site, "serve")["sessions"]]
        whole = [all(p["health"] == "active" for p in own) for own in paths]
        if (
            sum(len(own) == len(site.links) and up for own, up in zip(paths, whole, strict=True))
            >= sessions
        ):
            return
        time.sleep(0.2)


def _ended(client: Process, deadline: float) -> int | None:
    """Its exit status; None if it still runs at the deadline (on time.monotonic)."""
    try:
        return client.wait(max(0.0, deadline - time.monotonic()))
    except ProcessFailedError:
        return None


def counters(site: Site) -> Mapping[str, tuple[float, str]]:
    """What both ends have counted so far: redundant bytes of the sender, memory of the receiver.

    Of each class what both ends sent, and of that the copies, see `copies_by_class`.
    """
    sending = status(site, "serve")["sessions"]
    copies = sum(session["redundant_bytes"] for session in sending)
    receiving = status(site, "up")["sessions"]
    received = sum(session["received_bytes"] for session in receiving)
    peak = max((session["receive_buffer_peak_bytes"] for session in receiving), default=0)
    found: dict[str, tuple[float, str]] = {"reassembly_peak_bytes": (peak, "B")}
    if received:
        found["redundant_share"] = (copies / received, "ratio")
    return found | copies_by_class([*sending, *receiving])


def copies_by_class(sessions: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, str]]:
    """What each class cost over all sessions given, each of one end: values with their units.

    `sent_CLASS_mbytes`: new bytes. Over these: `redundant_CLASS_share`, all copies;
    `chosen_CLASS_share`, those by choice; `unallowed_CLASS_share`, what those exceed the allowance
    that every sender has of a class (F11). Shares of a class that sent nothing are 0.
    """
    found: dict[str, tuple[float, str]] = {}
    for name in CLASSES:
        own = [e for session in sessions for e in session["classes"] if e["class"] == name]
        sent = sum(entry["sent_bytes"] for entry in own)
        found[f"sent_{name}_mbytes"] = (sent / 1e6, "MB")
        chosen = sum(entry["chosen_bytes"] for entry in own)
        copies = sum(entry["redundant_bytes"] for entry in own)
        beyond = sum(max(0, entry["chosen_bytes"] - ALLOWANCE_BYTES[name]) for entry in own)
        for what, count in (("chosen", chosen), ("unallowed", beyond), ("redundant", copies)):
            found[f"{what}_{name}_share"] = (count / sent if sent else 0.0, "ratio")
    return found
