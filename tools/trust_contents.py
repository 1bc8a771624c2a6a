"""The tables of `trust_report.py` as Markdown, each from its report."""

import re
from collections.abc import Sequence
from typing import Any


class TableError(Exception):
    """A report that shows a failure or cannot be used; the message says which and why."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def megabytes(count: int) -> str:
    """Bytes in MB, with thousands set apart."""
    return f"{count / 1e6:,.0f}"


def faults(report: dict[str, Any]) -> str:
    """Fault, how often, bytes, failures, longest recovery."""
    lost = all("bytes_lost" in row for row in report["faults"].values())
    rows = [
        [
            name,
            f"{row['injected']:,}",
            f"{row['seeds']:,}",
            megabytes(row["bytes"]),
            *([f"{row['bytes_lost']:,}"] if lost else []),
            str(row["failed_seeds"]),
            f"{row['longest_recovery_ms']:,}",
        ]
        for name, row in report["faults"].items()
    ]
    head = ["fault", "injected", "seeds", "MB read", *(["bytes lost"] if lost else [])]
    head += ["seeds failed", "longest recovery, ms"]
    return (
        f"{report['seeds']:,} seeds (from {report['first']}) in {report['wall_s']} s on "
        f"{report['threads']} threads: {report['sessions']:,} sessions, "
        f"{megabytes(report['bytes'])} MB read and compared byte by byte, "
        f"{report['virtual_ms'] / 3.6e6:,.0f} hours of virtual time, {report['failed']} seeds "
        f"failed.\n\n{table(head, rows)}"
    )


def schedulers(report: dict[str, Any]) -> str:
    """Scheduler, how many seeds drew it, and in how many it chose between paths."""
    rows = [
        [
            name,
            f"{row['seeds']:,}",
            f"{row['placed_seeds']:,}",
            megabytes(row["bytes"]),
            f"{row['bytes_lost']:,}",
            str(row["failed_seeds"]),
        ]
        for name, row in report["schedulers"].items()
    ]
    head = ["scheduler", "seeds", "of those, over several paths", "MB read", "bytes lost"]
    return table([*head, "seeds failed"], rows)


def rule_number(rule: str) -> tuple[int, str]:
    """Sorts F9b behind F9 and before F10."""
    match = re.fullmatch(r"F(\d+)(\w*)", rule)
    return (int(match[1]), match[2]) if match else (0, rule)


def rules(report: dict[str, Any]) -> str:
    """Rule, what was seen of it, in how many seeds."""
    rows = [
        [rule, words, f"{row['seeds']:,}", str(row["first"]) if row["seeds"] else "none"]
        for rule in sorted(report["rules"], key=rule_number)
        for words, row in report["rules"][rule].items()
    ]
    return table(["rule", "seen at work", "seeds", "first seed"], rows)


def targets(report: dict[str, Any]) -> str:
    """Target, executions, coverage."""
    rows = [
        [
            run["target"],
            f"{run['executions']:,}",
            f"{run['edges']:,} of {run['edges_linked']:,} {run.get('counted', 'edges')}",
            f"{run['features']:,}" if run["features"] else "not counted",
            "yes" if run["failed"] else "no",
        ]
        for run in report["targets"]
    ]
    head = ["target", "executions", "reached of what is linked", "features", "anything found"]
    return f"{report['seconds']} s for each target.\n\n{table(head, rows)}"


def real_faults(report: dict[str, Any]) -> str:
    """Real fault, how often, bytes, bytes lost, longest stall and recovery, others' goodput."""
    rows = []
    for name, row in report["faults"].items():
        others = row["others_ratio"]
        why = row.get("stops_everybody") or "everybody is stopped"
        rows.append(
            [
                name,
                row["what"],
                str(row["injected"]),
                megabytes(row["bytes"]),
                f"{row['bytes_lost']:,}",
                f"{row['longest_stall_ms']:,.0f}",
                f"{row['longest_recovery_ms']:,.0f}",
                f"{others['median']:.0%} ({others['least']:.0%})" if others else f"none: {why}",
            ]
        )
    head = ["fault", "what happens", "injected", "MB", "bytes lost", "longest stall, ms"]
    head += ["longest recovery, ms", "others' goodput: median (least)"]
    return f"{totals(report)}\n\n{table(head, rows)}"


