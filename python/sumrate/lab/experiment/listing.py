"""The verdicts for a terminal, with everything that JSON has of them, 100 columns wide."""

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from sumrate.lab.experiment.catalogue import Entry
from sumrate.lab.experiment.demands import Demand
from sumrate.lab.experiment.judge import DEPENDS, FAILS, HOLDS, NOT_RUN, REPORTED

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
