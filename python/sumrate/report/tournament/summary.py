"""The tournament's standings in words: over all, by group, and where the default loses."""

from collections.abc import Sequence
from statistics import median

from sumrate.report.tournament.table import (
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

BUILT_ON = (("minrtt", "lrf"), ("blest", "minrtt"), ("ecf", "minrtt"))
"""A scheduler, and the one whose rule it adds to."""


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
            "probes of 0.2 s, one after the other. At short RTTs the warm-up, 1 s and 16 of the "
            "largest RTTs, ends before that does: its row is of the search too, not only of the "
            "ratio that it finds.",
        ]
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    lines += ["", "Ties for best goodput by group:", ""]
    lines += ["| scheduler | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for name in schedulers:
        parts = [standing([c for c in conditions if c.group == g], name).ties for g in groups]
        lines.append(f"| {_marked(name)} | " + " | ".join(f"{part:.0%}" for part in parts) + " |")
    lines += _without_smallest(conditions)
    lines += [*_longest(conditions), *_at_rest(conditions), *_copies(conditions)]
    lines += [*_losses(conditions), *_waits(conditions)]
    return "\n".join(lines) + "\n"


def _without_smallest(conditions: Sequence[Condition]) -> list[str]:
    """The default's ties without the smallest buffer, hardly more than one path takes."""
    sizes = [c.parameters["buffer_bytes"] for c in conditions]
    if not any(sizes):
        return []
    least = min(filter(None, sizes))
    others = [c for c in conditions if c.parameters["buffer_bytes"] != least]
    buffers = [c for c in others if c.parameters["buffer_bytes"]]
    if not buffers:
        return []
    return [
        "",
        f"Without the {len(conditions) - len(others)} conditions with the smallest buffer, "
        f"{least >> 10} KiB, {DEFAULT} ties in {standing(others, DEFAULT).ties:.0%} of all and in "
        f"{standing(buffers, DEFAULT).ties:.0%} of those with buffers.",
    ]


def _marked(scheduler: str) -> str:
    """Its name, with a mark where a note belongs to it."""
    return f"{scheduler} \\*" if scheduler == SEARCHING else scheduler


def _range(ratios: Sequence[float]) -> str:
    """Their median, with the least and the greatest where there are several."""
    middle = f"{median(ratios):.3f}"
    return middle if len(ratios) < 2 else f"{middle} ({min(ratios):.3f} to {max(ratios):.3f})"


def _agreement(lost: Sequence[Condition]) -> str:
    """In how many of these the draws disagree, in words; nothing where there is one draw."""
    several = [c for c in lost if len(c.draws[DEFAULT]) > 1]
    if not several:
        return ""
    open_ones = sum(c.undecided(DEFAULT, c.best_but(DEFAULT)) for c in several)
    return (
        f" Ratios are of the same draw, their median with the least and the greatest; in "
        f"{open_ones} of these {len(several)} the default is ahead in some draw (marked ~)."
    )


def _at_rest(conditions: Sequence[Condition]) -> list[str]:
    """In how many conditions what a scheduler adds to another one's rule never came to bear."""
    schedulers = conditions[0].goodput_mbps
    pairs = [pair for pair in BUILT_ON if all(name in schedulers for name in pair)]
    if not pairs:
        return [""]
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    lines = [
        "",
        "A rule that never comes to bear leaves the scheduler that it is built on, to the byte, in "
        "every draw:",
        "",
        "| scheduler | built on | " + " | ".join(groups) + " |",
        "|---" * (len(groups) + 2) + "|",
    ]
    for name, other in pairs:
        found = [[c.same(name, other) for c in conditions if c.group == g] for g in groups]
        cells = " | ".join(f"{sum(same)} of {len(same)}" for same in found)
        lines.append(f"| {name} | {other} | {cells} |")
    return [*lines, ""]


def _longest(conditions: Sequence[Condition]) -> list[str]:
    """How long each scheduler stalls, and delays, at most in any condition of a group."""
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    lines = [
        "",
        "The longest stall and the longest in-order delay of any condition, in ms:",
        "",
        "| scheduler | " + " | ".join(groups) + " |",
        "|---" * (len(groups) + 1) + "|",
    ]
    for name in conditions[0].goodput_mbps:
        cells = []
        for group in groups:
            own = [c for c in conditions if c.group == group]
            stall = max(c.stall_ms[name] for c in own)
            delay = max(c.in_order_ms[name] for c in own)
            cells.append(f"{stall:.0f}, {delay:.0f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _copies(conditions: Sequence[Condition]) -> list[str]:
    """The default's share of copies, by group and by the size of transfers."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lines = [
        f"Of what {DEFAULT} sends, copies:",
        "",
        "| conditions | median | least | most |",
        "|---|---|---|---|",
    ]
    parts: dict[str, list[float]] = {}
    for condition in conditions:
        size = condition.parameters.get("transfer_bytes") or 0
        name = f"short, {size // 1000} KB" if size else condition.group
        parts.setdefault(name, []).append(condition.copies[DEFAULT])
    lines += [
        f"| {name} | {median(found):.1%} | {min(found):.1%} | {max(found):.1%} |"
        for name, found in parts.items()
    ]
    return [*lines, ""]


SHORT = ", of short transfers two rates that round trips bound, which nothing has to add up to"


def _has_short(conditions: Sequence[Condition]) -> bool:
    return any(condition.group == "short" for condition in conditions)


def _losses(conditions: Sequence[Condition]) -> list[str]:
    """Where the default does not tie for the best goodput."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lost = [c for c in conditions if c.relative(DEFAULT) < 1 - TIE]
    lines = [
        f"{DEFAULT} is more than {TIE:.0%} below the best in {len(lost)} of {len(conditions)} "
        f"conditions by Mbit/s, of which no more counts than the links carry; the sums are of what "
        f"each path carries alone in the same draw{SHORT if _has_short(lost) else ''}."
        f"{_agreement(lost)}",
        "",
        f"| condition | {DEFAULT} over the best, Mbit/s | of the sum | best | of the sum |",
        "|---|---|---|---|---|",
    ]
    for condition in sorted(lost, key=lambda c: c.relative(DEFAULT)):
        best = condition.best_but(DEFAULT)
        mark = " ~" if condition.undecided(DEFAULT, best) else ""
        own, others = condition.sum_ratio[DEFAULT], condition.sum_ratio[best]
        lines.append(
            f"| {condition.group}: {condition.words} | {_range(condition.ratios(DEFAULT, best))} "
            f"| {own:.3f} | {best}{mark} | {others:.3f} |"
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
