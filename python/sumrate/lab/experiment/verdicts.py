"""`sumrate-lab verdicts`: every published claim and goal, and what was measured of it."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from textwrap import wrap
from typing import Literal

from sumrate.lab.experiment.ahead import ahead
from sumrate.lab.experiment.catalogue import PAPERS, entries
from sumrate.lab.experiment.kept import KEPT
from sumrate.lab.experiment.load import ExperimentError
from sumrate.lab.options import Json, Kept
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import USAGE, RefusedError
from sumrate.verdict.model import DEPENDS, FAILS, HOLDS, NOT_RUN, REPORTED, Demand, Entry

WIDTH = 100
INDENT = " " * 4
CHECKED = {HOLDS: "holds", FAILS: "does not hold", DEPENDS: "in part", REPORTED: ""}
"""What became of one check that was measured."""


def listing(found: Sequence[Entry]) -> str:
    """Each claim or goal with its checks, its experiments and its results, then how many hold."""
    counts = Counter(e.verdict for e in found)
    fitted = sum(e.verdict == HOLDS and bool(e.fitted) for e in found)
    summary = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    if fitted:
        summary += f"; {fitted} of those that hold were fitted"
    return "\n".join([*(line for e in found for line in _lines(e)), "", summary])


def _lines(entry: Entry) -> Iterator[str]:
    source = f"{entry.document}, {entry.figure}: {entry.published}" if entry.figure else ""
    yield from _wrapped(f"{entry.verdict:11} {entry.id:22} {source}".rstrip(), "", INDENT)
    if entry.document != "goal":  # a goal's words are those of its checks
        yield from _wrapped(entry.claim, INDENT, INDENT)
    yield from _checks(entry)
    if entry.unmeasured and entry.unmeasured not in entry.cause:
        yield from _wrapped(f"not measured: {entry.unmeasured}", INDENT, f"{INDENT}  ")
    if entry.fitted:
        yield from _wrapped(f"fitted: {entry.fitted}", INDENT, f"{INDENT}  ")
    if entry.command:
        yield from _wrapped(entry.command, INDENT, f"{INDENT}  ")
    if entry.results:
        yield from _wrapped(f"results: {entry.results}", INDENT, f"{INDENT}  ")
    if entry.recorded:
        origins = "; ".join(result.words() for result in entry.recorded)
        yield from _wrapped(f"recorded: {origins}", INDENT, f"{INDENT}  ")


def _checks(entry: Entry) -> Iterator[str]:
    """Each check, with its cause below it where that is not said yet, then causes of no check."""
    shown: set[str] = set()
    for check in entry.checks:
        yield from _wrapped(_check(check), f"{INDENT}- ", f"{INDENT}  ")
        if check.cause and check.cause not in shown:
            shown.add(check.cause)
            yield from _wrapped(f"because: {check.cause}", f"{INDENT}  ", f"{INDENT}    ")
    rest = entry.cause
    for cause in sorted(shown, key=len, reverse=True):
        rest = rest.replace(cause, "")
    if (rest := " ".join(rest.split())) and entry.verdict != HOLDS:
        yield from _wrapped(f"because: {rest}", INDENT, f"{INDENT}  ")


def _check(check: Demand) -> str:
    """Statement, what was measured, and what follows from it if it is judged."""
    found = check.found() if check.measured else ""
    return f"{check.statement}: {', '.join(part for part in (found, mark(check)) if part)}"


def mark(row: Demand) -> str:
    """What became of one check; nothing if it only reports a figure."""
    if row.verdict == NOT_RUN:
        return "not measured everywhere" if row.measured else "not measured"
    return CHECKED[row.verdict]


def _wrapped(text: str, first: str, others: str) -> list[str]:
    """Lines of a text; a path or a name that is longer than one is not cut."""
    return wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
