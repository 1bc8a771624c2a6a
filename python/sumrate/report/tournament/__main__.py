"""Which scheduler wins where: the table of `fbdt-tournament` as a figure and a summary.

Run: python -m sumrate.report.tournament TABLE.json ... --figure FILE.svg --summary FILE.md
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sumrate.report.lab.canvas import save
from sumrate.report.tournament.figure import figure
from sumrate.report.tournament.sockets import SampleError, cells, recorded
from sumrate.report.tournament.sockets import summary as sample_summary
from sumrate.report.tournament.summary import summary
from sumrate.report.tournament.table import (
    USUAL_TCP,
    TableError,
    conditions_of,
    congestion_control,
    origin,
    read,
    rows_of,
    standing,
)

HEAD = """# The tournament: standings{}

{}

Rates 1:10: the slow path has a tenth of the fast one's. Who delivers less than nine tenths of the \
best goodput is not counted as best or second in stall or delay.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.tournament",
        description="Which scheduler wins where.",
        epilog="Example: python -m sumrate.report.tournament tournament.json --figure wins.png",
    )
    parser.add_argument("tables", nargs="+", type=Path, help="what fbdt-tournament wrote")
    parser.add_argument("--figure", type=Path, help="write the maps here (svg, png or pdf)")
    parser.add_argument("--summary", type=Path, help="write the standings here (Markdown)")
    parser.add_argument(
        "--sockets",
        type=Path,
        action="append",
        default=[],
        help="result of the laboratory that has some of its conditions, to be set beside these "
        "(repeatable)",
    )
    parser.add_argument(
        "--commit", default="unknown", help="of the source, for the summary [default: unknown]"
    )
    parser.add_argument(
        "--like", type=Path, metavar="TABLE", help="only the conditions that this table has too"
    )
    parser.add_argument("--json", action="store_true", help="print the standings as JSON")
    given = parser.parse_args(arguments)
    try:
        conditions = read(given.tables)
        if given.like:
            conditions = conditions_of(conditions, given.like)
        sample = _sample(given.tables, given.sockets) if given.sockets else ""
        source = origin(given.tables, given.commit)
        if given.like:
            source += f" Here are the {len(conditions)} conditions that {given.like.name} has too."
        tcp = congestion_control(given.tables[0])
        made = HEAD.format("" if tcp == USUAL_TCP else f" over {tcp.upper()}", source)
    except (TableError, SampleError) as error:
        print(f"tournament: {error}", file=sys.stderr)
        return 2
    if given.figure:
        save(figure(conditions), given.figure)
    if given.summary:
        given.summary.write_text(made + summary(conditions) + sample, encoding="utf-8")
    if given.json:
        standings = [standing(conditions, n) for n in conditions[0].goodput_mbps]
        print(json.dumps([vars(s) for s in standings], indent=2))
    elif not given.summary:
        print(made + summary(conditions) + sample, end="")
    return 0


def _sample(tables: Sequence[Path], folders: Sequence[Path]) -> str:
    rows = [row for path in tables for row in rows_of(path)]
    found = [cell for folder in folders for cell in cells(rows, folder)]
    return "\n" + sample_summary(found, [recorded(folder) for folder in folders])


if __name__ == "__main__":
    sys.exit(main())
