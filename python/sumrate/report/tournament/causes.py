"""Why the default is behind where it is: by chance, by one of its rules, or by neither.

The default is run without its early copies, without its commit limit and without both, in the same
draws; what is lost in draws with losses is run in more of them.

Run: python -m sumrate.report.tournament.causes PUBLISHED.json OTHER.json ... --output FILE.md
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sumrate.ranking import place
from sumrate.report.tournament.table import (
    DEFAULT,
    TIE,
    Condition,
    TableError,
    is_whole,
    origin,
    ranked,
    read,
    rows_of,
    serious,
)

PUBLISHED = "published"
LEFT_OUT = {"uncopied": "copies", "unlimited": "commit limit", "bare": "both"}
"""What `fbdt-tournament --rules` leaves out of the product's own."""
CHANCE = "more draws"
NEITHER = "neither"

Key = tuple[str, str]
"""Group and words of a condition."""
Tables = Mapping[str, Mapping[Key, Condition]]
"""Conditions by the rules that they were run with."""

HEAD = """# The tournament: why {default} is behind where it is

{origin} Made by `make tournament-causes`.

{default} is run again without its early copies (F6, F10; `--rules uncopied`), without its commit \
limit (F7; `--rules unlimited`), and without both (`--rules bare`), in the same draws; conditions \
with losses in which it is behind in goodput, in more draws, all schedulers. *Gone without* says \
what has to be left out so that it is within {tie:.0%} of the best goodput, or best or second in \
stall or delay: **{chance}**, if it is already, only in more draws; **{neither}**, if it is behind \
without copies and without the limit too, so that the reason is where bytes are placed, or how \
the links behave.
"""


@dataclass(frozen=True)
class Behind:
    """Something in which the default is behind, and what is left of that without its rules."""

    condition: Condition
    what: str
    """`goodput`, `stall` or `delay`."""
    best: str
    """Who is ahead of it."""
    best_value: float
    """Of goodput 1; else its milliseconds."""
    values: dict[str, float]
    """The default's by rules: goodput over the best's, draw by draw, or milliseconds."""
    gone: str
    """What has to be left out, or that nothing helps."""


def tables(paths: Sequence[Path]) -> Tables:
    """The conditions of all tables by their rules; of a later table where several have one.

    Raises TableError where a file is no table, or is of several rules.
    """
    found: dict[str, dict[Key, Condition]] = {}
    for path in paths:
        rules = {row["rules"] for row in rows_of(path)}
        if len(rules) != 1 or rules - {PUBLISHED, *LEFT_OUT}:
            raise TableError(f"{path}: a table of one of {', '.join([PUBLISHED, *LEFT_OUT])}")
        found.setdefault(rules.pop(), {}).update({(c.group, c.words): c for c in read([path])})
    missing = [rules for rules in (PUBLISHED, *LEFT_OUT) if rules not in found]
    if missing:
        raise TableError(f"no table is of {', '.join(missing)} rules")
    return found


def lost(conditions: Sequence[Condition]) -> list[Condition]:
    """Those in which the default does not tie for the best goodput."""
    return [c for c in conditions if c.relative(DEFAULT) < 1 - TIE]


def causes(first: Sequence[Condition], all_tables: Tables) -> list[Behind]:
    """Goodput in the conditions that are lost in the `first` table, then stall, then delay.

    Raises TableError where a table lacks a condition, or has other draws of it.
    """
    goodput = [_goodput(c, all_tables) for c in sorted(lost(first), key=_relative)]
    return [*goodput, *_waits(first, all_tables, "stall"), *_waits(first, all_tables, "delay")]


def _relative(condition: Condition) -> float:
    return condition.relative(DEFAULT)


def _of(all_tables: Tables, rules: str, condition: Condition) -> Condition:
    found = all_tables[rules].get((condition.group, condition.words))
    if found is None:
        raise TableError(f"no {rules} table has the condition {condition.words}")
    return found


def _goodput(condition: Condition, all_tables: Tables) -> Behind:
    now = _of(all_tables, PUBLISHED, condition)
    best = now.best_but(DEFAULT)
    values = {}
    for rules in (PUBLISHED, *LEFT_OUT):
        own = _of(all_tables, rules, condition).draws[DEFAULT]
        if len(own) != len(now.draws[best]):
            raise TableError(f"{rules} has other draws than {PUBLISHED} of {condition.words}")
        values[rules] = median(a / max(b, 1e-9) for a, b in zip(own, now.draws[best], strict=True))
    helps = [name for rules, name in LEFT_OUT.items() if values[rules] >= 1 - TIE]
    gone = CHANCE if values[PUBLISHED] >= 1 - TIE else next(iter(helps), NEITHER)
    return Behind(condition=now, what="goodput", best=best, best_value=1, values=values, gone=gone)


