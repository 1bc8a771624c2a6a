"""Downloads by curl, timed by curl itself."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sumrate.lab.process import Process, ProcessFailedError
from sumrate.lab.scene import Site
from sumrate.qoe.carriage import Carriage


@dataclass(frozen=True)
class Download:
    """One download: seconds from the start of the connection on."""

    total_s: float
    """To the last byte."""
    first_byte_s: float
    bytes: int
    command: str


def parse(said: str, expected_bytes: int) -> tuple[float, float]:
    """Seconds to the last and to the first byte, from what `--write-out %{json}` gave.

    Raises:
        ValueError: it is no such answer, not the whole file, or not status 200.

    """
    try:
        found = json.loads(said)
        status, size = int(found["http_code"]), int(found["size_download"])
        times = float(found["time_total"]), float(found["time_starttransfer"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"curl gave no timing: {said[:200]!r}") from error
    if status != 200 or size != expected_bytes:
        raise ValueError(f"status {status}, {size} of {expected_bytes} bytes")
    return times


def parse_many(said: str, expected_bytes: Sequence[int]) -> tuple[float, int]:
    """Seconds that several downloads of one curl took together, and its connections.

    Raises:
        ValueError: a file is missing, not whole, or curl said something else.

    """
    lines = said.splitlines()
    if len(lines) != len(expected_bytes):
        raise ValueError(f"{len(lines)} of {len(expected_bytes)} files came")
    seconds = sum(parse(line, size)[0] for line, size in zip(lines, expected_bytes, strict=True))
    return seconds, sum(int(json.loads(line)["num_connects"]) for line in lines)


def command(url: str, carriage: Carriage, *, ends: str = "") -> list[str]:
    """A curl that forgets what it gets and says how long it took, with `ends` behind that."""
    proxy = ["--proxy", carriage.proxy] if carriage.proxy else []
    argv = ["curl", "--silent", "--show-error", "--fail", "--write-out", f"%{{json}}{ends}"]
    return [*carriage.prefix, *argv, *proxy, "--output", "/dev/null", url]


def download(
    site: Site, carriage: Carriage, url: str, expected_bytes: int, timeout_s: float
) -> Download:
    """One download by a curl of its own.

    Raises:
        ProcessFailedError: it failed, or did not give the whole file in time.

    """
    answer = site.folder / "curl.json"
    answer.unlink(missing_ok=True)
    log = site.folder / "curl.log"
    argv = command(url, carriage)
    with Process(argv, log=log, host=site.client, stdout=answer) as client:
        status = client.wait(timeout_s)
    said = answer.read_text(encoding="utf-8")
    try:
        if status != 0:
            raise ValueError(f"exit status {status}: {client.tail()}")
        total_s, first_byte_s = parse(said, expected_bytes)
    except ValueError as error:
        raise ProcessFailedError(f"`{client.command_line}`: {error}") from error
    return Download(total_s, first_byte_s, expected_bytes, client.command_line)
