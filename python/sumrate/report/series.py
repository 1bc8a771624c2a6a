"""Goodput against time of one condition of a result: a strip for each scheme.

Run: python -m sumrate.report.series RESULT --condition NAME --figure FILE.svg
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from sumrate.report.lab.canvas import FORMATS, drawing, finding, save
from sumrate.report.lab.figures import dark_spans, time_figure
from sumrate.report.lab.palette import styles
from sumrate.report.lab.result import Result, RunError, Setting, read_result
from sumrate.verdict.model import JUDGED

LEAST_MBPS = 3.0
"""Rates of a radio at 60 GHz and of one at 2.4 GHz are both seen on a logarithmic scale."""


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
    result = read_result(folder)
    setting = next((s for s in result.settings if s.condition == condition), None)
    if setting is None:
        names = sorted({s.condition for s in result.settings})
        raise SeriesError(f"{folder} has no condition {condition}; it has {', '.join(names)}")
    if not any(place == setting for place, _ in result.median_runs):
        raise SeriesError(f"{folder}: nothing was sampled in {condition}")
    with drawing():
        figure = time_figure(result, [setting], styles(n.name for n in result.schemes))
        for axes in figure.axes:
            axes.set(yscale="log", ylim=(LEAST_MBPS, None))
        dark = dark_spans(result, setting)
        words = "; ".join(f"{what} from {start:g} to {end:g} s" for what, start, end in dark)
        note = f"Hatched: {words}. " if words else ""
        finding(figure, sentence(result, setting), f"{note}Medians of the repetitions.")
    return figure


def _time(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms"


def sentence(result: Result, setting: Setting) -> str:
    """Sumrate's longest stall, against the shortest and the longest of the others."""
    stalls = {
        scheme: spread.median
        for scheme in result.schemes
        if (spread := result.spreads.get(("longest_stall_ms", setting, scheme.name)))
    }
    own = next((scheme for scheme in stalls if scheme.name == JUDGED), None)
    others = {scheme: ms for scheme, ms in stalls.items() if not scheme.name.startswith(JUDGED)}
    if own is None or not others:
        longest = max(stalls, key=lambda scheme: stalls[scheme])
        return f"{longest.title} stalls for {_time(stalls[longest])}"
    best = min(others, key=lambda scheme: others[scheme])
    worst = max(others, key=lambda scheme: others[scheme])
    return (
        f"{own.title} stalls for {_time(stalls[own])}; "
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
