"""`sumrate-lab verdicts`: every published claim and goal, and what was measured of it."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace as replaced
from pathlib import Path

from sumrate.lab.experiment.ahead import ahead
from sumrate.lab.experiment.catalogue import PAPERS, Entry, entries
from sumrate.lab.experiment.judge import DEPENDS, FAILS
from sumrate.lab.experiment.kept import KEPT
from sumrate.lab.experiment.listing import listing
from sumrate.lab.experiment.load import ExperimentError
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import USAGE, RefusedError


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `verdicts`."""
    sub = commands.add_parser(
        "verdicts",
        help="print claims and goals with their verdicts",
        description="Prints each claim and goal with its verdict, the measured values, the cause "
        "if it does not hold, the command that measures it, and the file of its results.",
        epilog="example: sumrate-lab verdicts T-4.5 P1",
    )
    sub.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="only ids that begin with this, or those of an experiment (repeatable)",
    )
    sub.add_argument("--paper", choices=PAPERS, help="only the claims of this paper")
    sub.add_argument("--goals", action="store_true", help="only the performance goals")
    sub.add_argument(
        "--missed",
        action="store_true",
        help="only claims and goals that do not hold, then those where another transport is ahead",
    )
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.add_argument("--results", type=Path, default=KEPT, help="kept tables (results/)")
    sub.set_defaults(run=verdicts)


def verdicts(args: argparse.Namespace) -> int:
    """Prints claims and goals with their verdicts; says which experiments are wrong.

    Raises:
        RefusedError: there are no such results or claims.

    """
    results = args.results
    if not results.is_dir():
        raise RefusedError(f"no folder of results {results}")
    shown = results.relative_to(REPOSITORY) if results.is_relative_to(REPOSITORY) else results
    broken: list[ExperimentError] = []
    found = [
        replaced(e, results=e.results.replace(str(results), str(shown)))
        for e in _chosen(entries(results, broken=broken), args)
    ]
    status = complain(broken)
    if args.json:
        print(json.dumps([e.as_dict() for e in found], indent=1, ensure_ascii=False))
        return status
    print(listing(found))
    if args.missed and not broken:
        print("\n".join(["", "Another transport is ahead:", *_behind(results, found)]))
    return status


def _behind(results: Path, found: Sequence[Entry]) -> list[str]:
    """Where a peer has more of what one of these goals demands."""
    goals = {entry.id for entry in found}
    return [item.line() for item in ahead(results) if item.goal in goals] or ["nowhere"]


MISSED = (FAILS, DEPENDS)


def _named(found: Sequence[Entry], start: str) -> list[Entry]:
    """Those whose id begins so; if none does, those with a check of the experiment of that name."""
    begin = [e for e in found if e.id.casefold().startswith(start.casefold())]
    return begin or [e for e in found if any(c.experiment == start for c in e.checks)]


def _chosen(found: Sequence[Entry], args: argparse.Namespace) -> list[Entry]:
    """Those that were asked for, all if none was.

    Raises:
        RefusedError: something names none of them.

    """
    chosen = [*found] if not args.ids else []
    for start in args.ids:
        named = _named(found, start)
        if not named:
            raise RefusedError(
                f"no claim or goal begins with `{start}`, and no experiment with verdicts has that "
                "name; `sumrate-lab verdicts` shows them all"
            )
        chosen += [e for e in named if e not in chosen]
    document = "goal" if args.goals else PAPERS.get(args.paper)
    return [
        e
        for e in chosen
        if document in (None, e.document) and not (args.missed and e.verdict not in MISSED)
    ]


def complain(broken: Sequence[ExperimentError]) -> int:
    """Says what is wrong with experiments; the exit status."""
    for complaint in broken:
        print(f"error: {complaint}", file=sys.stderr)
    return USAGE if broken else 0
