"""One stream over one scheme: a source on the server machine, a sink on the client, one result."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints.base import Reach
from sumrate.lab.links import Link
from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.scene import Site
from sumrate.lab.stream.driver import (
    ENVIRONMENT,
    PROGRAM,
    cpu_now,
    reaching,
    run_sink,
    serving,
    timing,
)


@dataclass(frozen=True)
class Pace:
    """A source that sends blocks of this size at this rate."""

    mbps: float
    block_bytes: int = 16384


@dataclass(frozen=True)
class StreamResult:
    """What the sink wrote, the commands, and the CPU seconds of every program meanwhile."""

    document: dict[str, Any]
    """The sink's JSON, schema sumrate.lab.stream.v1."""
    commands: list[str]
    """The scheme's, the source's, and last the sink's."""
    cpu_seconds: dict[str, float]

    @property
    def goodput_mbps(self) -> float:
        """What the client received in the measured time, in Mbit/s."""
        return float(self.document["goodput_mbps"])

    @property
    def cpu_s_per_gb(self) -> float:
        """CPU seconds of all programs at both ends for each GB (1e9 bytes) received."""
        return sum(self.cpu_seconds.values()) / (float(self.document["total_bytes"]) / 1e9)


def sink_command(
    reach: Reach, *, seconds: float, warmup_s: float, pace: Pace | None, output: Path
) -> list[str]:
    """The command of the receiver."""
    argv = [*PROGRAM, "sink", *reaching(reach), *timing(seconds, warmup_s, output)]
    return [*argv, "--paced"] if pace else argv


def source_flags(pace: Pace | None) -> list[str]:
    """The sender and its pace."""
    paced = ["--paced", f"{pace.mbps:g}", "--block", str(pace.block_bytes)] if pace else []
    return ["source", *paced]


def running_source(
    site: Site, reach: Reach, pace: Pace | None, congestion_control: str = ""
) -> AbstractContextManager[Process]:
    """A source that accepts connections; its congestion control is the site's if none is named."""
    return serving(site, reach, "source", source_flags(pace), cc=congestion_control)


def run_stream(
    site: Site,
    reach: Reach,
    *,
    seconds: float,
    warmup_s: float = 0.0,
    pace: Pace | None = None,
    on_first_byte: Callable[[], object] = lambda: None,
) -> StreamResult:
    """Sends from the server machine to the client over what `Scheme.stream` gave.

    Args:
        site: the two hosts.
        reach: how the client reaches the server's programs.
        seconds: what is measured, after the warm-up, from the first byte on.
        warmup_s: seconds after the first byte that do not count.
        pace: None sends as fast as it is taken.
        on_first_byte: called at once when the first byte is there.

    Raises ProcessFailedError: an end failed, nothing came, or the connection broke.
    """
    output = site.folder / "stream.json"
    argv = sink_command(reach, seconds=seconds, warmup_s=warmup_s, pace=pace, output=output)
    with running_source(site, reach, pace) as source:
        programs = {**reach.processes, "source": source}
        before = {name: cpu_now(process) for name, process in programs.items()}
        document, command = run_sink(
            site, argv, output, measured_s=seconds + warmup_s, on_first_byte=on_first_byte
        )
        spent = {name: round(cpu_now(p) - before[name], 3) for name, p in programs.items()}
    return StreamResult(
        document=document,
        commands=[*reach.commands, source.command_line, command],
        cpu_seconds={**spent, "sink": document["cpu_s"]},
    )


@dataclass
class Competitor:
    """One plain TCP that sends over a link beside what is measured."""

    sink: Process
    output: Path

    def goodput_mbps(self, start_s: float, end_s: float) -> float:
        """Its goodput between two times of CLOCK_MONOTONIC; it ends with the first call.

        Raises ProcessFailedError: it had ended before.
        """
        self.sink.stop()
        if not self.output.exists():
            raise ProcessFailedError(f"`{self.sink.command_line}`: {self.sink.tail()}")
        found = json.loads(self.output.read_text(encoding="utf-8"))
        step, totals = found["bins"]["step_s"], found["bins"]["bytes"]

        def total(at_s: float) -> float:
            index = round((at_s - found["first_byte_at_s"]) / step)
            return float(totals[min(max(index, 0), len(totals) - 1)])

        return (total(end_s) - total(start_s)) * 8e-6 / (end_s - start_s)


@contextmanager
def beside(
    site: Site, link: Link, port: int, *, at_most_s: float, congestion_control: str = ""
) -> Iterator[Competitor]:
    """A plain TCP over this link, as fast as it can; its first byte has arrived."""
    reach = Reach(link.server_ip, link.server_ip, port=port, listen_port=port)
    output, ready = site.folder / f"beside-{port}.json", site.folder / f"beside-{port}.ready"
    output.unlink(missing_ok=True)
    ready.unlink(missing_ok=True)
    argv = sink_command(reach, seconds=at_most_s, warmup_s=0.0, pace=None, output=output)
    argv += ["--ready", str(ready), "--bind", link.client_ip]
    with (
        running_source(site, reach, None, congestion_control) as _,
        Process(argv, log=site.folder / "sink.log", host=site.client, env=ENVIRONMENT) as sink,
    ):
        sink.wait_until(ready.exists, "the TCP beside it sends")
        yield Competitor(sink, output)
