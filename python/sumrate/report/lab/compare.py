"""Two result folders side by side, as a table for a terminal."""

from collections.abc import Iterator
from pathlib import Path

from sumrate.report.lab.read import Run, Setting, read_run
from sumrate.report.lab.summary import Spread, Summary, summarise
from sumrate.report.lab.words import NOTHING, Column

HEAD = ("metric", "condition", "scheme", "A", "B", "B/A", "")
APART = "*"
LEAST = 4
"""Values on each side that must not overlap: of fewer, chance alone parts one pair in ten."""
FOOT = f"Median (least to largest). {APART} the two ranges, of {LEAST} values or more, are apart."


def compare_table(a: Path, b: Path) -> str:
    """Median (least to largest) of every metric in both folders, and the ratio of the medians.

    Raises:
        RunError: one of the folders cannot be used.

    """
    first, second = summarise(read_run(a)), summarise(read_run(b))
    rows = [HEAD, *_rows(first, second)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    lines = [_origin("A", first.run), _origin("B", second.run)]
    if first.run.experiment != second.run.experiment:
        lines.append("These are two different experiments.")
    lines += ["", *(_line(row, widths) for row in rows)]
    lines.insert(len(lines) - len(rows) + 1, "-" * (sum(widths) + 2 * len(widths) - 2))
    lines += ["", FOOT]
    return "\n".join(lines) + "\n"


def _origin(letter: str, run: Run) -> str:
    started = str(run.manifest.get("started", "unknown"))[:19]
    return (
        f"{letter}: {run.experiment} in {run.folder}, commit "
        f"{str(run.manifest.get('commit', 'unknown'))[:12]}, {started}, {len(run.void)} void runs"
    )


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        cell.rjust(width) if place in (3, 4, 5) else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _rows(first: Summary, second: Summary) -> Iterator[tuple[str, ...]]:
    columns = {column.metric: column for column in (*first.columns, *second.columns)}
    for column in columns.values():
        for setting in dict.fromkeys((*first.settings, *second.settings)):
            for name in dict.fromkeys(s.name for s in (*first.schemes, *second.schemes)):
                before = first.spread(column.metric, setting, name)
                after = second.spread(column.metric, setting, name)
                if before or after:
                    where = (column.heading, _setting(setting), name)
                    yield (*where, *_cells(column, before, after))


def _setting(setting: Setting) -> str:
    return f"{setting.condition} {setting.congestion_control} {setting.buffers}"


def _cells(
    column: Column, before: Spread | None, after: Spread | None
) -> tuple[str, str, str, str]:
    ratio, mark = "", ""
    if before and after:
        ratio = f"{after.median / before.median:.3f}" if before.median else NOTHING
        enough = min(before.count, after.count) >= LEAST
        mark = APART if enough and before.apart(after) else ""
    elif after:
        mark = "only in B"
    else:
        mark = "only in A"
    return _spread(column, before), _spread(column, after), ratio, mark


def _spread(column: Column, spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    low, high = column.number(spread.low), column.number(spread.high)
    return f"{column.number(spread.median)} ({low} to {high})"
