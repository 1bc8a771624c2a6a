"""A link trace as a picture: rate, signal, and what the link was doing."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumrate.phy.parameters import Floats, ParameterError
from sumrate.report.lab.canvas import WIDTH_IN, drawing
from sumrate.report.lab.palette import INK, STYLES
from sumrate.traces.link_trace import LinkTrace

SHADES = {"training": (STYLES[4].colour, ""), "outage": (STYLES[2].colour, "////")}
MAX_POINTS = 4000
KINDS = (".svg", ".png", ".pdf")


def draw(trace: LinkTrace, path: Path) -> None:
    """Draws a trace into a file whose ending names its kind.

    Raises:
        ParameterError: another ending than .svg, .png and .pdf.

    """
    if path.suffix not in KINDS:
        raise ParameterError("plot", repr(path.name), f"a name that ends in {', '.join(KINDS)}")
    with drawing():
        figure = Figure(figsize=(WIDTH_IN, 4.2), layout="constrained")
        rate, signal = figure.subplots(2, 1, sharex=True)
        times, low, mean, high = _thinned(trace.time_s, trace.rate_mbps / 1e3)
        rate.fill_between(times, low, high, color=STYLES[1].colour, alpha=0.25, lw=0)
        rate.plot(times, mean, color=STYLES[1].line)
        rate.set_ylabel("rate, Gbit/s")
        rate.set_ylim(bottom=0)
        used = np.where(trace.ap_beam >= 0, trace.snr_db, np.nan)
        times, low, mean, high = _thinned(trace.time_s, used)
        signal.fill_between(times, low, high, color=STYLES[0].colour, alpha=0.25, lw=0)
        signal.plot(times, mean, color=STYLES[0].line)
        signal.set_ylabel("SNR, dB")
        signal.set_xlabel("time, s")
        for axes in (rate, signal):
            axes.grid(visible=True)
            _states(axes, trace)
        signal.set_xlim(0, trace.seconds)
        title = str(trace.metadata.get("title", "link trace"))
        access = trace.metadata.get("access")
        figure.suptitle(f"{title}; access: {access}" if access else title, fontsize=9, color=INK)
        handles = [
            rate.axvspan(-2, -1, facecolor=colour, hatch=hatch, alpha=0.45, lw=0, label=name)
            for name, (colour, hatch) in SHADES.items()
        ]
        rate.legend(
            handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False
        )
        figure.savefig(path, dpi=150)


def _thinned(times: Floats, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Time, least, mean and largest value of so many parts that a plot can show."""
    parts = max(1, -(-times.size // MAX_POINTS))
    length = times.size // parts * parts
    grouped = values[:length].reshape(-1, parts)
    with np.errstate(all="ignore"):
        return (
            times[:length:parts],
            np.asarray(grouped.min(axis=1)),
            np.asarray(grouped.mean(axis=1)),
            np.asarray(grouped.max(axis=1)),
        )


def _states(axes: Axes, trace: LinkTrace) -> None:
    """Shades the spans of training and outage."""
    for name, (colour, hatch) in SHADES.items():
        inside = np.concatenate([[0], trace.in_state(name).astype(np.int8), [0]])
        edges = np.flatnonzero(np.diff(inside))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            axes.axvspan(
                begin * trace.step_s,
                end * trace.step_s,
                facecolor=colour,
                hatch=hatch,
                alpha=0.45,
                lw=0,
            )
