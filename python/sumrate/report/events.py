"""An event log as a picture: what each path carried, its RTT, and when it was not well."""

from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.report.lab.canvas import WIDTH_IN, drawing
from sumrate.report.lab.palette import INK, STYLES
from sumrate.traces.events import EventLog, PathEvents

KINDS = (".svg", ".png", ".pdf")
HATCHES = {"suspect": "////", "dead": "xxxx"}
GAP_S = 1.0
"""A line is broken where nothing was logged for longer than this: nothing moved then."""


def draw(log: EventLog, path: Path) -> None:
    """Draws a log into a file whose ending names its kind.

    Raises:
        ValueError: another ending than .svg, .png and .pdf.

    """
    if path.suffix not in KINDS:
        message = f"{path.name}: give the picture a name that ends in {', '.join(KINDS)}"
        raise ValueError(message)
    panels = (
        ("sent_mbps", "sent, Mbit/s"),
        ("received_mbps", "received, Mbit/s"),
        ("rtt_ms", "RTT, ms"),
    )
    with drawing():
        figure = Figure(figsize=(WIDTH_IN, 5.6), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True)
        for place, events in enumerate(log.paths.values()):
            style = STYLES[place % len(STYLES)]
            for panel, (measure, _) in zip(axes, panels, strict=True):
                times, values = _broken(events, measure)
                panel.plot(times, values, color=style.line, label=events.name)
            _spans(axes, events, log.end_s, style.colour)
        for panel, (_, words) in zip(axes, panels, strict=True):
            panel.set_ylabel(words)
            panel.set_ylim(bottom=0)
            panel.grid(visible=True)
        axes[-1].set_xlabel("time since the process started, s")
        axes[-1].set_xlim(0, max(log.end_s, 1e-3))
        role, version = log.header.get("role"), log.header.get("version")
        title = f"sumrate {role} {version}; hatched: suspect (/) or dead (x)"
        figure.suptitle(title, fontsize=9, color=INK)
        if log.paths:
            axes[0].legend(loc="upper right", ncols=4, frameon=False)
        figure.savefig(path, dpi=150)


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


def _spans(axes: list[Axes], events: PathEvents, end_s: float, colour: str) -> None:
    """Hatches the times in which the path was suspect or dead."""
    changes = [*events.health, (end_s, "")]
    for (begin, health), (end, _) in pairwise(changes):
        if health in HATCHES and end > begin:
            for panel in axes:
                panel.axvspan(
                    begin, end, facecolor="none", edgecolor=colour, hatch=HATCHES[health], lw=0,
                    alpha=0.5,
                )  # fmt: skip
