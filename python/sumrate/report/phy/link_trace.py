"""A link trace as a picture: rate, signal and beams over time, and where nothing is carried."""

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

MOST_POINTS = 600
NARROW = 1 / 700
"""Gaps between two spans that are a smaller part of the picture are not seen."""
WIDE = 1 / 12
"""A span that has room for two words."""


def draw(trace: LinkTrace, path: Path) -> None:
    """Draws a trace into a file whose ending names its kind.

    Raises:
        ParameterError: another ending than .svg, .png and .pdf.

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
    """The mean rate, and for how long nothing is carried."""
    silent = trace.rate_mbps == 0
    spans = [end - begin for begin, end in _edges(trace, silent)]
    mean = float(trace.rate_mbps.mean())
    rate = f"{mean / 1e3:.1f} Gbit/s" if mean >= 1e3 else f"{mean:.0f} Mbit/s"
    said = f"The link carries {rate} on the mean"
    if not spans:
        return f"{said}, without a pause"
    return (
        f"{said}, and nothing in {silent.mean():.0%} of {trace.seconds:g} s, "
        f"at most {max(spans):.1f} s at once"
    )


def _note(trace: LinkTrace) -> str:
    parts = [str(trace.metadata.get("title", "Link trace")).capitalize() + "."]
    if access := trace.metadata.get("access"):
        parts.append(f"Access: {access}.")
    if (trace.rate_mbps == 0).any():
        parts.append("Hatched: no data.")
    if trace.in_state("training").any():
        parts.append("Yellow: trains beams during data.")
    return " ".join(parts)


def _curve(axes: Axes, times: Floats, values: Floats, style: Style) -> None:
    """A line of means, with the range of what each point stands for."""
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
    """A line for each time that a beam is used."""
    change = np.flatnonzero(np.diff(numbers)) + 1
    begins = np.concatenate([[0], change])
    ends = np.concatenate([change, [numbers.size]])
    kept = numbers[begins] >= 0
    axes.hlines(
        numbers[begins][kept], begins[kept] * trace.step_s, ends[kept] * trace.step_s,
        color=style.line, lw=2,
    )  # fmt: skip


def _edges(trace: LinkTrace, inside: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """When each span begins and ends; those with a gap that is not seen are one."""
    padded = np.concatenate([[0], inside.astype(np.int8), [0]])
    edges = np.flatnonzero(np.diff(padded)) * trace.step_s
    found: list[tuple[float, float]] = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if found and begin - found[-1][1] < NARROW * trace.seconds:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def _spans(axes: Axes, trace: LinkTrace, inside: NDArray[np.bool_], look: dict[str, Any]) -> None:
    """Marks the times, in one shape."""
    spans = [(begin, end - begin) for begin, end in _edges(trace, inside)]
    low, high = 0.0, 1.0
    axes.broken_barh(
        spans, (low, high - low), transform=axes.get_xaxis_transform(), lw=0, zorder=0.5, **look
    )
