"""The README's table of goals and verdicts, written from the results that the repository keeps."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sumrate.lab.experiment.catalogue import Entry
from sumrate.lab.experiment.judge import DEPENDS, FAILS, HOLDS, NOT_RUN

BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
WORDS = {HOLDS: "holds", FAILS: "does not hold", DEPENDS: "holds in part", NOT_RUN: "not run yet"}


def block(found: Sequence[Entry]) -> str:
    """Everything between the README's markers."""
    goals = [e for e in found if e.document == "goal"]
    claims = [e for e in found if e.document != "goal"]
    lines = [
        BEGIN,
        "| goal | command | measured | verdict |",
        "|---|---|---|---|",
        *(_row(e) for e in goals),
        "",
        f"Published claims, {len(claims)} in all: {_counts(claims)}. `sumrate-lab verdicts` lists "
        "each with its cause.",
        "",
        "| published claim | experiment | measured | verdict |",
        "|---|---|---|---|",
        *(_claim_row(e) for e in claims if e.verdict != NOT_RUN),
        END,
    ]
    return "\n".join(lines)


def _row(entry: Entry) -> str:
    command = f"`{entry.command}`"
    verdict = WORDS[entry.verdict]
    return f"| {entry.id}: {entry.claim} | {command} | {entry.measured or '-'} | {verdict} |"


def _claim_row(entry: Entry) -> str:
    why = f": {entry.cause}" if entry.cause and entry.verdict != HOLDS else ""
    return (
        f"| {entry.id}: {entry.claim} | {entry.experiment} | {entry.measured or '-'} "
        f"| {WORDS[entry.verdict]}{why} |"
    )


def _counts(found: Sequence[Entry]) -> str:
    counts = Counter(e.verdict for e in found)
    return ", ".join(f"{counts[v]} {WORDS[v]}" for v in WORDS if counts[v])


def inserted(readme: str, text: str) -> str:
    """The README with its block replaced."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    return pattern.sub(lambda _: text, readme)


def is_in_step(readme: Path, found: Sequence[Entry]) -> bool:
    """Whether the README says what the results say."""
    text = readme.read_text(encoding="utf-8")
    return BEGIN in text and inserted(text, block(found)) == text


def write(readme: Path, found: Sequence[Entry]) -> None:
    """Puts the block into the README."""
    text = readme.read_text(encoding="utf-8")
    readme.write_text(inserted(text, block(found)), encoding="utf-8")
