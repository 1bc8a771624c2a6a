"""`sumrate-lab verdicts`: every published claim and goal, and what was measured of it."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Literal

from sumrate.lab.experiment.ahead import ahead
from sumrate.lab.experiment.catalogue import PAPERS, Entry, entries
from sumrate.lab.experiment.judge import DEPENDS, FAILS
from sumrate.lab.experiment.kept import KEPT
from sumrate.lab.experiment.listing import listing
from sumrate.lab.experiment.load import ExperimentError
from sumrate.lab.options import Json, Kept
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import USAGE, RefusedError

Paper = Literal["thesis", "evolving-wifi", "mptcp-wireless", "dual-band", "wlan"]


def verdicts(
    ids: list[str] | None = None,
    /,
    *,
    paper: Paper | None = None,
    goals: bool = False,
    missed: bool = False,
    results: Kept = KEPT,
    as_json: Json = False,
) -> int:
    """Print claims and goals with their verdicts.

    Prints each claim and goal with its verdict, the measured values, the cause if it does not
    hold, the command that measures it, and the file of its results.

    Example: sumrate-lab verdicts T-4.5 P1

    Args:
        ids: Only ids that begin with this, or those of an experiment.
        paper: Only the claims of this paper.
        goals: Only the performance goals.
        missed: Only claims and goals that do not hold, then those where another transport is ahead.

    """
    if not results.is_dir():
        raise RefusedError(f"no folder of results {results}")
    shown = results.relative_to(REPOSITORY) if results.is_relative_to(REPOSITORY) else results
    broken: list[ExperimentError] = []
    document = "goal" if goals else PAPERS.get(paper or "")
    chosen = [
        e
        for e in _named_by(entries(results, broken=broken), ids or [])
        if document in (None, e.document) and not (missed and e.verdict not in MISSED)
    ]
    found = [replaced(e, results=e.results.replace(str(results), str(shown))) for e in chosen]
    status = complain(broken)
    if as_json:
        print(json.dumps([e.as_dict() for e in found], indent=1, ensure_ascii=False))
        return status
    print(listing(found))
    if missed and not broken:
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


def _named_by(found: Sequence[Entry], ids: Sequence[str]) -> list[Entry]:
    """Those that were asked for, all if none was.

    Raises RefusedError: something names none of them.
    """
    chosen = [*found] if not ids else []
    for start in ids:
        named = _named(found, start)
        if not named:
            raise RefusedError(
                f"no claim or goal begins with `{start}`, and no experiment with verdicts has that "
                "name; `sumrate-lab verdicts` shows them all"
            )
        chosen += [e for e in named if e not in chosen]
    return chosen


def complain(broken: Sequence[ExperimentError]) -> int:
    """Says what is wrong with experiments; the exit status."""
    for complaint in broken:
        print(f"error: {complaint}", file=sys.stderr)
    return USAGE if broken else 0
