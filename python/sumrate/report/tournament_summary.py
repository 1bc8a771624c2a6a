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
        f"| {s.scheduler} | {s.ties:.0%} | {s.median:.3f} | {s.worst:.3f} | {s.stall:.0%} "
        f"| {s.in_order:.0%} |"
        for s in sorted(found, key=lambda s: (-s.ties, -s.median))
    ]
    groups = [g for g in GROUPS if any(c.group == g for c in conditions)]
    lines += ["", "Ties for best goodput by group:", ""]
    lines += ["| scheduler | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for name in schedulers:
        parts = [standing([c for c in conditions if c.group == g], name).ties for g in groups]
        lines.append(f"| {name} | " + " | ".join(f"{part:.0%}" for part in parts) + " |")
    return "\n".join([*lines, "", *_losses(conditions), *_waits(conditions)]) + "\n"


def _losses(conditions: Sequence[Condition]) -> list[str]:
    """Where the default does not tie for the best goodput."""
    if DEFAULT not in conditions[0].goodput_mbps:
        return []
    lost = [c for c in conditions if c.relative(DEFAULT) < 1 - TIE]
    lines = [
        f"{DEFAULT} is more than {TIE:.0%} below the best in {len(lost)} of {len(conditions)} "
        "conditions:",
        "",
        f"| condition | {DEFAULT}, of the sum | best | of the sum |",
        "|---|---|---|---|",
    ]
    for condition in sorted(lost, key=lambda c: c.relative(DEFAULT)):
        best = max(condition.goodput_mbps, key=lambda name: condition.goodput_mbps[name])
        lines.append(
            f"| {condition.group}: {condition.words} | {condition.sum_ratio[DEFAULT]:.3f} "
            f"| {best} | {condition.sum_ratio[best]:.3f} |"
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
        f"| condition | what | {DEFAULT}, ms | best | ms |",
        "|---|---|---|---|---|",
    ]
    for condition in conditions:
        counted = serious(condition, DEFAULT)
        for what, values in (("stall", condition.stall_ms), ("delay", condition.in_order_ms)):
            if ranked(condition, values, DEFAULT) > 2:
                best = min((name for name in values if counted[name]), key=values.__getitem__)
                lines.append(
                    f"| {condition.group}: {condition.words} | {what} | {values[DEFAULT]:.0f} "
                    f"| {best} | {values[best]:.0f} |"
                )
    return lines
