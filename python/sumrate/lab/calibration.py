"""Measures emulated links against what was set, before runs rely on them."""

import json
import math
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sumrate.lab.links import CLIENT, DEFAULT_MTU, SERVER, Link, configuration
from sumrate.lab.namespaces import Host
from sumrate.lab.programs import program
from sumrate.lab.results import rounded

RATE_S = 0.3
"""Each rate is measured for so long, a loss for up to four times as long."""
ATTEMPTS = 3
"""A busy machine makes the emulator late: what is off is measured again."""
OFF = 1
"""Exit status of `sumrate-link calibrate` if something is off."""


def plain(link: Link) -> Link:
    """The link as it is between its changes: no blackouts, holds, steps, bursts and sleep."""
    steady = link.without_variation()
    return replace(steady, blackouts=(), ack_delay=None, sleep=None, ssthresh=0)


def measurable(link: Link) -> bool:
    """Whether packets of both directions arrive, so that its round trip can be measured."""
    return not link.wire and max(link.up.loss, link.down.loss) < 1.0


def calibrate(links: Iterable[Sequence[Link]], *, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Measures round trip, loss, rate and jitter of every different link, in both directions.

    Args:
        links: the links of each condition.
        seed: of the emulator's random choices.
        folder: where the configuration is left.

    Returns:
        For each link and quantity: what was set (`expected`), what was measured, the tolerance, and
        whether it is kept (`ok`).

    Raises RuntimeError: the links cannot be brought up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    found: list[dict[str, Any]] = []
    for together in links:
        wanted = {link.toml(): link for link in map(plain, together) if measurable(link)}
        fresh = [link for text, link in wanted.items() if text not in seen]
        seen |= wanted.keys()
        if fresh:
            found += _until_right(fresh, seed, folder / "calibration.toml")
    return found


def _until_right(links: Sequence[Link], seed: int, config: Path) -> list[dict[str, Any]]:
    """Measures, and what is off again; the last measurement counts."""
    rows = _measured(links, seed, config)
    for _ in range(ATTEMPTS - 1):
        off = {row["link"] for row in rows if not row["ok"]}
        if not off:
            break
        again = _measured([link for link in links if link.name in off], seed, config)
        rows = [row for row in rows if row["link"] not in off] + again
    return rows


def _measured(links: Sequence[Link], seed: int, config: Path) -> list[dict[str, Any]]:
    config.write_text(configuration(links, seed), encoding="utf-8")
    argv = [str(program("sumrate-link")), "calibrate", str(config), "--json"]
    argv += ["--duration", str(RATE_S)]
    with ExitStack() as stack:
        for name in (CLIENT, SERVER):
            stack.callback(Host(name).delete)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, OFF) or not done.stdout:
        raise RuntimeError(f"the links cannot be calibrated: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    return [
        {"link": link["name"], **_shown(row)}
        for link in said["links"]
        for row in link["measurements"]
    ]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {key: rounded(v, 5) if isinstance(v, float) else v for key, v in row.items()}


ROUND_TRIP_SHARE = 0.005
"""What a long round trip may be off by, as `sumrate-link calibrate` has it; an earlier one allowed
half a millisecond whatever the length."""


RATE_SHARE = 0.02
"""What a rate may be off by."""
DEVIATIONS = 4.0
"""Of what a lossy link lets through, as `sumrate-link calibrate` has it; an earlier one allowed two
per cent whatever was lost, and one of a slow link's fifty packets is as much."""


def off(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The measurements that are too far from what was set; a link's loss stands before its rate."""
    lost: dict[tuple[str, str], float] = {}
    for row in rows:
        place = row["link"], row["direction"]
        if row["quantity"] == "loss":
            lost[place] = row["expected"]
        if is_off(row, lost.get(place, 0.0)):
            yield row


def is_off(row: dict[str, Any], loss: float = 0.0) -> bool:
    """Whether a measurement, of a link that loses this share, is too far from what was set."""
    if row["ok"]:
        return False
    allowed = {
        "round_trip_ms": ROUND_TRIP_SHARE,
        "rate_mbps": max(RATE_SHARE, DEVIATIONS * _deviation(row["measured"], loss)),
    }.get(row["quantity"], 0.0)
    return bool(abs(row["measured"] - row["expected"]) > allowed * row["expected"])


def _deviation(rate_mbps: float, loss: float) -> float:
    """Standard deviation of a rate measured for `RATE_S`, over the rate."""
    packets = max(1.0, rate_mbps * 1e6 / 8 / DEFAULT_MTU * RATE_S)
    return math.sqrt(loss * (1 - loss) / packets) / max(1 - loss, 0.01)


def words(row: dict[str, Any]) -> str:
    """A measurement that is off, for people."""
    return (
        f"{row['link']}, {row['direction']}: {row['quantity']} is {row['measured']}, "
        f"{row['expected']} was set"
    )
