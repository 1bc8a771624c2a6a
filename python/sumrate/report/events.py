"""An event log as a picture: what each path carried, its RTT, and when it was not well."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.textpath import TextPath

from sumrate.report.lab.canvas import FORMATS, TEXT_PT, WIDTH_IN, drawing, finding, save
from sumrate.report.lab.palette import INK, Style, styles
from sumrate.traces.events import EventLog, PathEvents

HATCHES = {"suspect": "////", "dead": "xxxx"}
PANELS = (
    ("sent_mbps", "sent, Mbit/s"),
    ("received_mbps", "received, Mbit/s"),
    ("rtt_ms", "RTT, ms"),
)
HEIGHT_IN = 5.4
"""Without the legend."""
GAP_S = 1.0
"""A line is broken where nothing was logged for longer than this: nothing moved then."""
MOST_NAMED = 4
"""Paths in the sentence."""
SESSION_LETTERS = 8
"""So much of a session's id tells it from the others."""
KEY_IN = 0.85
"""Width of a key of the legend without its words, and of the space behind it."""
ROW_IN = 0.18
"""Height of a row of the legend."""


def draw(log: EventLog, path: Path) -> None:
    """Draws a log into a file whose ending names its kind.

    Raises:
        ValueError: another ending than .svg, .png and .pdf.

    """
    if path.suffix not in FORMATS:
        message = f"{path.name}: give the picture a name that ends in {', '.join(FORMATS)}"
        raise ValueError(message)
    with drawing():
        save(plot(log), path)


def plot(log: EventLog) -> Figure:
    """The picture: a curve for each path in three panels, and a legend that shows all looks."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    axes = list(figure.subplots(len(PANELS), 1, sharex=True))
    labels = _labels(log)
    looks = styles(labels)
    healths: list[str] = []
    for label, events in zip(labels, log.paths.values(), strict=True):
        look = looks[label]
        for panel, (measure, _) in zip(axes, PANELS, strict=True):
            times, values = _broken(events, measure)
            panel.plot(times, values, color=look.line, linestyle=look.dash, label=label)
        healths += _hatch(axes, events, log.end_s, look)
    for panel, (_, words) in zip(axes, PANELS, strict=True):
        panel.set_ylabel(words)
        panel.set_ylim(bottom=0)
        panel.grid(visible=True)
    axes[-1].set_xlabel("time since the process started, s")
    axes[-1].set_xlim(0, max(log.end_s, 1e-3))
    note = f"sumrate {log.header.get('role')} {log.header.get('version')}."
    if healths:
        note += " Hatched in a path's colour: when it was not well."
    _legend(figure, [*axes[0].lines, *_keys(healths)])
    finding(figure, sentence(log), note)
    return figure


def sentence(log: EventLog) -> str:
    """How much came or went in the busier direction, and by which paths."""
    carried = {
        measure: [_megabytes(events, measure) for events in log.paths.values()]
        for measure in ("sent_mbps", "received_mbps")
    }
    busier = max(carried, key=lambda measure: sum(carried[measure]))
    total = sum(carried[busier])
    if total <= 0:
        return "Nothing was carried"
    ranked = sorted(zip(carried[busier], _labels(log), strict=True), reverse=True)
    shares = [f"{name} {part / total:.0%}" for part, name in ranked[:MOST_NAMED] if part > 0]
    more = len([part for part, _ in ranked if part > 0]) - len(shares)
    rest = f" and {more} more" if more else ""
    size = f"{total / 1000:.1f} GB" if total >= 1000 else f"{total:.3g} MB"
    return f"{size} {busier.removesuffix('_mbps')}: {', '.join(shares)}{rest}"


def _megabytes(events: PathEvents, measure: str) -> float:
    """Megabytes that a path carried, from its rates; nothing moved in a gap of the log."""
    steps = [min(after - before, GAP_S) for before, after in pairwise(events.time_s)]
    return sum(
        rate * step / 8 for rate, step in zip(events.values[measure][1:], steps, strict=True)
    )


def _legend(figure: Figure, handles: list[Artist]) -> None:
    """Beside the curves, not on them, as wide as the figure, which grows with its rows."""
    if not handles:
        return
    columns = max(1, int(WIDTH_IN / (KEY_IN + max(_width_in(handle) for handle in handles))))
    figure.set_figheight(figure.get_figheight() + ROW_IN * ceil(len(handles) / columns))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=3.6,  # enough to tell dashes apart
    )


def _width_in(handle: Artist) -> float:
    """Width of the words of a key."""
    return float(TextPath((0, 0), str(handle.get_label()), size=TEXT_PT).get_extents().width) / 72


def _labels(log: EventLog) -> list[str]:
    """The paths' names, with their session where several sessions have a path of that name."""
    names = Counter(events.name for events in log.paths.values())
    return [
        events.name
        if names[events.name] == 1
        else f"{events.name} ({events.session[:SESSION_LETTERS]})"
        for events in log.paths.values()
    ]


def _broken(events: PathEvents, measure: str) -> tuple[list[float], list[float]]:
    """Points of a line, with a break where nothing was logged for a while."""
    times: list[float] = []
    values: list[float] = []
    for time_s, value in zip(events.time_s, events.values[measure], strict=True):
        if times and time_s - times[-1] > GAP_S:
            times.append(times[-1])
            values.append(float("nan"))
        times.append(time_s)
        values.append(value)
    return times, values


def _hatch(axes: list[Axes], events: PathEvents, end_s: float, look: Style) -> list[str]:
    """Hatches the times in which the path was suspect or dead; returns which of these it was."""
    changes = [*events.health, (end_s, "")]
    drawn = []
    for (begin, health), (end, _) in pairwise(changes):
        if health in HATCHES and end > begin:
            drawn.append(health)
            for panel in axes:
                panel.axvspan(begin, end, **_hatched(health, look.line))
    return drawn


def _hatched(health: str, colour: str) -> dict[str, Any]:
    """How such a time looks."""
    hatch = HATCHES[health]
    return {"facecolor": "none", "edgecolor": colour, "hatch": hatch, "lw": 0, "alpha": 0.5}


def _keys(healths: list[str]) -> Iterator[Artist]:
    """Keys of the drawn hatches."""
    for health in HATCHES:
        if health in healths:
            yield Patch(**_hatched(health, INK), label=health)
