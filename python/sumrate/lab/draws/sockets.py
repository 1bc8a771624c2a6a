"""One draw on real sockets: a session of the daemons over all paths, or plain TCP over one."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from sumrate.lab.draws.conditions import Draw
from sumrate.lab.endpoints.sumrate import SOCKS_PORT, gather, serve, status, up
from sumrate.lab.experiment.topology import BUFFER_SETTINGS
from sumrate.lab.lateness import why_late
from sumrate.lab.links import Link
from sumrate.lab.machine_load import MOST, foreign_share, user_time
from sumrate.lab.priority import raise_threads
from sumrate.lab.process import Process, listening
from sumrate.lab.scene import SERVICE_IP, Scene, scene
from sumrate.lab.stream.driver import ENVIRONMENT, PROGRAM, timing

PORT = 5202
DIALLING_S = 1.0
"""Connections stand for this long, and five of the longest RTTs, before the work begins."""
GRACE_S = 5.0


@dataclass
class Outcome:
    """What came out of a run; times are from when the work began."""

    goodput_mbps: float
    stall_ms: float
    in_order_p99_ms: float = 0.0
    copies: float = 0.0
    latency_p50_ms: float = 0.0
    latency_p99_ms: float = 0.0
    paths_mbps: dict[str, float] = field(default_factory=dict)
    disturbed: str = ""
    """Why it does not count; empty if it does."""


def run_session(draw: Draw, folder: Path) -> Outcome:
    """The product over all paths: `serve`, `up`, and programs through its SOCKS5 proxy."""
    kind = "streaming" if draw.work.kind == "stream" else "background"
    buffer = ("--stream-buffer", str(draw.buffer_bytes))
    receiver, sender = ("serve", "up") if draw.is_upload else ("up", "serve")
    with (
        _scene(draw, draw.links(), folder) as built,
        serve(built, *buffer) as server,
        up(built, *buffer, "--class-rule", f"{PORT}={kind}") as client,
        _Work(built, draw, server, client) as work,
    ):
        gather(built, 1)
        work.connect(SERVICE_IP, through_proxy=True)
        work.compete(built.links, [path.others for path in draw.paths])
        before = _session(built, receiver)
        work.begin()
        after, sent = _session(built, receiver), _session(built, sender)
        outcome = work.outcome()
        outcome.disturbed = work.why_disturbed()
    if draw.work.kind != "stream":  # as in the simulation: also what arrived out of order
        outcome.goodput_mbps = _mbps(before, after, draw)
    outcome.in_order_p99_ms = max(
        (s["in_order_delay_ms"]["p99"] for s in after["streams"]), default=0
    )
    outcome.copies = sent["redundant_bytes"] / max(1, sent["redundant_bytes"] + sent["sent_bytes"])
    started = {path["name"]: path for path in before["paths"]}
    for path in after["paths"]:
        outcome.paths_mbps[path["name"]] = _mbps(started.get(path["name"], {}), path, draw)
    return outcome


def run_alone(draw: Draw, number: int, folder: Path) -> Outcome:
    """Plain TCP over one path, paced where the RTT is a millisecond, as the simulated one is."""
    link = replace(draw.links()[number], subnet=1)
    with _scene(draw, (link,), folder) as built, _Work(built, draw) as work:
        work.connect(link.client_ip if draw.is_upload else link.server_ip)
        work.compete([link], [draw.paths[number].others])
        work.begin()
        outcome = work.outcome()
        outcome.disturbed = work.why_disturbed()
    return outcome


def _scene(draw: Draw, links: Sequence[Link], folder: Path) -> AbstractContextManager[Scene]:
    control, settings = draw.control, BUFFER_SETTINGS["large"]
    return scene(
        links, seed=draw.seed, folder=folder, congestion_control=control, settings=settings
    )


def _session(built: Scene, role: str) -> dict[str, Any]:
    (found,) = status(built, role)["sessions"]
    return dict(found)


def _mbps(before: dict[str, Any], after: dict[str, Any], draw: Draw) -> float:
    arrived = after["received_bytes"] - before.get("received_bytes", 0)
    return float(arrived * 8e-6 / draw.time_s)


class _Work:
    """Sources that wait for the beginning of the work, and their sinks."""

    def __init__(self, built: Scene, draw: Draw, *daemons: Process) -> None:
        self.built, self.draw, self.programs = built, draw, list(daemons)
        self.sending, self.receiving = built.server, built.client
        if draw.is_upload:
            self.sending, self.receiving = built.client, built.server
        self.output = built.folder / "sink.json"
        self.dialling_s = DIALLING_S + 5.0 * draw.longest_rtt_s
        self.begun_s = self.foreign = 0.0
        self.stack = ExitStack()
        self.held, self.start = os.pipe()

    def __enter__(self) -> Self:
        """The work, before anything of it runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops what still runs."""
        self.stack.close()
        os.close(self.held)
        if not self.begun_s:
            os.close(self.start)

    def connect(self, address: str, *, through_proxy: bool = False) -> None:
        """Starts both ends of the transfer."""
        draw = self.draw
        source, sink = ["--pacing"], ["--window", str(draw.buffer_bytes)]
        proxy: list[str] = []
        if through_proxy:
            source, sink, proxy = [], [], ["--socks", f"127.0.0.1:{SOCKS_PORT}"]
        if draw.work.kind == "stream":
            rate = draw.work.bytes * 8e-3 / draw.work.every_ms
            source += ["--paced", f"{rate:.9g}", "--block", str(draw.work.bytes)]
            sink.append("--paced")
        # It is stopped when the time is over: its connection stands until then.
        sink += timing(draw.time_s + GRACE_S, 0.0, self.output)
        sink += ["--patience", f"{self.dialling_s + draw.time_s + GRACE_S:g}"]
        if through_proxy and draw.is_upload:  # the client makes the connection of an upload too
            self.sink = self._listener("sink", PORT, *sink)
            self._process("source", PORT, *source, "--address", address, *proxy)
        else:
            self._listener("source", PORT, *source)
            self.sink = self._process("sink", PORT, *sink, "--address", address, *proxy)

    def compete(self, links: Sequence[Link], counts: Sequence[int]) -> None:
        """Starts as many plain TCPs over each link; they send when the work begins."""
        port = PORT
        for link, count in zip(links, counts, strict=True):
            for _ in range(count):
                port += 1
                self._listener("source", port)
                address = link.client_ip if self.draw.is_upload else link.server_ip
                wait = ("--patience", "600", "--time", "600", "--output", os.devnull)
                self._process("sink", port, "--address", address, *wait)

    def _process(self, end: str, port: int, *options: str) -> Process:
        is_source = end == "source"
        hold = ("--hold",) if is_source else ()
        process = Process(
            [*PROGRAM, end, "--port", str(port), "--cc", self.draw.control, *hold, *options],
            log=self.built.folder / f"{end}-{port}.log",
            host=self.sending if is_source else self.receiving,
            env=ENVIRONMENT,
            stdin=self.held if is_source else subprocess.DEVNULL,
        )
        self.programs.append(process)
        return self.stack.enter_context(process)

    def _listener(self, end: str, port: int, *options: str) -> Process:
        process = self._process(end, port, *options)
        host = self.sending if end == "source" else self.receiving
        process.wait_until(lambda: listening(host, port), "it listens")
        return process

    def begin(self) -> None:
        """Begins when the connections stand, and returns when the time is over."""
        time.sleep(self.dialling_s)
        # Programs of others are not to slow these down, nor these the emulator.
        granted = [self.built.raise_emulator()]
        granted += [raise_threads(process.pid, below=2) for process in self.programs]
        used = user_time()
        self.begun_s = time.monotonic()
        os.close(self.start)
        if any(link.is_scheduled for link in self.built.links):
            self.built.emulator.trigger()
        time.sleep(max(0.0, self.begun_s + self.draw.time_s - time.monotonic()))
        self.foreign = 0.0 if all(granted) else foreign_share(used, user_time()) or 0.0

    def why_disturbed(self) -> str:
        """Why the run does not count: a late emulator, or other programs; empty if it counts."""
        if self.foreign > MOST:
            return f"other programs used {self.foreign:.0%} of the processors"
        return why_late(self.built.emulator.stats()) or ""

    def outcome(self) -> Outcome:
        """What the sink had when the time was over; nothing if no byte came."""
        time_s = self.draw.time_s
        self.sink.stop()  # its result is what it got by now
        if not self.output.exists():
            return Outcome(0.0, time_s * 1e3)
        found = json.loads(self.output.read_text(encoding="utf-8"))
        first_s = found["first_byte_at_s"] - self.begun_s
        step_s, totals = found["bins"]["step_s"], found["bins"]["bytes"]
        count = min(len(totals), max(0, round((time_s - first_s) / step_s)))
        silences = [(0.0, first_s)]
        silences += [(first_s + at, gap / 1e3) for at, gap in found["silences"]]
        stall_s = max(min(gap, time_s - at) for at, gap in silences)
        delay = found["delay"] or {}
        received = totals[count - 1] if count else 0
        if self.draw.work.kind == "stream":
            received = self.draw.work.bytes * delay.get("blocks", 0)
        return Outcome(
            received * 8e-6 / time_s,
            stall_s * 1e3,
            latency_p50_ms=delay.get("p50_ms", 0.0),
            latency_p99_ms=delay.get("p99_ms", 0.0),
        )
