"""The tournament's standings in words: over all, by group, and where the default loses."""

from collections.abc import Sequence

from sumrate.report.tournament_table import (
    DEFAULT,
    GROUPS,
    TIE,
    Condition,
    ranked,
    serious,
    standing,
)

COPIES = "redundant"
"""Sends everything on every path: it waits for little at the cost of the others' goodput."""
SEARCHING = "musher"
"""Its row counts its first search for a ratio, which outlasts the warm-up."""


def summary(conditions: Sequence[Condition]) -> str:
    """Markdown: the standings over all and by group, and where the default is not the best."""
    schedulers = list(conditions[0].goodput_mbps)
    lines = [
        "| scheduler | ties for best goodput | median of best | worst | best or second in stall "
        "| best or second in in-order delay |",
        "|---|---|---|---|---|---|",
    ]
    found = [standing(conditions, name) for name in schedulers]
    lines += [
        f"| {_marked(s.scheduler)} | {s.ties:.0%} | {s.median:.3f} | {s.worst:.3f} | {s.stall:.0%} "
        f"| {s.in_order:.0%} |"
        for s in sorted(found, key=lambda s: (-s.ties, -s.median))
    ]
    if SEARCHING in schedulers:
        lines += [
            "",
            f"\\* {SEARCHING} looks for its ratio first: half a second for a reference, then "
            "probes of 0.2 s, one after the other. At short RTTs the warm-up, 1 s and 8 of the "
            "largest RTTs, ends before that does: its row is of the search too, not only of the "
            "ratio that it finds.",
        ]
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    lines += ["", "Ties for best goodput by group:", ""]
    lines += ["| scheduler | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for name in schedulers:
        parts = [standing([c for c in conditions if c.group == g], name).ties for g in groups]
        lines.append(f"| {_marked(name)} | " + " | ".join(f"{part:.0%}" for part in parts) + " |")
    return "\n".join([*lines, "", *_losses(conditions), *_waits(conditions)]) + "\n"


def _marked(scheduler: str) -> str:
    """Its name, with a mark where a note belongs to it."""
    return f"{scheduler} \\*" if scheduler == SEARCHING else scheduler


def _ratio(condition: Condition, scheduler: str) -> str:
    """Its goodput over the sum, with the range over the seeds where there are several."""
    middle = f"{condition.sum_ratio[scheduler]:.3f}"
    if condition.seeds < 2:
        return middle
    least, most = condition.sum_range[scheduler]
    return f"{middle} ({least:.3f} to {most:.3f})"


def _draws(lost: Sequence[Condition]) -> str:
    """How far these are more than the draws' doing, in words; nothing where nothing is drawn."""
    lossy = [c for c in lost if c.group == "loss"]
    several = [c for c in lossy if c.seeds > 1]
    parts = []
    if several:
        chance = sum(c.by_chance(DEFAULT, c.best_but(DEFAULT)) for c in several)
        parts.append(
            f" Where there are several seeds, values are medians with their ranges; in {chance} of "
            f"these {len(several)} conditions with losses the ranges overlap (marked ~), so that "
            "the draws may have decided."
        )
    if len(several) < len(lossy):
        parts.append(
            f" In {len(lossy) - len(several)} conditions with losses there is one draw of them, "
            "which cannot tell a rule from chance."
        )
    return "".join(parts)


def _losses(conditions: Sequence[Condition]) -> list[str]:
    """Where the default does not tie for the best goodput."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lost = [c for c in conditions if c.relative(DEFAULT) < 1 - TIE]
    lines = [
        f"{DEFAULT} is more than {TIE:.0%} below the best in {len(lost)} of {len(conditions)} "
        f"conditions by the medians of Mbit/s, of which no more counts than the links carry; the "
        f"sums are of what each path carries alone with the same draws.{_draws(lost)}",
        "",
        f"| condition | {DEFAULT} over the best, Mbit/s | of the sum | best | of the sum |",
        "|---|---|---|---|---|",
    ]
    for condition in sorted(lost, key=lambda c: c.relative(DEFAULT)):
        best = condition.best_but(DEFAULT)
        chance = " ~" if condition.by_chance(DEFAULT, best) else ""
        lines.append(
            f"| {condition.group}: {condition.words} | {condition.relative(DEFAULT):.3f} "
            f"| {_ratio(condition, DEFAULT)} | {best}{chance} | {_ratio(condition, best)} |"
        )
    return lines


def _waits(conditions: Sequence[Condition]) -> list[str]:
    """Where two serious schedulers or more stall for less time than the default, or delay less."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lines = [
        "",
        f"{DEFAULT} is not among the two best in stall or in-order delay in these conditions:",
        "",
        f"| condition | what | {DEFAULT}, ms | best | ms | best without {COPIES} | ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for condition in conditions:
        counted = serious(condition, DEFAULT)
        for what, values in (("stall", condition.stall_ms), ("delay", condition.in_order_ms)):
            if ranked(condition, values, DEFAULT) <= 2:
                continue
            among = sorted((n for n in values if counted[n]), key=values.__getitem__)
            shown = [among[0], next(name for name in among if name != COPIES)]
            found = " | ".join(f"{name} | {values[name]:.0f}" for name in shown)
            lines.append(
                f"| {condition.group}: {condition.words} | {what} | {values[DEFAULT]:.0f} "
                f"| {found} |"
            )
    return lines
