"""Tables of the results page that are made when the site is built: claims and origins."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from sumrate.lab.experiment.catalogue import PAPERS, entries
from sumrate.lab.experiment.kept import KEPT, kept_names, path_of, read_provenance
from sumrate.lab.experiment.recorded import recorded
from sumrate.verdict.model import (
    DEPENDS,
    FAILS,
    HOLDS,
    NOT_RUN,
    REPORTED,
    UNMEASURED,
    Entry,
)

WORDS = {
    HOLDS: "holds",
    DEPENDS: "holds in part",
    FAILS: "does not hold",
    NOT_RUN: "not run yet",
    REPORTED: "not judged",
    UNMEASURED: "not measured here",
}
COUNTED = {**WORDS, HOLDS: "hold", DEPENDS: "hold in part", FAILS: "do not hold"}
MARKER = re.compile(r"^<!-- (claims: (?P<paper>[a-z-]+)|result commits) -->$", re.MULTILINE)
"""A line of a page in whose place a table stands on the site."""


def filled(markdown: str, results: Path = KEPT) -> str:
    """The page with every line `<!-- claims: PAPER -->` and `<!-- result commits -->` replaced.

    Raises ValueError: there is no such paper.
    """

    def table(found: re.Match[str]) -> str:
        paper = found["paper"]
        return claims_table(paper, results) if paper else commits_table(results)

    return MARKER.sub(table, markdown)


def claims_table(paper: str, results: Path = KEPT) -> str:
    """Every claim of a paper in Markdown: what is published, our value, verdict and command.

    The counts come first; the table is folded away, because it is long.

    Raises ValueError: there is no such paper.
    """
    if paper not in PAPERS:
        raise ValueError(f"no paper `{paper}`; there are {', '.join(PAPERS)}")
    found = [entry for entry in entries(results) if entry.document == PAPERS[paper]]
    return "\n".join(
        [
            counts(found),
            "",
            f'<details markdown="1"><summary>All {len(found)} claims</summary>',
            "",
            "| claim | published | measured here | verdict | command |",
            "|---|---|---|---|---|",
            *map(_row, found),
            "",
            "</details>",
        ]
    )


def counts(found: Sequence[Entry]) -> str:
    """How many claims have each verdict."""
    there = Counter(entry.verdict for entry in found)
    fitted = sum(entry.verdict == HOLDS and bool(entry.fitted) for entry in found)
    parts = [f"{there[verdict]} {words}" for verdict, words in COUNTED.items() if there[verdict]]
    note = f" Claims that hold and were used to calibrate the model: {fitted}." if fitted else ""
    return f"{len(found)} claims: {', '.join(parts)}.{note}"


def _row(entry: Entry) -> str:
    verdict = WORDS[entry.verdict] + (" (calibrated)" if entry.fitted else "")
    measured = "; ".join(dict.fromkeys(_measured(entry))) or "-"
    command = f"`{entry.command}`" if entry.command else "-"
    name = f"**{entry.id}** ({entry.figure}): {entry.claim}"
    return _line([name, entry.published, measured, verdict, command])


def _measured(entry: Entry) -> Iterator[str]:
    """What each check measured: those that decide, or all of a claim that none decides."""
    deciding = [check for check in entry.checks if check.limit]
    for check in deciding or entry.checks:
        if check.measured:
            yield f"{check.statement}: {check.found()}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def commits_table(results: Path = KEPT) -> str:
    """Of which day and commit each result is, and how old its code is."""
    lines = [
        "| experiment | recorded | commit | kernel | transport since then |",
        "|---|---|---|---|---|",
    ]
    for name in kept_names(results):
        origin = read_provenance(path_of(results, name))
        (of,) = recorded(results, [name])
        kernel = origin["kernel"].split("-")[0]
        lines.append(_line([f"`{name}`", of.day, f"`{of.commit[:10]}`", kernel, of.since()]))
    return "\n".join(lines)
