"""Goodput against time of one condition of a result: a strip for each scheme, the best at the end.

Run: python -m sumrate.report.series RESULT --condition NAME --figure FILE.svg
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from sumrate.report.lab.canvas import FORMATS, NOTE_PT, WIDTH_IN, drawing, finding, save
from sumrate.report.lab.curves import dark_spans
from sumrate.report.lab.palette import INK, OTHER, RULE, SHADE, SOFT, STYLES
from sumrate.report.lab.read import RunError, Scheme, Setting, read_run
from sumrate.report.lab.summary import JUDGED, Summary, summarise

STRIP_IN = 0.56
LEAST_MBPS, MOST_MBPS = 3.0, 3000.0
"""Both rates of a radio at 60 GHz and one at 2.4 GHz are seen on a scale of factors."""
MARKS_MBPS = (10, 100, 1000)


class SeriesError(Exception):
    """A result has no such series."""


def series(folder: Path, condition: str) -> Figure:
    """A strip for each scheme, in 100 ms samples, of the repetition with the median goodput.

    Raises:
        RunError: the folder is no result.
        SeriesError: it has no such condition, or nothing was sampled in it.

    """
    if folder.suffix == ".parquet":
        raise SeriesError(
            f"{folder} has values only, no samples over time: `sumrate-lab run {folder.stem}` "
            f"leaves them in out/lab/{folder.stem}"
        )
    summary = summarise(read_run(folder))
    settings = [s for _, found in summary.variants() for s in found if s.condition == condition]
    if not settings:
        names = sorted({s.condition for _, found in summary.variants() for s in found})
        raise SeriesError(f"{folder} has no condition {condition}; it has {', '.join(names)}")
    drawn = [n for n in summary.schemes if summary.median_run(settings[0], n.name)]
    if not drawn:
        raise SeriesError(f"{folder}: nothing was sampled in {condition}")
    ranked = sorted(drawn, key=lambda n: _median(summary, settings[0], n, "goodput_mbps"))
    with drawing():
        return _figure(summary, settings[0], ranked)


def _median(summary: Summary, setting: Setting, scheme: Scheme, metric: str) -> float:
    spread = summary.spread(metric, setting, scheme.name)
    return spread.median if spread else 0.0


def _figure(summary: Summary, setting: Setting, schemes: Sequence[Scheme]) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 0.5 + STRIP_IN * len(schemes)), layout="constrained")
    dark = dark_spans(summary, setting)
    words = "; ".join(f"{what} from {start:g} to {end:g} s" for what, start, end in dark)
    note = "Goodput in samples of 0.1 s on a scale of factors. Medians of the repetitions."
    finding(figure, sentence(summary, setting, schemes), f"Hatched: {words}. {note}")
    strips = figure.subplots(len(schemes), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, scheme in zip(strips, schemes, strict=True):
        for _, start, end in dark:
            axes.axvspan(start, end, facecolor=SHADE, edgecolor=RULE, hatch="///", lw=0, zorder=0.5)
        _strip(axes, summary, setting, scheme)
    strips[-1].set_xlabel("seconds since the first byte")
    figure.supylabel("goodput, Mbit/s", size=9)
    return figure


def _strip(axes: Axes, summary: Summary, setting: Setting, scheme: Scheme) -> None:
    key = summary.median_run(setting, scheme.name)
    points = summary.run.series[key] if key else []
    own = scheme.name == JUDGED
    times = [at for at, _ in points]
    rates = [max(rate, LEAST_MBPS) for _, rate in points]
    colour = STYLES[0].colour if own else OTHER
    axes.fill_between(times, rates, LEAST_MBPS, color=colour, alpha=0.75 if own else 0.5, lw=0)
    axes.plot(times, rates, color=INK, lw=0.8)
    axes.set_yscale("log")
    axes.set(xlim=(0, times[-1]), ylim=(LEAST_MBPS, MOST_MBPS))
    axes.yaxis.set_major_locator(FixedLocator(MARKS_MBPS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.tick_params(labelsize=NOTE_PT)
    axes.grid(visible=True, axis="y")
    stall = _median(summary, setting, scheme, "longest_stall_ms")
    said = f"{_median(summary, setting, scheme, 'goodput_mbps'):.0f} Mbit/s\nstall: {_time(stall)}"
    axes.annotate(
        f"{scheme.title}", (0, 1), xytext=(2, 1), xycoords="axes fraction",
        textcoords="offset points", size=NOTE_PT, weight="bold",
        color=STYLES[0].text if own else INK,
    )  # fmt: skip
    axes.annotate(
        said, (1, 0.5), xytext=(5, 0), xycoords="axes fraction", textcoords="offset points",
        va="center", size=NOTE_PT, color=STYLES[0].text if own else SOFT,
        weight="bold" if own else "normal", annotation_clip=False,
    )  # fmt: skip


def _time(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms"


def sentence(summary: Summary, setting: Setting, schemes: Sequence[Scheme]) -> str:
    """How long Sumrate stalls, against the shortest and the longest of the others."""
    stalls = {n: _median(summary, setting, n, "longest_stall_ms") for n in schemes}
    own = next((n for n in schemes if n.name == JUDGED), None)
    others = {n: ms for n, ms in stalls.items() if not n.name.startswith(JUDGED)}
    if own is None or not others:
        longest = max(stalls, key=lambda n: stalls[n])
        return f"{longest.title} stalls for {_time(stalls[longest])}"
    last = schemes[-1] is own
    best = min(others, key=lambda n: others[n])
    worst = max(others, key=lambda n: others[n])
    return (
        f"{own.title} {'carries the most and ' if last else ''}stalls for {_time(stalls[own])}; "
        f"{best.title} for {_time(others[best])}, {worst.title} for {_time(others[worst])}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.series",
        description="Goodput against time of one condition of a result.",
        epilog="Example: python -m sumrate.report.series out/lab/switchover "
        "--condition away --figure switchover.svg",
    )
    parser.add_argument("result", type=Path, help="folder that `sumrate-lab run NAME` left")
    parser.add_argument("--condition", required=True, help="its name in the experiment's file")
    parser.add_argument(
        "--figure", type=Path, required=True, help="write the figure here (svg, png or pdf)"
    )
    given = parser.parse_args(arguments)
    if given.figure.suffix not in FORMATS:
        parser.error(f"--figure {given.figure}: a name that ends in {', '.join(FORMATS)}")
    try:
        save(series(given.result, given.condition), given.figure)
    except (RunError, SeriesError) as error:
        print(f"series: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
