"""Writes what soaks, faults, attacks, loads and fuzzers reached into the documents, from reports.

`docs/reliability.md` has tables of simulated faults, rules, real faults, growth, attacks and load
between markers, `docs/security.md` one of fuzz targets. Below each stands which code it is of: the
commit, and git's tree of every directory that it describes.

`--check` writes nothing. It fails where a table lacks a fault, rule, target or attack that a report
has, or has one that is gone, where any table, with or without a report, does not say which code it
is of, and where a report shows a failure. A table that was never made says so instead. That code
has changed since a table was made is said as a warning, with how many commits ago; `--strict` makes
it a failure, too.

Run: PYTHONPATH=python python3 tools/trust_tables.py --soak out/soak/report.json
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import code_state
from sumrate.history import commits_since

ROOT = Path(__file__).resolve().parents[1]
RELIABILITY = ROOT / "docs/reliability.md"
SECURITY = ROOT / "docs/security.md"
PRODUCT = ("crates/fbdt-proto", "crates/fbdt", "crates/sumrate-cli")
REAL = (*PRODUCT, "python/sumrate/lab/faults")
SIMULATED = ("crates/fbdt-proto", "crates/fbdt-sim")
TABLES = {
    "faults": SIMULATED,
    "rules": SIMULATED,
    "fuzzing": (*PRODUCT, "crates/fbdt-sim", "crates/sumrate-link", "fuzz"),
    "real faults": REAL,
    "real soak": REAL,
    "attacks": REAL,
    "load": REAL,
}
"""What each table describes."""
MADE_BY = {
    "faults": "soak",
    "rules": "soak",
    "fuzzing": "fuzz",
    "real faults": "faults",
    "real soak": "soak-real",
    "attacks": "fuzz attacks",
    "load": "load",
}
"""What `make` is told for each table's report."""
LEAST_RATIO = 0.9
"""Of its goodput before a fault another client keeps so much at least."""
ROUNDS_JUDGED = 3
"""A median of fewer is one late second of the machine."""
HASH_LENGTH = 12
STAMP = re.compile(
    r"^Of the code at `(?P<commit>\w+)` \((?P<date>[\d-]+)\): (?P<trees>.*)\.$", re.M
)
TREE = re.compile(r"`(?P<directory>[\w/.-]+)` `(?P<tree>\w+)`")


class TableError(Exception):
    """A document or report that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Part:
    """One table of a document."""

    path: Path
    name: str
    """Its marker."""
    content: str
    columns: int
    """First cells by which its rows are known."""
    code: dict[str, Any] | None
    """Which code its report is of."""
    directories: Sequence[str]
    """What it describes."""

    def stamped(self) -> str:
        """The table, and which code it is of."""
        if self.code is None:
            return self.content
        if self.code.get("changed_meanwhile"):
            raise TableError(f"{self.name}: the code changed while it was made: make it anew")
        return f"{self.content}\n\n{stamp(self.code, self.directories)}"


def stamp(code: dict[str, Any], directories: Sequence[str]) -> str:
    """The line that says which code a table is of."""
    trees = ", ".join(
        f"`{name}` `{code['trees'][name][:HASH_LENGTH]}`"
        for name in directories
        if name in code["trees"]
    )
    return f"Of the code at `{code['commit'][:HASH_LENGTH]}` ({code['date']}): {trees}."


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
    if fuzz is None:
        raise TableError("the table of attacks counts what was fuzzed, too: give --fuzz")
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
    tried = sum(run["executions"] for run in fuzz["targets"])
    return (
        f"{tried:,} inputs of {len(fuzz['targets'])} fuzz targets and {report['connections']:,} "
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


def kept_table(path: Path, name: str) -> str:
    """What a document has between the markers."""
    match = marked(name).search(path.read_text(encoding="utf-8"))
    if not match:
        raise TableError(f"{path}: nothing is marked '{name}'")
    return match[0]


def difference(part: Part) -> list[str]:
    """Rows that the document lacks, or has too many."""
    path, name = part.path, part.name
    kept = first_cells(kept_table(path, name), part.columns)
    fresh = first_cells(part.content, part.columns)
    lacks = [f"{path}: {name} lacks {' '.join(row)}" for row in sorted(fresh - kept)]
    return lacks + [f"{path}: {name} still has {' '.join(row)}" for row in sorted(kept - fresh)]


def not_made(name: str) -> str:
    """What stands in the place of a table that was never made."""
    return f"Not made yet: run `make {MADE_BY[name]} tables`."


def between(part: Part) -> str:
    """What a document has between a table's markers, without them."""
    return "\n".join(kept_table(part.path, part.name).splitlines()[1:-1]).strip()


def unstamped(part: Part) -> list[str]:
    """Directories that a table is of, and does not say in which state; none if it was not made."""
    if between(part) == not_made(part.name):
        return []
    match = STAMP.search(kept_table(part.path, part.name))
    known = dict(TREE.findall(match["trees"])) if match else {}
    missing = [name for name in part.directories if name not in known]
    if not missing:
        return []
    return [f"{part.path}: {part.name} does not say which state of {', '.join(missing)} it is of"]


def aged(
    part: Part,
    now: dict[str, Any],
    count_since: Callable[[str, Sequence[str], Path], int | None] = commits_since,
) -> list[str]:
    """A line that names the directories that changed since a table was made; none if none did."""
    match = STAMP.search(kept_table(part.path, part.name))
    if match is None:
        return []
    found = []
    for directory, tree in TREE.findall(match["trees"]):
        current = now["trees"].get(directory, "")
        if directory in part.directories and not current.startswith(tree):
            count = count_since(match["commit"], [directory], ROOT)
            ago = "an unknown number of" if count is None else f"{count}"
            found.append(f"{directory} ({ago} commits)")
    if not found:
        return []
    made = f"{part.name} is of {match['commit']} ({match['date']})"
    return [f"{part.path}: {made}, older than {', '.join(found)}"]


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


