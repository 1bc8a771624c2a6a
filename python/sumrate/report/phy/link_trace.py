"""A link trace as a picture: rate, signal, beams and silent times."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sumrate.phy.parameters import Floats, Integers, ParameterError
from sumrate.report.lab.canvas import (
    FORMATS,
    NOTE_PT,
    WIDTH_IN,
    Label,
    drawing,
    finding,
    label_ends,
    save,
)
from sumrate.report.lab.palette import INK, SHADE, SOFT, STYLES, Style
from sumrate.traces.link_trace import LinkTrace

ACCESS = {"dot11ad": "802.11ad", "jpoc": "JPOC", "alone": "no other client competes"}
MOST_POINTS = 600
NARROW = 1 / 700
"""Least visible gap between two spans, as a share of the picture's width."""
WIDE = 1 / 12
"""Least span with room for two words, as a share of the picture's width."""


def draw(trace: LinkTrace, path: Path) -> None:
    """Draws a trace into a file of the format of its suffix.

    Raises:
        ParameterError: the suffix is not .svg, .png or .pdf.

    """
    if path.suffix not in FORMATS:
        raise ParameterError("plot", repr(path.name), f"a name that ends in {', '.join(FORMATS)}")
    with drawing():
        save(plot(trace), path)


def plot(trace: LinkTrace) -> Figure:
    """Three panels: rate, SNR, and the beams of both ends."""
    figure = Figure(figsize=(WIDTH_IN, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    finding(figure, sentence(trace), _note(trace))
    rate, signal, beams = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    silent = trace.rate_mbps == 0
    for axes in (rate, signal, beams):
        axes.grid(visible=True)
        _spans(axes, trace, trace.in_state("training"), {"facecolor": "#f0e442", "alpha": 0.35})
        _spans(axes, trace, silent, {"facecolor": SHADE, "edgecolor": SOFT, "hatch": "///"})
    _curve(rate, trace.time_s, trace.rate_mbps / 1e3, STYLES[1])
    rate.set_ylabel("rate, Gbit/s")
    rate.set_ylim(bottom=0)
    for begin, end in _edges(trace, silent):
        if end - begin > WIDE * trace.seconds:
            rate.text((begin + end) / 2, rate.get_ylim()[1] * 0.5, "no data", ha="center",
                      size=NOTE_PT, weight="bold", color=INK, backgroundcolor=SHADE)  # fmt: skip
    used = trace.ap_beam >= 0
    _curve(signal, trace.time_s, np.where(used, trace.snr_db, np.nan), STYLES[0])
    signal.set_ylabel("SNR, dB")
    ends = [("AP", trace.ap_beam, STYLES[2]), ("client", trace.client_beam, STYLES[4])]
    for _, numbers, style in ends:
        _beam(beams, trace, numbers, style)
    beams.set_ylabel("beam in use")
    beams.set_xlabel("time, s")
    beams.set_xlim(0, trace.seconds)
    figure.draw_without_rendering()
    label_ends(beams, [
        Label(trace.seconds, float(numbers[used][-1] if used.any() else 0), name, style.text)
        for name, numbers, style in ends
    ])  # fmt: skip
    return figure


def sentence(trace: LinkTrace) -> str:
    """The mean rate and the silent times, as a sentence."""
    silences = trace.silences_s()
    mean = float(trace.rate_mbps.mean())
    rate = f"{mean / 1e3:.1f} Gbit/s" if mean >= 1e3 else f"{mean:.0f} Mbit/s"
    said = f"The link carries {rate} on the mean"
    if not silences.size:
        return f"{said}, without a pause"
    percent, longest = 100 * silences.sum() / trace.seconds, silences.max()
    said += f", and nothing in {percent:.0f} % of {trace.seconds:g} s"
    return f"{said}, at most {longest:.1f} s at once"


def _note(trace: LinkTrace) -> str:
    parts = [str(trace.metadata.get("title", "Link trace")).capitalize() + "."]
    if access := trace.metadata.get("access"):
        parts.append(f"Access: {ACCESS.get(access, access)}.")
    if (trace.rate_mbps == 0).any():
        parts.append("Hatched: no data.")
    if trace.in_state("training").any():
        parts.append("Yellow: trains beams during data.")
    return " ".join(parts)


def _curve(axes: Axes, times: Floats, values: Floats, style: Style) -> None:
    """A line of means over groups of steps, with the range of each group."""
    parts = max(1, -(-times.size // MOST_POINTS))
    length = times.size // parts * parts
    grouped = values[:length].reshape(-1, parts)
    with np.errstate(all="ignore"):
        low, mean, high = grouped.min(axis=1), grouped.mean(axis=1), grouped.max(axis=1)
    at = times[:length:parts]
    if parts > 1:
        axes.fill_between(at, low, high, color=style.colour, alpha=0.25, lw=0)
    axes.plot(at, mean, color=style.line)


def _beam(axes: Axes, trace: LinkTrace, numbers: Integers, style: Style) -> None:
    """A horizontal line for each use of a beam."""
    change = np.flatnonzero(np.diff(numbers)) + 1
    begins = np.concatenate([[0], change])
    ends = np.concatenate([change, [numbers.size]])
    kept = numbers[begins] >= 0
    axes.hlines(
        numbers[begins][kept], begins[kept] * trace.step_s, ends[kept] * trace.step_s,
        color=style.line, lw=2,
    )  # fmt: skip


def _edges(trace: LinkTrace, inside: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Begin and end of each span to draw; spans with an invisible gap are merged."""
    found: list[tuple[float, float]] = []
    for begin, end in trace.spans_s(inside).tolist():
        if found and begin - found[-1][1] < NARROW * trace.seconds:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def _spans(axes: Axes, trace: LinkTrace, inside: NDArray[np.bool_], look: dict[str, Any]) -> None:
    """Marks the spans with one shape."""
    spans = [(begin, end - begin) for begin, end in _edges(trace, inside)]
    low, high = 0.0, 1.0
    axes.broken_barh(
        spans, (low, high - low), transform=axes.get_xaxis_transform(), lw=0, zorder=0.5, **look
    )
