"""Where a condition of the tournament stands on the maps: which panel, row and column it is in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sumrate.report.tournament.table import Condition

Parameters = Mapping[str, Any]
LEAST_BUFFER = 64 << 10
"""The smallest buffer of the matrix, which has a column of its own."""


@dataclass(frozen=True)
class Scale:
    """One axis of a map: the place of a condition on it, in order, and what is written there."""

    label: str
    place: Callable[[Parameters], float]
    word: Callable[[Parameters], str]


@dataclass(frozen=True)
class Map:
    """A part of a group as a map with two axes."""

    group: str
    title: str
    belongs: Callable[[Parameters], bool]
    across: Scale
    down: Scale


@dataclass(frozen=True)
class Grid:
    """A map that is filled: who stands where."""

    drawn: Map
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Mapping[tuple[int, int], Condition]
    """By row and column."""


def _signed_rtt(parameters: Parameters) -> float:
    """Negative where the fast path is the later one."""
    ratio: float = parameters["rtt_ratio"]
    return {"fast": -ratio, "slow": ratio}.get(parameters["late"], 0.0)


def _rates(parameters: Parameters) -> str:
    return f"1:{parameters['rate_ratio']:g}"


def _pair(parameters: Parameters) -> str:
    late: bool = parameters["rtt_ratio"] > 1
    return _rates(parameters) + (
        f", {parameters['rtt_ratio']:g}\N{MULTIPLICATION SIGN}" if late else ""
    )


def _eighths(parameters: Parameters) -> float:
    """Buffer over product in eighths; 0 for the smallest buffer."""
    if parameters["buffer_bytes"] <= LEAST_BUFFER:
        return 0.0
    return float(round(parameters["buffer_factor"] * 8))


def _fraction(parameters: Parameters) -> str:
    eighths = _eighths(parameters)
    if not eighths:
        return "64K"
    return {1.0: "1/8", 2.0: "1/4", 4.0: "1/2"}.get(eighths, f"{eighths / 8:g}")


def _outage(parameters: Parameters) -> str:
    return f"{parameters['outage_s']:g}" + (" of 2" if parameters["flapping"] else "")


def _trace(parameters: Parameters) -> tuple[str, str]:
    """Its kind and the number of its draw."""
    kind, _, number = parameters["trace"].rpartition("-")
    return (kind, number) if kind else (number, "1")


def _kind_place(parameters: Parameters) -> float:
    known = ("los", "nlos", "mobility")
    kind = _trace(parameters)[0]
    return known.index(kind) if kind in known else len(known)


def _draw_place(parameters: Parameters) -> float:
    number = _trace(parameters)[1]
    return float(number) if number.isdecimal() else 0.0


RATE_RTT = Map(
    "rate-rtt",
    "Rates and RTTs",
    lambda _: True,
    Scale(
        "\N{LEFTWARDS ARROW} fast path later      RTT of the later path over the other's, from 2 ms"
        "      slow path later \N{RIGHTWARDS ARROW}",
        _signed_rtt,
        lambda p: f"{p['rtt_ratio']:g}",
    ),
    Scale("rates", lambda p: p["rate_ratio"], _rates),
)
PAIRS = Scale("rates, slow path's RTT", lambda p: p["rtt_ratio"] * 1000 + p["rate_ratio"], _pair)
LOSSES = tuple(
    Map(
        "loss",
        title,
        lambda p, side=side: p["lossy"] == side,  # type: ignore[misc]
        Scale("loss, %", lambda p: p["loss"], lambda p: f"{p['loss'] * 100:g}"),
        PAIRS,
    )
    for side, title in (
        ("fast", "Loss on the fast path"),
        ("slow", "Loss on the slow path"),
        ("both", "Loss on both"),
    )
)
BUFFERS = tuple(
    Map(
        "buffer",
        f"Buffer, rates 1:{ratio}",
        lambda p, ratio=ratio: p["rate_ratio"] == ratio,  # type: ignore[misc]
        Scale("buffer / (rates \N{MULTIPLICATION SIGN} largest RTT)", _eighths, _fraction),
        Scale(
            "slow path's RTT",
            lambda p: p["rtt_ratio"],
            lambda p: f"{p['rtt_ratio']:g}\N{MULTIPLICATION SIGN}",
        ),
    )
    for ratio in (1, 3, 10)
)
OUTAGES = tuple(
    Map(
        "outage",
        f"{side.capitalize()} path dark",
        lambda p, side=side: p["dark"] == side,  # type: ignore[misc]
        Scale("dark for, s", lambda p: p["flapping"] * 100 + p["outage_s"], _outage),
        PAIRS,
    )
    for side in ("fast", "slow")
)
SHORT = tuple(
    Map(
        "short",
        title,
        lambda p, lossy=lossy: (p["loss"] > 0) is lossy,  # type: ignore[misc]
        Scale(
            "size, KB", lambda p: p["transfer_bytes"], lambda p: f"{p['transfer_bytes'] // 1000}"
        ),
        PAIRS,
    )
    for lossy, title in ((False, "Short transfers"), (True, "Short transfers, 1 % loss"))
)
TRACES = Map(
    "trace",
    "Traces",
    lambda _: True,
    Scale("number of the draw", _draw_place, lambda p: _trace(p)[1]),
    Scale("WiGig's trace", _kind_place, lambda p: _trace(p)[0]),
)
LINES: tuple[tuple[Map, ...], ...] = ((RATE_RTT,), LOSSES, BUFFERS, OUTAGES, (*SHORT, TRACES))
"""The maps of the figure, line by line."""


def grid(drawn: Map, conditions: Sequence[Condition]) -> Grid:
    """The conditions that belong on a map, each in its cell.

    Rows and columns are those of the whole group, so that maps of one group can be compared.
    """
    group = [c for c in conditions if c.group == drawn.group]
    columns, rows = _words(drawn.across, group), _words(drawn.down, group)
    column, row = list(columns), list(rows)
    cells = {
        (row.index(drawn.down.place(p)), column.index(drawn.across.place(p))): condition
        for condition in group
        for p in [condition.parameters]
        if drawn.belongs(p)
    }
    return Grid(drawn, list(columns.values()), list(rows.values()), cells)


def _words(scale: Scale, conditions: Sequence[Condition]) -> dict[float, str]:
    """The places that occur, in order, and the word of each."""
    found = {scale.place(c.parameters): scale.word(c.parameters) for c in conditions}
    return dict(sorted(found.items()))