def totals(report: dict[str, Any]) -> str:
    """What all transfers of a report on real sockets came to."""
    told = sum(report["transfers"].get(kind, 0) for kind in ("refused", "broken"))
    memory = max(report["memory"].values(), key=lambda entry: int(entry["peak_bytes"]))
    return (
        f"{sum(report['transfers'].values()):,} transfers, {megabytes(report['bytes'])} MB "
        f"compared byte by byte, {report['bytes_lost']} bytes lost; {told:,} transfers failed and "
        f"their programs were told; {len(report['panics'])} panics. Largest process: "
        f"{megabytes(memory['peak_bytes'])} MB ({memory['known_by']}); most descriptors: "
        f"{max(report['most_descriptors'].values()):,}."
    )


def real_soak(report: dict[str, Any]) -> str:
    """Growth of each process, with its confidence interval."""
    units = {"memory_bytes": ("memory, MB", 1e6), "descriptors": ("descriptors", 1.0)}
    rows = []
    for name, quantities in report["growth"].items():
        for quantity, seen in quantities.items():
            words, unit = units[quantity]
            rows.append(
                [
                    name,
                    words,
                    f"{seen['mean'] / unit:,.0f}",
                    f"{seen['most'] / unit:,.0f}",
                    f"{seen['per_hour'] / unit:+,.2f}",
                    f"{seen['low'] / unit:+,.2f} to {seen['high'] / unit:+,.2f}",
                ]
            )
    head = ["process", "quantity", "mean", "most", "growth per hour", "99 % interval"]
    made = sum(row["injected"] for row in report["faults"].values())
    without = sum(report.get("without_effect", {}).values())
    return (
        f"Seed {report['seed']}, {report['lasted_s'] / 60:,.0f} minutes, {made:,} faults and "
        f"{without:,} attempts without effect. {totals(report)}\n\n{table(head, rows)}"
    )


def attacks(report: dict[str, Any], fuzz: dict[str, Any] | None) -> str:
    """Bad inputs that were tried, and sessions that were harmed."""
    rows = [
        [
            name,
            row["what"],
            f"{row['made']:,}",
            f"{row['closed']:,}",
            f"{row['answered']:,}",
            f"{row['transfers']:,}",
            megabytes(row["bytes"]),
            f"{row['sessions_harmed']} of {row['sessions']}",
        ]
        for name, row in report["attacks"].items()
    ]
    head = ["attack", "what it sends", "connections", "ended by the server", "answered"]
    head += ["transfers beside it", "MB", "sessions harmed"]
    tried = ""
    if fuzz:
        count = sum(run["executions"] for run in fuzz["targets"])
        tried = f"{count:,} inputs of {len(fuzz['targets'])} fuzz targets and "
    return (
        f"{tried}{report['connections']:,} "
        f"hostile connections: {report['sessions_harmed']} sessions harmed, "
        f"{report['bytes_lost']} bytes lost.\n\n{table(head, rows)}"
    )


def load_held(report: dict[str, Any]) -> str:
    """Sessions, streams and handshakes of two cores."""
    share = f"{report['completed_share']:.0%} complete"
    rows = [
        ["sessions that transfer at once", f"{report['sessions_at_once']:,} ({share})"],
        ["streams at once", f"{report['streams']:,}"],
        ["goodput of all together, Mbit/s", f"{report['goodput_mbps']:,.0f}"],
        ["full TLS handshakes with Hello, a second", f"{report['handshakes_per_s']:,.0f}"],
        ["CPU of the server for each, ms", f"{report['server_cpu_ms_per_handshake']:.2f}"],
        ["of the cores idle meanwhile", f"{report['idle_share']:.0%}"],
    ]
    return (
        f"Server and all clients on one machine with {report['cores']} cores.\n\n"
        f"{table(['load', 'held'], rows)}"
    )
