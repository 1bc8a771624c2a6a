"""Writes what soaks, faults and fuzzers reached into the documents, from their reports.

`docs/reliability.md` has tables of simulated faults, rules, real faults and growth between markers,
`docs/security.md` one of fuzz targets. `--check` writes nothing: it fails where a table lacks a
fault, rule or target that a report has, or has one that is gone, or where a report shows a failure.

Run: python3 tools/trust_tables.py --soak out/soak/report.json --fuzz out/fuzz/report.json
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RELIABILITY = ROOT / "docs/reliability.md"
SECURITY = ROOT / "docs/security.md"


class TableError(Exception):
    """A document or report that cannot be used; the message says which and why."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def megabytes(count: int) -> str:
    """Bytes in MB, with thousands set apart."""
    return f"{count / 1e6:,.0f}"


def faults(report: dict[str, Any]) -> str:
    """Fault, how often, bytes, failures, longest recovery."""
    rows = [
        [
            name,
            f"{row['injected']:,}",
            f"{row['seeds']:,}",
            megabytes(row["bytes"]),
            str(row["failed_seeds"]),
            f"{row['longest_recovery_ms']:,}",
        ]
        for name, row in report["faults"].items()
    ]
    head = ["fault", "injected", "seeds", "MB read", "seeds failed", "longest recovery, ms"]
    return (
        f"{report['seeds']:,} seeds (from {report['first']}) in {report['wall_s']} s on "
        f"{report['threads']} threads: {report['sessions']:,} sessions, "
        f"{megabytes(report['bytes'])} MB read and compared byte by byte, "
        f"{report['virtual_ms'] / 3.6e6:,.0f} hours of virtual time, {report['failed']} seeds "
        f"failed.\n\n{table(head, rows)}"
    )


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
            f"{run['edges']:,}",
            f"{run['features']:,}",
            "yes" if run["failed"] else "no",
        ]
        for run in report["targets"]
    ]
    head = ["target", "executions", "edges reached", "features", "anything found"]
    return f"{report['seconds']} s for each target.\n\n{table(head, rows)}"


def real_faults(report: dict[str, Any]) -> str:
    """Real fault, how often, bytes, bytes lost, longest stall and recovery, others' goodput."""
    rows = []
    for name, row in report["faults"].items():
        others = row["others_ratio"]
        rows.append(
            [
                name,
                row["what"],
                str(row["injected"]),
                megabytes(row["bytes"]),
                f"{row['bytes_lost']:,}",
                f"{row['longest_stall_ms']:,.0f}",
                f"{row['longest_recovery_ms']:,.0f}",
                f"{others['median']:.0%} ({others['least']:.0%})" if others else "stopped too",
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
    return (
        f"Seed {report['seed']}, {report['lasted_s'] / 60:,.0f} minutes, {made:,} faults. "
        f"{totals(report)}\n\n{table(head, rows)}"
    )


def marked(name: str) -> re.Pattern[str]:
    """What stands between a table's markers."""
    return re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)


def replace(path: Path, name: str, content: str) -> None:
    """Puts new content between the markers."""
    text = path.read_text(encoding="utf-8")
    new, count = marked(name).subn(lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text)
    if count != 1:
        raise TableError(f"{path}: {count} places marked '{name}', one is needed")
    path.write_text(new, encoding="utf-8")


def first_cells(text: str, columns: int) -> set[tuple[str, ...]]:
    """The first cells of each row of a table, without head and rule."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {tuple(row[:columns]) for row in rows[2:]}


def difference(path: Path, name: str, content: str, columns: int) -> list[str]:
    """Rows that the document lacks, or has too many."""
    match = marked(name).search(path.read_text(encoding="utf-8"))
    if not match:
        raise TableError(f"{path}: nothing is marked '{name}'")
    kept, fresh = first_cells(match[0], columns), first_cells(content, columns)
    lacks = [f"{path}: {name} lacks {' '.join(row)}" for row in sorted(fresh - kept)]
    return lacks + [f"{path}: {name} still has {' '.join(row)}" for row in sorted(kept - fresh)]


def load(path: Path, fields: Sequence[str]) -> dict[str, Any]:
    """A report; raises TableError if it is none."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error
    missing = [field for field in fields if field not in report]
    if missing:
        raise TableError(f"{path} is not such a report: {', '.join(missing)} missing")
    found: dict[str, Any] = report
    return found


def parts(arguments: argparse.Namespace) -> list[tuple[Path, str, str, int]]:
    """Document, marker, content and key columns of every table that there is a report for."""
    found = []
    if arguments.soak:
        report = load(arguments.soak, ["faults", "rules", "seeds", "failed"])
        if report["failed"]:
            raise TableError(f"{arguments.soak}: {report['failed']} seeds failed")
        found.append((RELIABILITY, "faults", faults(report), 1))
        found.append((RELIABILITY, "rules", rules(report), 2))
    if arguments.fuzz:
        report = load(arguments.fuzz, ["targets", "seconds"])
        failed = [run["target"] for run in report["targets"] if run["failed"]]
        if failed:
            raise TableError(f"{arguments.fuzz}: {', '.join(failed)} failed")
        found.append((SECURITY, "fuzzing", targets(report), 1))
    if arguments.faults:
        report = real(arguments.faults)
        found.append((RELIABILITY, "real faults", real_faults(report), 1))
    if arguments.soak_real:
        report = real(arguments.soak_real)
        if report["growing"]:
            raise TableError(f"{arguments.soak_real}: {', '.join(report['growing'])} grows")
        found.append((RELIABILITY, "real soak", real_soak(report), 2))
    return found


def real(path: Path) -> dict[str, Any]:
    """A report on real sockets that shows no failure."""
    report = load(path, ["faults", "transfers", "bytes_lost", "memory", "panics"])
    if report["bytes_lost"] or report["bad_transfers"] or report["panics"]:
        raise TableError(f"{path}: bytes were lost, or a process crashed")
    return report


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if a table is out of step, 2 if a report or document cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--soak", type=Path, metavar="FILE", help="report of `make soak`")
    parser.add_argument("--fuzz", type=Path, metavar="FILE", help="report of `make fuzz`")
    parser.add_argument("--faults", type=Path, metavar="FILE", help="report of `make faults`")
    parser.add_argument("--soak-real", type=Path, metavar="FILE", help="of `make soak-real`")
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args(argv)
    if not any((arguments.soak, arguments.fuzz, arguments.faults, arguments.soak_real)):
        parser.error("nothing to do: give a report")
    try:
        stale = []
        for path, name, content, columns in parts(arguments):
            if arguments.check:
                stale += difference(path, name, content, columns)
            else:
                replace(path, name, content)
    except TableError as error:
        print(error, file=sys.stderr)
        return 2
    for line in stale:
        print(f"{line}; run: make tables")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