def parts(arguments: argparse.Namespace) -> list[Part]:
    """Every table that there is a report for."""
    found = []

    def add(name: str, content: str, columns: int, report: dict[str, Any]) -> None:
        code = report.get("code")
        found.append(Part(page_of(name), name, content, columns, code, TABLES[name]))

    if arguments.soak:
        report = simulated(arguments.soak)
        add("faults", faults(report), 1, report)
        add("rules", rules(report), 2, report)
    fuzz = fuzzed(arguments.fuzz) if arguments.fuzz else None
    if fuzz:
        add("fuzzing", targets(fuzz), 1, fuzz)
    if arguments.faults:
        report = real(arguments.faults)
        judge(arguments.faults, report)
        add("real faults", real_faults(report), 2, report)
    if arguments.soak_real:
        report = real(arguments.soak_real)
        add("real soak", real_soak(report), 2, report)
    if arguments.attacks:
        report = unharmed(arguments.attacks, ["attacks", "connections", "sessions_harmed"])
        add("attacks", attacks(report, fuzz), 2, report)
    if arguments.load:
        report = unharmed(arguments.load, ["sessions", "streams", "handshakes_per_s", "idle_share"])
        add("load", load_held(report), 1, report)
    return found


def page_of(name: str) -> Path:
    """The document that has a table."""
    return SECURITY if name == "fuzzing" else RELIABILITY


def kept() -> list[Part]:
    """All tables that the documents have, with or without a report."""
    texts = {path: path.read_text(encoding="utf-8") for path in (RELIABILITY, SECURITY)}
    return [
        Part(page_of(name), name, "", 0, None, directories)
        for name, directories in TABLES.items()
        if marked(name).search(texts[page_of(name)])
    ]


def simulated(path: Path) -> dict[str, Any]:
    """A report of simulated seeds of which none failed."""
    report = load(path, ["faults", "rules", "seeds", "failed"])
    if report["failed"]:
        raise TableError(f"{path}: {report['failed']} seeds failed")
    return report


def fuzzed(path: Path) -> dict[str, Any]:
    """A report of fuzzing that found nothing."""
    report = load(path, ["targets", "seconds"])
    failed = [run["target"] for run in report["targets"] if run["failed"]]
    if failed:
        raise TableError(f"{path}: {', '.join(failed)} failed")
    return report


def unharmed(path: Path, fields: Sequence[str]) -> dict[str, Any]:
    """A report of attacks or load without problems."""
    report = load(path, [*fields, "problems"])
    if report["problems"]:
        raise TableError(f"{path}: {'; '.join(report['problems'])}")
    return report


def real(path: Path) -> dict[str, Any]:
    """A report on real sockets that shows no failure."""
    report = load(path, ["faults", "transfers", "bytes_lost", "memory", "panics", "problems"])
    if report["bytes_lost"] or report["bad_transfers"] or report["panics"]:
        raise TableError(f"{path}: bytes were lost, or a process crashed")
    if report["problems"]:
        raise TableError(f"{path}: {'; '.join(report['problems'])}")
    return report


def judge(path: Path, report: dict[str, Any]) -> None:
    """Refuses faults that slowed others down, or were made too seldom to say."""
    for name, row in report["faults"].items():
        others = row["others_ratio"]
        if others is None and not row.get("stops_everybody"):
            raise TableError(f"{path}: {name} has no goodput of others, and no reason for that")
        if others and row["injected"] < ROUNDS_JUDGED:
            raise TableError(
                f"{path}: {name} was made {row['injected']} times, {ROUNDS_JUDGED} are needed: "
                f"make faults ROUNDS={ROUNDS_JUDGED}"
            )
        if others and others["median"] < LEAST_RATIO:
            raise TableError(
                f"{path}: {name} left the other client {others['median']:.0%} of its goodput, "
                f"at least {LEAST_RATIO:.0%} is wanted"
            )


def check(found: Sequence[Part], *, strict: bool) -> int:
    """Compares tables with reports, and all with the code; exit status 1 if one is out of step."""
    stale = [line for part in found for line in difference(part)]
    stale += [line for part in kept() for line in unstamped(part)]
    now = code_state.state()
    old = [] if now is None else [line for part in kept() for line in aged(part, now)]
    for line in stale + (old if strict else []):
        print(f"{line}; run: make tables")
    for line in [] if strict else old:
        print(f"warning: {line}")
    return int(bool(stale or (strict and old)))


def write(found: Sequence[Part]) -> int:
    """Writes all tables; exit status 1 if one does not say which code it is of."""
    for part in kept():
        if not between(part):
            replace(part.path, part.name, not_made(part.name))
    for part in found:
        replace(part.path, part.name, part.stamped())
    without = [part.name for part in found if part.code is None]
    if without:
        print(
            f"{', '.join(without)}: the report does not say which code it is of: make it with "
            "make, which does",
            file=sys.stderr,
        )
    return int(bool(without))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if a table is out of step, 2 if a report or document cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = ("soak", "fuzz", "faults", "soak-real", "attacks", "load")
    for kind in kinds:
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"of `make {kind}`")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--strict", action="store_true", help="with --check: fail where code moved")
    arguments = parser.parse_args(argv)
    if not any(getattr(arguments, kind.replace("-", "_")) for kind in kinds):
        parser.error("nothing to do: give a report")
    try:
        found = parts(arguments)
        return check(found, strict=arguments.strict) if arguments.check else write(found)
    except TableError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
