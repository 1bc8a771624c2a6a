"""What documents say of goals and claims, from the results that are kept.

Each has a block between two markers that is written, never edited; a test keeps them in step.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.ahead import ahead
from sumrate.lab.experiment.catalogue import UNMEASURED, Entry, entries
from sumrate.lab.experiment.demands import Demand
from sumrate.lab.experiment.goals import MARKS, NOTE, TITLES, is_performance, rows, span
from sumrate.lab.experiment.judge import (
    BESIDE,
    DEPENDS,
    FAILS,
    HOLDS,
    JUDGED,
    NOT_RUN,
    REPORTED,
    figure,
)

WORDS = {
    HOLDS: "holds",
    FAILS: "does not hold",
    DEPENDS: "holds in part",
    NOT_RUN: "not run yet",
    REPORTED: "not judged",
    UNMEASURED: "not measured here",
}
PLURAL = {**WORDS, HOLDS: "hold", FAILS: "do not hold", DEPENDS: "hold in part"}
AS_ABOVE = "as above"
"""In place of a cause: that of the last row that has one."""
CHECKED = {HOLDS: "holds", FAILS: "does not hold", DEPENDS: "in part", REPORTED: ""}
"""What became of one check that was measured."""
NOTHING = "-"
SHOWN = (JUDGED, "sumrate-two-ended", "mptcp", "aggligator")
"""Schemes of the short table; the whole one has all."""
FEW = 6
"""Demands of one cause that stand each by itself."""


@dataclass(frozen=True)
class Block:
    """A part of a document that is generated."""

    file: str
    """Below the repository."""
    name: str
    """In its markers."""
    lines: tuple[str, ...]

    def inserted(self, text: str) -> str:
        """The document with the block replaced.

        Raises:
            ValueError: the document lacks the markers.

        """
        begin, end = f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"
        if begin not in text or end not in text:
            raise ValueError(f"{self.file} has no block from `{begin}` to `{end}`")
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        return pattern.sub(lambda _: "\n".join([begin, *self.lines, end]), text)


def blocks(results: Path) -> list[Block]:
    """All generated parts, from results in `results/EXPERIMENT`."""
    found = rows(results)
    claims = [e for e in entries(results) if e.document != "goal"]
    whole = [
        *_goal_lines(found),
        "",
        *_other_goal_lines(found),
        "",
        "Of which code each result is, and whether its emulated links were measured just before it "
        "(as all are now) or taken to be as they were set:",
        "",
        *_origin_lines(results),
        "",
        *_claim_lines(claims),
    ]
    return [
        Block("README.md", "verdicts", tuple(_summary(found, claims))),
        Block("docs/verdicts.md", "verdicts", tuple(whole)),
        Block("docs/shortfalls.md", "missed goals", tuple(_missed(found))),
        Block("docs/shortfalls.md", "peers ahead", tuple(item.line() for item in ahead(results))),
    ]


def _summary(found: Sequence[Demand], claims: Sequence[Entry]) -> list[str]:
    """Judged goals of performance, which are not measured, and how many claims hold."""
    performance = [row for row in found if is_performance(row.id)]
    measured = [row for row in performance if row.verdict != NOT_RUN]
    known = {row.id for row in measured}
    waiting = dict.fromkeys(row.id for row in performance if row.id not in known)
    in_part = dict.fromkeys(
        row.id for row in performance if row.id in known and row.verdict == NOT_RUN
    )
    judged = [row for row in measured if row.verdict != REPORTED]
    lines = [
        "Each goal with the first of its demands; `make bench` and "
        "[docs/verdicts.md](docs/verdicts.md) have all of them, with the thesis's windows and "
        f"TQUIC too; {NOTE} Furthest off is the demand that is missed by the largest factor."
    ]
    if judged:
        lines += ["", *_first_demands(judged)]
    if waiting:
        lines += ["", f"No result is kept yet for {', '.join(waiting)}."]
    if in_part:
        lines += ["", f"Some demands of {', '.join(in_part)} are not measured yet."]
    return [
        *lines,
        "",
        f"Published claims, {len(claims)} in all: {_counts(claims)}. "
        "[docs/verdicts.md](docs/verdicts.md) has every goal and claim with its experiment, what "
        "was measured and the cause where it does not hold; so has `sumrate-lab verdicts`. Results "
        "are of different days: commit and day of each are listed there too, and "
        "`sumrate-lab verdicts` counts the commits to the transport since.",
    ]


def _first_demands(judged: Sequence[Demand]) -> list[str]:
    """A line for each goal: its first demand, how many are reached, and the one furthest off."""
    titles = [TITLES[scheme] for scheme in SHOWN]
    heads = ["performance goal", "wanted", *titles, "of all its demands", "furthest off"]
    lines = [_line(heads), f"|{'---|' * len(heads)}"]
    for goal in dict.fromkeys(row.id for row in judged):
        own = [row for row in judged if row.id == goal]
        reached = sum(row.verdict == HOLDS for row in own)
        cells = [_cell(own[0], scheme) for scheme in SHOWN]
        first = [f"{goal}: {own[0].statement}", f"{own[0].limit} {own[0].unit}".strip() or NOTHING]
        became = [f"{reached} of {len(own)} reached", _furthest(own)]
        lines.append(_line([*first, *cells, *became]))
    return lines


def _furthest(own: Sequence[Demand]) -> str:
    """Of a goal, the demand that is missed by the largest factor, and where; `-` if none is."""
    worst = max(own, key=lambda row: row.factor)
    return f"{worst.statement}: {worst.furthest}" if worst.furthest else NOTHING


def _goal_lines(found: Sequence[Demand]) -> list[str]:
    performance = [row for row in found if is_performance(row.id)]
    return [f"`make bench` prints these goals; {NOTE}", "", *_goal_table(performance)]


def _goal_table(found: Sequence[Demand]) -> list[str]:
    """The goals beside other modes and peers, with experiment and cause."""
    titles = [TITLES[scheme] for scheme in (JUDGED, *BESIDE)]
    heads = ["performance goal", "experiment", "wanted", *titles, ""]
    lines = [_line(heads), f"|{'---|' * len(heads)}"]
    for row, became in zip(found, _became(found), strict=True):
        cells = [_cell(row, scheme) for scheme in (JUDGED, *BESIDE)]
        first = [f"{row.id}: {row.statement}", row.experiment, row.limit or NOTHING]
        lines.append(_line([*first, *cells, became]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _became(found: Sequence[Demand]) -> Iterator[str]:
    """What became of each goal, and why it is missed; not again if the last cause is the same."""
    last = ""
    for row in found:
        cause = AS_ABOVE if row.cause and row.cause == last else row.cause
        last = row.cause or last
        yield ": ".join(part for part in (MARKS[row.verdict], cause) if part)


def _cell(row: Demand, scheme: str) -> str:
    """What was measured of a scheme; in how many conditions and of how many repetitions, if few."""
    points, of = row.points.get(scheme, 0), row.points.get(JUDGED, 0)
    part = f"in {points} of {of}" if 0 < points < of else ""
    notes = "; ".join(note for note in (part, row.few(scheme)) if note)
    return span(row.measured.get(scheme)) + (f" ({notes})" if notes else "")


def _other_goal_lines(found: Sequence[Demand]) -> list[str]:
    heads = ["other goal", "experiment", "wanted", "measured", ""]
    others = [row for row in found if not is_performance(row.id)]
    rows = [
        [f"{row.id}: {row.statement}", row.experiment, row.limit, _cell(row, JUDGED), became]
        for row, became in zip(others, _became(others), strict=True)
    ]
    return [_line(heads), f"|{'---|' * len(heads)}", *map(_line, rows)]


def _origin_lines(results: Path) -> list[str]:
    """When, and of which code, each result is."""
    heads = ["result", "begun", "commit", "kernel", "links", "repetitions", "void runs"]
    lines = [_line(heads), f"|{'---|' * len(heads)}"]
    for path in sorted(results.glob("*/manifest.json")):
        of = json.loads(path.read_text(encoding="utf-8"))
        name, day, commit = path.parent.name, of["started"][:10], of["commit"][:10]
        void = f"{of['void_runs']} of {len(of['runs'])}"
        links = _calibrated(of)
        row = [name, day, commit, of["kernel"], links, str(of["repetitions"]), void]
        lines.append(_line(row))
    return lines


def _calibrated(manifest: Mapping[str, Any]) -> str:
    """Whether the emulated links of a result were measured before it."""
    if manifest.get("method") == "simulation" or manifest.get("calibration") == []:
        return NOTHING  # there are none
    return "measured" if "calibration" in manifest else "as set"


def _claim_lines(claims: Sequence[Entry]) -> list[str]:
    return [
        f"Published claims, {len(claims)} in all: {_counts(claims)}.",
        "",
        "| published claim | verdict | experiment | checked | measured | |",
        "|---|---|---|---|---|---|",
        *(line for e in claims for line in _claim_rows(e)),
    ]


def _claim_rows(entry: Entry) -> list[str]:
    """One line for each check, and one for what no experiment measures; the claim in the first."""
    cells = [
        (row.experiment, row.statement, row.found(), why)
        for row, why in zip(entry.checks, _whys(entry), strict=True)
    ]
    if entry.unmeasured or not cells:
        cells.append((NOTHING, NOTHING, NOTHING, entry.unmeasured or NOTHING))
    became = WORDS[entry.verdict] + (f" (fitted). {entry.fitted}" if entry.fitted else "")
    first = (f"**{entry.id}**: {entry.claim}", became)
    starts = [first, *[("", "")] * (len(cells) - 1)]
    return [_line((*start, *row)) for start, row in zip(starts, cells, strict=True)]


def _whys(entry: Entry) -> Iterator[str]:
    """What each check says, and its cause unless a check before it has the same."""
    known = {""}
    for row in entry.checks:
        cause = "" if row.cause in known else row.cause
        known.add(row.cause)
        yield ": ".join(part for part in (mark(row), cause) if part)


def mark(row: Demand) -> str:
    """What became of one check; nothing if it only reports a figure."""
    if row.verdict == NOT_RUN:
        return "not measured everywhere" if row.measured else "not measured"
    return CHECKED[row.verdict]


def _plain(text: str) -> str:
    """Text that does not end a cell."""
    return text.replace("|", "\\|")


def _counts(found: Sequence[Entry]) -> str:
    """How many have each verdict; of those that hold, how many were fitted."""
    counts = Counter(e.verdict for e in found)
    fitted = sum(e.verdict == HOLDS and bool(e.fitted) for e in found)
    words = dict(PLURAL)
    if fitted:
        show = "shows" if fitted == 1 else "show"
        words[HOLDS] += f" (of which {fitted} only {show} that the model is calibrated)"
    return ", ".join(f"{counts[v]} {words[v]}" for v in words if counts[v])


def _missed(found: Sequence[Demand]) -> list[str]:
    """Every demand that is missed somewhere, with what was measured there."""
    missed = [row for row in found if row.verdict in (FAILS, DEPENDS)]
    measured = [row for row in found if row.verdict not in (NOT_RUN, REPORTED)]
    if not measured:
        return ["No result is kept yet: what is missed is not known."]
    lines = [
        f"Demands that were measured: {len(measured)}; missed: {len(missed)}, of those in some "
        f"conditions only: {sum(row.verdict == DEPENDS for row in missed)}. A cause that several "
        "share stands above them."
    ]
    for title, wanted in (("Of performance:", True), ("Others:", False)):
        of = [row for row in missed if is_performance(row.id) == wanted]
        if of:
            lines += ["", title, ""]
            lines += [line for group in _by_cause(of) for line in _missed_lines(group)]
    return lines


def _by_cause(missed: Sequence[Demand]) -> list[list[Demand]]:
    """Those that one cause explains together, in the order of their first; without one, alone."""
    groups: dict[str, list[Demand]] = {}
    for position, row in enumerate(missed):
        groups.setdefault(row.cause or str(position), []).append(row)
    return list(groups.values())


def _missed_lines(group: Sequence[Demand]) -> list[str]:
    """One item; if a cause has several demands, it stands once and they below it."""
    cause = group[0].cause
    if len(group) == 1:
        return [f"- {_missed_item(group[0])} {cause}".rstrip()]
    of: dict[tuple[str, str, str], list[Demand]] = {}
    for row in group:
        of.setdefault((row.id, row.experiment, row.limit), []).append(row)
    many = len(group) > FEW and not is_performance(group[0].id)
    items = [_missed_items(rows) for rows in of.values()] if many else map(_missed_item, group)
    return [f"- {cause}", *(f"  - {item}" for item in items)]


def _missed_item(row: Demand) -> str:
    return (
        f"{row.id}, {row.statement}: wanted {row.limit}, measured {'; '.join(row.missed_in)} "
        f"(`sumrate-lab run {row.experiment}`)."
    )


def _missed_items(rows: Sequence[Demand]) -> str:
    """Many demands of one limit in one line: up or down to which value they are missed."""
    lows, highs = zip(*(row.measured[JUDGED] for row in rows), strict=True)
    limit = rows[0].limit
    ends = [f"down to {figure(min(lows))}"] if "at least" in limit else []
    ends += [f"up to {figure(max(highs))}"] if "at most" in limit else []
    return (
        f"{rows[0].id}, {len(rows)} demands: wanted {limit}, measured {' and '.join(ends)} "
        f"(`sumrate-lab run {rows[0].experiment}`; `sumrate-lab verdicts {rows[0].id}` has each)."
    )


def out_of_step(root: Path, results: Path) -> list[str]:
    """The documents below `root` that do not say what the results say."""
    return [
        block.file
        for block in blocks(results)
        if block.inserted(text := (root / block.file).read_text(encoding="utf-8")) != text
    ]


def write(root: Path, results: Path) -> None:
    """Puts every block into its document below `root`."""
    for block in blocks(results):
        path = root / block.file
        path.write_text(block.inserted(path.read_text(encoding="utf-8")), encoding="utf-8")
