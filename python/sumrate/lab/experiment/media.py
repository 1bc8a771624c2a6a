"""What experiments with video share: the encoder's absence, a server, a run of both ends."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints import Scheme, Unavailable
from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.record import Run
from sumrate.lab.process import Process
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Scene
from sumrate.lab.stream.driver import cpu_now, run_sink

CACHE = REPOSITORY / "out" / "cache"
"""Finished encodes, by the hash of what they depend on."""


@contextmanager
def encoding() -> Iterator[None]:
    """Inside, what encodes is imported and used; without it the run is missing.

    Raises Unavailable: the encoder or a clip is not installed, or failed.
    """
    try:
        from sumrate.qoe.video.ffmpeg import EncoderError  # noqa: PLC0415 (an optional extra)

        try:
            yield
        except EncoderError as error:
            raise Unavailable(str(error)) from error
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error}: pip install 'sumrate[qoe]'") from error


@dataclass(frozen=True)
class Delivery:
    """A run of server and client over a scheme."""

    document: dict[str, Any]
    """What the client wrote."""
    reach: Reach
    detail: dict[str, Any]
    """Command lines, and CPU seconds of all but the client."""


def deliver(
    run: Run,
    scheme: Scheme,
    built: Scene,
    *,
    server: tuple[str, Callable[[Reach], AbstractContextManager[Process]]],
    client: Callable[[Reach], list[str]],
    output: Path,
    measured_s: float,
    on_first_byte: Callable[[], object],
) -> Delivery:
    """Starts the scheme and the server (its name and how), runs the client to its end.

    What the scheme counted becomes metrics of the run.

    Raises ProcessFailedError: nothing came, or the transfer broke.
    """
    name, start = server
    with ExitStack() as stack:
        reach = stack.enter_context(scheme.stream(built))
        source = stack.enter_context(start(reach))
        programs = {**reach.processes, name: source}
        before = {name: cpu_now(process) for name, process in programs.items()}
        document, command = run_sink(
            built, client(reach), output, measured_s=measured_s, on_first_byte=on_first_byte
        )
        spent = {name: round(cpu_now(p) - before[name], 3) for name, p in programs.items()}
        for metric, (value, unit) in reach.counters().items():
            run.add(metric, value, unit)
    detail = {
        "command": command,
        "other_commands": [*reach.commands, source.command_line],
        "cpu_seconds": spent,
    }
    return Delivery(document, reach, detail)
