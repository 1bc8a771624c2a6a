"""Goodput against time of one condition of a result, drawn as its page of all results draws it.

Run: python -m sumrate.report.series RESULT --condition NAME --figure FILE.svg
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from sumrate.report.lab.canvas import FORMATS, save
from sumrate.report.lab.curves import time_figures
from sumrate.report.lab.palette import styles
from sumrate.report.lab.read import RunError, read_run
from sumrate.report.lab.summary import summarise


class SeriesError(Exception):
    """A result has no such series."""


def series(folder: Path, condition: str) -> Figure:
    """A strip for each scheme, in 100 ms samples, of the repetition with the median goodput.

    Raises:
        RunError: the folder is no result.
        SeriesError: it has no such condition, or nothing was sampled in it.

    """
    summary = summarise(read_run(folder))
    settings = [s for _, found in summary.variants() for s in found if s.condition == condition]
    if not settings:
        names = sorted({s.condition for _, found in summary.variants() for s in found})
        raise SeriesError(f"{folder} has no condition {condition}; it has {', '.join(names)}")
    looks = styles(scheme.name for scheme in summary.schemes)
    drawn = next(time_figures(summary, settings[:1], looks), None)
    if drawn is None:
        raise SeriesError(f"{folder}: nothing was sampled in {condition}")
    return drawn


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.series",
        description="Goodput against time of one condition of a result.",
        epilog="Example: python -m sumrate.report.series docs/results/lab/switchover "
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
        save(series(given.result, given.condition), given.figure, tight=True)
    except (RunError, SeriesError) as error:
        print(f"series: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
