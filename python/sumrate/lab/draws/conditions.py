"""A draw of `fbdt-world draw SEED --json` as links of the emulator.

The simulation counts TCP payload, the emulator IP packets: rates and token buckets are larger here
by the headers of a full segment. The simulation has no queue for acknowledgements, and loses none.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, json

from sumrate.lab.links import Blackout, Impairment, Link, Sleep

WIRE = 1500 / 1448
"""Bytes of an IP packet over those of its TCP payload."""
LEAST_BYTES = 6000.0
"""Queues and buckets of policers hold at least as much."""
LEAST_MBPS = 0.001
"""The emulator's slowest rate."""
LEFT_OUT = {"seed": "it names the draw", "shared": "such a draw is skipped"}
"""Fields of a draw that no run on sockets follows, each with the reason."""


class Strict(Struct, forbid_unknown_fields=True, frozen=True):
    """A part of a draw; a field that it does not have is refused."""


class Outage(Strict, frozen=True):
    """A silent time of a path, in seconds from when the work begins."""

    at_s: float
    length_s: float


class RateStep(Strict, frozen=True):
    """A factor of both rates of a path, from a time on."""

    at_s: float
    factor: float


class RadioSleep(Strict, frozen=True):
    """A radio that sleeps after a rest, and takes a time to wake."""

    rest_ms: float
    wake_ms: float


class PathDraw(Strict, frozen=True):
    """One path, as `fbdt-world` names its properties."""

    down_mbps: float
    up_mbps: float
    rtt_ms: float
    bottleneck: dict[Literal["queue_ms", "policer_ms"], float]
    burst_bytes: int
    loss: float
    loss_run: float
    jitter_ms: float
    overtaking: bool
    gathered_ms: float
    outages: tuple[Outage, ...]
    steps: tuple[RateStep, ...]
    sleep: RadioSleep | None
    others: int

    def rates(self) -> list[float]:
        """All rates that it ever has, in Mbit/s on the wire."""
        factors = [1.0, *(step.factor for step in self.steps)]
        return [rate * f * WIRE for rate in (self.down_mbps, self.up_mbps) for f in factors]


class Work(Strict, frozen=True):
    """What the program does; blocks or messages have a size and perhaps an interval."""

    kind: Literal["bulk_down", "bulk_up", "short", "stream", "messages"]
    bytes: int = 0
    every_ms: float = 0.0


class Draw(Strict, frozen=True):
    """Conditions, and the work that is done under them."""

    seed: int
    paths: tuple[PathDraw, ...]
    shared: bool
    control: Literal["cubic", "bbr"]
    buffer_bytes: int
    work: Work
    time_s: float

    @property
    def is_upload(self) -> bool:
        """Whether the client sends."""
        return self.work.kind == "bulk_up"

    @property
    def longest_rtt_s(self) -> float:
        """The longest RTT without queue."""
        return max(path.rtt_ms for path in self.paths) / 1e3

    def links(self) -> tuple[Link, ...]:
        """Its paths as emulated links, by the names path0, path1 and so on."""
        return tuple(
            _link(path, number, upload=self.is_upload) for number, path in enumerate(self.paths)
        )


def decoded(text: str | bytes) -> Draw:
    """A draw from its JSON.

    Raises msgspec.ValidationError: it has a field that is not known here, or lacks one.
    """
    return json.decode(text, type=Draw)


def why_skipped(draw: Draw, most_mbps: float) -> str | None:
    """Why a draw cannot be run on sockets here; None if it can."""
    if draw.work.kind in ("short", "messages"):
        return f"work of kind {draw.work.kind}"
    if draw.work.kind == "stream" and draw.work.bytes <= 16:
        return "blocks of at most 16 bytes"
    if draw.shared:
        return "two paths on one bottleneck with different RTTs"
    rates = [rate for path in draw.paths for rate in path.rates()]
    if min(rates) < LEAST_MBPS:
        return f"a rate below {LEAST_MBPS:g} Mbit/s"
    total = sum(path.up_mbps if draw.is_upload else path.down_mbps for path in draw.paths)
    return f"rates above {most_mbps:g} Mbit/s in all" if total > most_mbps else None


def _link(path: PathDraw, number: int, *, upload: bool) -> Link:
    return Link(
        f"path{number}",
        number + 1,
        down=_direction(path, path.down_mbps, gathers=upload),
        up=_direction(path, path.up_mbps, gathers=not upload),
        blackouts=tuple(_outages(path)),
        rate_steps=tuple((step.at_s, step.factor) for step in path.steps),
        queue_of_bytes=True,
        sleep=Sleep(path.sleep.rest_ms, path.sleep.wake_ms) if path.sleep else None,
    )


def _direction(path: PathDraw, mbps: float, *, gathers: bool) -> Impairment:
    """One direction; acknowledgements are gathered in the one that the work does not take."""
    bytes_per_ms = mbps * 125.0
    policed_ms = path.bottleneck.get("policer_ms")
    bucket = float(path.burst_bytes)
    if policed_ms is not None:
        bucket += max(bytes_per_ms * policed_ms, LEAST_BYTES)
    return Impairment(
        rate_mbps=mbps * WIRE,
        delay_ms=path.rtt_ms / 2,
        queue_ms=max(path.bottleneck.get("queue_ms", 0.0), LEAST_BYTES / bytes_per_ms),
        loss=path.loss,
        loss_burst=path.loss_run,
        burst_bytes=round(bucket * WIRE),
        policer=policed_ms is not None,
        jitter_sd_ms=path.jitter_ms,
        reorder=path.overtaking,
        gather_ms=path.gathered_ms if gathers else 0.0,
    )


def _outages(path: PathDraw) -> Iterator[Blackout]:
    for outage in path.outages:
        yield Blackout(outage.at_s, outage.at_s + outage.length_s)
