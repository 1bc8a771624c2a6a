"""A sink as a process on the client: started, its first byte announced, its result read."""

import json
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Site

PROGRAM = (sys.executable, "-m", "sumrate.lab.stream")
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

    Raises:
        ProcessFailedError: nothing came, or the transfer broke; the message has what it said.

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
