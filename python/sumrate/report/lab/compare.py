"""Two results side by side, as a table for a terminal."""

from collections.abc import Iterator
from pathlib import Path

from sumrate.report.lab.result import Result, Spread, read_result
from sumrate.report.lab.words import NOTHING, heading, shown
from sumrate.verdict.metrics import Metric

HEAD = ("metric", "condition", "scheme", "A", "B", "B/A", "")
APART = "*"
LEAST = 4
"""Values on each side that must not overlap: of fewer, chance alone parts one pair in ten."""
FOOT = f"Median (least to largest). {APART} the two ranges, of {LEAST} values or more, are apart."


def compare_table(a: Path, b: Path) -> str:
    """Median (least to largest) of every metric in both results, and the ratio of the medians.

    Raises:
        RunError: one of the results cannot be used.

    """
    first, second = read_result(a), read_result(b)
    rows = [HEAD, *_rows(first, second)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    lines = [_origin("A", first), _origin("B", second)]
    if first.manifest.experiment != second.manifest.experiment:
        lines.append("These are two different experiments.")
    lines += ["", *(_line(row, widths) for row in rows)]
    lines.insert(len(lines) - len(rows) + 1, "-" * (sum(widths) + 2 * len(widths) - 2))
    lines += ["", FOOT]
    return "\n".join(lines) + "\n"


def _origin(letter: str, result: Result) -> str:
    void = sum(bool(run.get("void")) for run in result.runs)
    return (
        f"{letter}: {result.manifest.experiment} in {result.path}, commit "
        f"{result.manifest.commit[:12]}, {result.manifest.started[:19]}, {void} void runs"
    )


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        cell.rjust(width) if place in (3, 4, 5) else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _rows(first: Result, second: Result) -> Iterator[tuple[str, ...]]:
    metrics = {metric.name: metric for metric in (*second.metrics, *first.metrics)}
    order = dict.fromkeys(metric.name for metric in (*first.metrics, *second.metrics))
    for name in order:
        for setting in dict.fromkeys((*first.settings, *second.settings)):
            for scheme in dict.fromkeys(s.name for s in (*first.schemes, *second.schemes)):
                before = first.spreads.get((name, setting, scheme))
                after = second.spreads.get((name, setting, scheme))
                if before or after:
                    where = (heading(metrics[name]), " ".join(setting), scheme)
                    yield (*where, *_cells(metrics[name], before, after))


def _cells(
    metric: Metric, before: Spread | None, after: Spread | None
) -> tuple[str, str, str, str]:
    ratio, mark = "", ""
    if before and after:
        ratio = f"{after.median / before.median:.3f}" if before.median else NOTHING
        enough = min(before.values, after.values) >= LEAST
        mark = APART if enough and before.apart(after) else ""
    else:
        mark = "only in B" if after else "only in A"
    return _spread(metric, before), _spread(metric, after), ratio, mark


def _spread(metric: Metric, spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    low, high = shown(metric, spread.low), shown(metric, spread.high)
    return f"{shown(metric, spread.median)} ({low} to {high})"