def _milliseconds(condition: Condition, what: str) -> dict[str, float]:
    return condition.stall_ms if what == "stall" else condition.in_order_ms


def _waits(first: Sequence[Condition], all_tables: Tables, what: str) -> Iterator[Behind]:
    """Where the default is not best or second in it, in the draws of the first table."""
    for condition in first:
        own = _milliseconds(condition, what)
        if ranked(condition, own, DEFAULT) <= 2:
            continue
        counted = serious(condition, DEFAULT)
        others = {name: v for name, v in own.items() if counted[name] and name != DEFAULT}
        values = {PUBLISHED: own[DEFAULT]}
        for rules in LEFT_OUT:
            values[rules] = _milliseconds(_of(all_tables, rules, condition), what)[DEFAULT]
        helps = [
            name for rules, name in LEFT_OUT.items() if place(values[rules], others.values()) <= 2
        ]
        best = min(others, key=others.__getitem__)
        yield Behind(
            condition=condition,
            what=what,
            best=best,
            best_value=others[best],
            values=values,
            gone=next(iter(helps), NEITHER),
        )


def summary(found: Sequence[Behind]) -> str:
    """Markdown: how often what is the reason, then every condition."""
    kinds = ("goodput", "stall", "delay")
    reasons = [CHANCE, *LEFT_OUT.values(), NEITHER]
    counts = {kind: Counter(b.gone for b in found if b.what == kind) for kind in kinds}
    without = " | ".join(f"gone without {name}" for name in LEFT_OUT.values())
    lines = [
        "",
        f"| behind in | conditions | a tie in {CHANCE} | {without} | {NEITHER} |",
        "|---" * (len(reasons) + 2) + "|",
    ]
    lines += [
        f"| {kind} | {counts[kind].total()} | "
        + " | ".join(str(counts[kind][reason]) for reason in reasons)
        + " |"
        for kind in kinds
    ]
    for kind in kinds:
        lines += _table([b for b in found if b.what == kind], kind)
    return "\n".join(lines) + "\n"


def _table(found: Sequence[Behind], kind: str) -> list[str]:
    if not found:
        return []
    goodput = kind == "goodput"
    unit = "over the best, Mbit/s" if goodput else "ms"
    lines = [
        "",
        f"## {kind.capitalize()}",
        "",
        f"| condition | {'draws | ' if goodput else ''}{DEFAULT}, {unit} | without copies "
        f"| without the limit | without both | best{'' if goodput else ' | ms'} | gone without |",
        "|---" * 8 + "|",
    ]
    for behind in found:
        words = f"{behind.condition.group}: {behind.condition.words}"
        numbers = [behind.values[rules] for rules in (PUBLISHED, *LEFT_OUT)]
        shown = " | ".join(f"{n:.3f}" if goodput else f"{n:.0f}" for n in numbers)
        draws = f" | {len(behind.condition.draws[DEFAULT])}" if goodput else ""
        best = behind.best if goodput else f"{behind.best} | {behind.best_value:.0f}"
        lines.append(f"| {words}{draws} | {shown} | {best} | {behind.gone} |")
    return lines


def again(conditions: Sequence[Condition]) -> str:
    """Arguments of `fbdt-tournament` for what is lost where draws differ by their losses."""
    numbers = [c.parameters["condition"] for c in lost(conditions) if c.parameters["loss"] > 0]
    return " ".join(f"--condition {number}" for number in numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.tournament.causes",
        description="Why the default is behind where it is.",
        epilog="Example: python -m sumrate.report.tournament.causes published.json "
        "uncopied.json unlimited.json bare.json",
    )
    parser.add_argument("published", type=Path, help="the table with every scheduler's own rules")
    parser.add_argument(
        "other",
        nargs="*",
        type=Path,
        help="tables of the default with other rules, and of lost conditions in more draws, which "
        "take the place of what is before them",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="print the arguments for lost conditions that need more draws, and nothing else",
    )
    parser.add_argument("--output", type=Path, help="write the summary here [default: stdout]")
    parser.add_argument(
        "--commit", default="unknown", help="of the source, for the summary [default: unknown]"
    )
    given = parser.parse_args(arguments)
    try:
        first = read([given.published])
        if given.again:
            if not is_whole(given.published):
                message = "is of a part of the matrix, in which conditions have other numbers"
                raise TableError(f"{given.published} {message}; make it without narrowing flags")
            print(again(first))
            return 0
        paths = [given.published, *given.other]
        head = HEAD.format(
            default=DEFAULT,
            origin=origin(paths, given.commit),
            tie=TIE,
            chance=CHANCE,
            neither=NEITHER,
        )
        text = head + summary(causes(first, tables(paths)))
    except TableError as error:
        print(f"tournament: {error}", file=sys.stderr)
        return 2
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
