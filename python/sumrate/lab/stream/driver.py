"""A sink as a process on the client: started, its first byte announced, its result read."""

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Site

if TYPE_CHECKING:  # schemes import this module
    from sumrate.lab.endpoints.base import Reach

PROGRAM = (sys.executable, "-m", "sumrate.lab.ends")
ENVIRONMENT = {"PYTHONPATH": str(REPOSITORY / "python")}
PATIENCE_S = 30.0
"""Longest time for the first byte, in seconds."""
GRACE_S = 10.0
POLL_S = 0.02


def cpu_now(process: Process) -> float:
    """CPU seconds that a running program has used; what it used in all once it has ended."""
    if process.poll() is not None:
        return process.cpu_seconds or 0.0
    text = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timing(seconds: float, warmup_s: float, output: Path) -> list[str]:
    """The flags of every sink: what is measured, and where the result goes."""
    return [
        *("--time", f"{seconds:g}", "--warmup", f"{warmup_s:g}"),
        *("--patience", f"{PATIENCE_S:g}", "--output", str(output)),
    ]


def server_command(
    site: Site, reach: "Reach", argv: Sequence[str], ready: Path, cc: str = ""
) -> list[str]:
    """The command of an end that listens; its congestion control is the site's if none is named."""
    return [
        *(*PROGRAM, *argv, "--listen", reach.listen_address, "--port", str(reach.listen_port)),
        *("--cc", cc or site.congestion_control, "--ready", str(ready)),
        *(["--mptcp"] if reach.mptcp else []),
    ]


@contextmanager
def serving(
    site: Site, reach: "Reach", name: str, argv: Sequence[str], *, cc: str = ""
) -> Iterator[Process]:
    """An end on the server machine, once it accepts connections where the scheme reaches it."""
    ready = site.folder / f"{name}-{reach.listen_port}.ready"
    ready.unlink(missing_ok=True)
    command = server_command(site, reach, argv, ready, cc)
    log = site.folder / f"{name}.log"
    with Process(command, log=log, host=site.server, env=ENVIRONMENT) as server:
        server.wait_until(ready.exists, f"the {name} accepts connections", PATIENCE_S)
        yield server


def reaching(reach: "Reach") -> list[str]:
    """The flags that tell an end where the server is."""
    argv = ["--address", reach.address, "--port", str(reach.port)]
    if reach.socks:
        argv += ["--socks", f"{reach.socks[0]}:{reach.socks[1]}"]
    return [*argv, "--mptcp"] if reach.mptcp else argv


def run_sink(
    site: Site,
    argv: list[str],
    output: Path,
    *,
    measured_s: float,
    on_first_byte: Callable[[], object] = lambda: None,
) -> tuple[dict[str, Any], str]:
    """Runs a sink on the client to its end; calls `on_first_byte` as soon as it has one.

    Returns what it wrote and its command line.

    Raises ProcessFailedError: nothing came, or the transfer broke; the message has what it
    said.
    """
    output.unlink(missing_ok=True)
    notices, write_end = os.pipe()
    log = site.folder / "sink.log"
    try:
        try:
            sink = Process(argv, log=log, host=site.client, env=ENVIRONMENT, stdout=write_end)
        finally:
            os.close(write_end)
        with sink:
            readable, _, _ = select.select([notices], [], [], PATIENCE_S + GRACE_S)
            if readable and os.read(notices, 64):
                on_first_byte()
            status = _wait(sink, measured_s + PATIENCE_S + GRACE_S)
    finally:
        os.close(notices)
    if status != 0 or not output.exists():
        raise ProcessFailedError(f"`{sink.command_line}` ended with {status}: {sink.tail()}")
    document: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return document, sink.command_line


def _wait(process: Process, timeout_s: float) -> int:
    """Waits with few wake-ups: the driver shares the processor with what it measures."""
    deadline = time.monotonic() + timeout_s
    while (status := process.poll()) is None:
        if time.monotonic() > deadline:
            raise ProcessFailedError(f"`{process.command_line}` still runs after {timeout_s} s")
        time.sleep(POLL_S)
    return status
