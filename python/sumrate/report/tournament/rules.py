"""What the transport's rules that go with a scheduler change: its table with them and without.

Run: python -m sumrate.report.tournament.rules OWN.json OTHER.json ... --output FILE.md
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sumrate.report.tournament.table import (
    GROUPS,
    TIE,
    Condition,
    TableError,
    of_one_source,
    origin,
    read,
    rows_of,
)

WORDS = {
    "bare": "Without early copies (F6) and the commit limit by rate (F7)",
    "uncopied": "Without early copies (F6), with the commit limit by rate (F7)",
    "unlimited": "Without the commit limit by rate (F7), with early copies (F6)",
    "product": "With early copies (F6) and the commit limit by rate (F7)",
}
"""What `fbdt-tournament --rules` gave a scheduler in place of its own rules."""


HEAD = """# The tournament: what the rules that go with a scheduler change

{}

Goodput is over that of the same scheduler under its own rules in the same draw, medians over a \
group's conditions; the least of all conditions; stall and delay are medians over all of them, \
under its own rules → under these.

"""


@dataclass(frozen=True)
class Change:
    """A scheduler under other rules than its own, over the conditions that both tables have."""

    scheduler: str
    rules: str
    ratios: dict[str, tuple[float, ...]]
    """Goodput over that with its own rules, of every condition, by group."""
    stall_ms: tuple[float, float]
    """Longest stall, median over the conditions: with its own rules, with these."""
    in_order_ms: tuple[float, float]
    """99th percentile of the in-order delay likewise."""

    @property
    def all_ratios(self) -> list[float]:
        """Those of all groups."""
        return [ratio for group in self.ratios.values() for ratio in group]


def changes(own: Path, other: Path) -> list[Change]:
    """Every scheduler that both tables have, in the order of the other one.

    Raises TableError where one is no table, where `other` has several rules or is of the same as
    `own`, where no condition is in both, or where one has more draws of it.
    """
    rules = {row["rules"] for row in rows_of(other)}
    if len(rules) != 1 or rules & {row["rules"] for row in rows_of(own)}:
        raise TableError(f"{other}: a table of one set of rules, other than those of {own}")
    theirs = {(c.group, c.words): c for c in read([own])}
    both = [(theirs[key], c) for c in read([other]) if (key := (c.group, c.words)) in theirs]
    if not both:
        raise TableError(f"{other} has no condition of {own}")
    names = [name for name in both[0][1].draws if name in both[0][0].draws]
    if any(len(a.draws[name]) != len(b.draws[name]) for a, b in both for name in names):
        raise TableError(f"{other}: not as many draws as in {own}; make it without --seeds")
    return [_change(name, rules.copy().pop(), both) for name in names]


def _change(name: str, rules: str, both: Sequence[tuple[Condition, Condition]]) -> Change:
    ratios: dict[str, list[float]] = {group: [] for group in GROUPS}
    for own, other in both:
        pairs = zip(other.draws[name], own.draws[name], strict=True)
        ratios[own.group].append(median(new / max(old, 1e-9) for new, old in pairs))

    def middle(field: str) -> tuple[float, float]:
        old, new = ([getattr(pair[side], field)[name] for pair in both] for side in (0, 1))
        return median(old), median(new)

    return Change(
        scheduler=name,
        rules=rules,
        ratios={group: tuple(values) for group, values in ratios.items() if values},
        stall_ms=middle("stall_ms"),
        in_order_ms=middle("in_order_ms"),
    )


def summary(found: Sequence[Change]) -> str:
    """Markdown: a table for each set of rules."""
    lines: list[str] = []
    for rules in dict.fromkeys(change.rules for change in found):
        part = [change for change in found if change.rules == rules]
        groups = [group for group in GROUPS if group in part[0].ratios]
        lines += [
            f"{WORDS[rules]} (`--rules {rules}`), against the same scheduler under its own rules:",
            "",
            "| scheduler | "
            + " | ".join(f"goodput, {group}" for group in groups)
            + f" | least | > {TIE:.0%} more in | > {TIE:.0%} less in | stall, ms "
            "| in-order delay, ms |",
            "|---" * (len(groups) + 6) + "|",
        ]
        lines += [_line(change, groups) for change in part]
        lines.append("")
    return "\n".join(lines)


def _line(change: Change, groups: Sequence[str]) -> str:
    ratios = change.all_ratios
    cells = [
        change.scheduler,
        *(f"{median(change.ratios[group]):.3f}" for group in groups),
        f"{min(ratios):.3f}",
        f"{sum(r > 1 + TIE for r in ratios)} of {len(ratios)}",
        f"{sum(r < 1 - TIE for r in ratios)} of {len(ratios)}",
        "{:.0f} → {:.0f}".format(*change.stall_ms),
        "{:.0f} → {:.0f}".format(*change.in_order_ms),
    ]
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 2 where the input is none."""
    parser = argparse.ArgumentParser(
        prog="python -m sumrate.report.tournament.rules",
        description="What the rules that go with a scheduler change.",
        epilog="Example: python -m sumrate.report.tournament.rules published.json product.json",
    )
    parser.add_argument("own", type=Path, help="the table with every scheduler's own rules")
    parser.add_argument("other", nargs="+", type=Path, help="tables with other rules")
    parser.add_argument("--output", type=Path, help="write the summary here [default: stdout]")
    parser.add_argument(
        "--commit", default="unknown", help="of the source, for the summary [default: unknown]"
    )
    given = parser.parse_args(arguments)
    try:
        of_one_source([given.own, *given.other])
        found = [change for other in given.other for change in changes(given.own, other)]
        made = HEAD.format(origin(given.other, given.commit))
    except TableError as error:
        print(f"tournament: {error}", file=sys.stderr)
        return 2
    text = made + summary(found)
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
