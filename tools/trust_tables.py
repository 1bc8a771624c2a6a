"""Writes what soaks, faults, attacks, loads and fuzzers reached into the documents, from reports.

`docs/reliability.md` has tables of simulated faults, schedulers and rules, of real faults, growth,
attacks and load between markers, `docs/security.md` one of fuzz targets. Below each stands which
code it is of: the commit, and git's tree of every directory that it describes.

`--check` writes nothing. It fails where a table lacks a fault, rule, target or attack that a report
has, or has one that is gone, where any table, with or without a report, does not say which code it
is of, and where a report shows a failure. A table that was never made says so instead. That code
has changed since a table was made is said as a warning, with how many commits ago; `--strict` makes
it a failure, too, and `--strict-after N` does once more than N commits have changed that code. Both
fail where git cannot say which code this is. Without a report only the ages are checked.

Run: PYTHONPATH=python python3 tools/trust_tables.py --soak out/soak/report.json
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import code_state
from sumrate.history import commits_since
from trust_contents import (
    TableError,
    attacks,
    faults,
    load_held,
    real_faults,
    real_soak,
    rules,
    schedulers,
    targets,
)

ROOT = Path(__file__).resolve().parents[1]
RELIABILITY = ROOT / "docs/reliability.md"
SECURITY = ROOT / "docs/security.md"
PRODUCT = ("crates/fbdt-proto", "crates/fbdt", "crates/sumrate-cli")
REAL = (*PRODUCT, "python/sumrate/lab/faults")
SIMULATED = ("crates/fbdt-proto", "crates/fbdt-sim")
TABLES = {
    "faults": SIMULATED,
    "schedulers": SIMULATED,
    "rules": SIMULATED,
    "fuzzing": (
        *PRODUCT,
        "crates/fbdt-sim",
        "crates/sumrate-capture",
        "crates/sumrate-link",
        "fuzz",
    ),
    "real faults": REAL,
    "real soak": REAL,
    "attacks": REAL,
    "load": REAL,
}
"""What each table describes."""
MADE_BY = {
    "faults": "soak",
    "schedulers": "soak",
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
NOT_AT_ALL = -1
"""Code may not have changed, not even without a commit."""
STAMP = re.compile(
    r"^Of the code at `(?P<commit>\w+)` \((?P<date>[\d-]+)\): (?P<trees>.*)\.$", re.M
)
TREE = re.compile(r"`(?P<directory>[\w/.-]+)` `(?P<tree>\w+)`")


@dataclass(frozen=True)
class Age:
    """A table whose code has changed since."""

    words: str
    commits: int | None
    """How many changed it; None where the table's own commit is not known here."""

    def exceeds(self, most: int) -> bool:
        """Whether it is more than so many commits; what is not known may be any number."""
        return self.commits is None or self.commits > most


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


def aged(part: Part, now: dict[str, Any]) -> list[Age]:
    """Which directories have changed since a table was made; nothing if none has."""
    match = STAMP.search(kept_table(part.path, part.name))
    if match is None:
        return []
    changed = [
        directory
        for directory, tree in TREE.findall(match["trees"])
        if directory in part.directories and not now["trees"].get(directory, "").startswith(tree)
    ]
    if not changed:
        return []

    def since(names: Sequence[str]) -> int | None:
        return commits_since(match["commit"], names, ROOT)

    each = [f"{name} ({count_words(since([name]))})" for name in changed]
    made = f"{part.name} is of {match['commit']} ({match['date']})"
    words = f"{part.path}: {made}, older than {', '.join(each)}"
    return [Age(words, since(changed))]


def count_words(commits: int | None) -> str:
    """How many commits, also where nobody knows."""
    return "an unknown number of commits" if commits is None else f"{commits} commits"


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
        add("schedulers", schedulers(report), 1, report)
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
    report = load(path, ["faults", "schedulers", "rules", "seeds", "failed"])
    if report["failed"]:
        raise TableError(f"{path}: {report['failed']} seeds failed")
    idle = [name for name, row in report["schedulers"].items() if not row["placed_seeds"]]
    if idle:
        raise TableError(f"{path}: {', '.join(idle)} never chose between paths: run more seeds")
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


def check(found: Sequence[Part], *, most: int | None) -> int:
    """Compares tables with reports, and all with the code; exit status 1 if one is out of step.

    Code may have changed by `most` commits since, NOT_AT_ALL or, with None, any number.
    """
    stale = [line for part in found for line in difference(part)]
    stale += [line for part in kept() for line in unstamped(part)]
    now = code_state.state()
    if now is None and most is not None:
        raise TableError("git does not say which code this is: the tables' age is not known")
    old = [] if now is None else [line for part in kept() for line in aged(part, now)]
    too_old = [age for age in old if most is not None and age.exceeds(most)]
    for line in stale + [age.words for age in too_old]:
        print(f"{line}; run: make tables")
    for age in old:
        if age not in too_old:
            print(f"warning: {age.words}")
    return int(bool(stale or too_old))


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


def number_of_commits(text: str) -> int:
    """What --strict-after takes."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} commits: give 0 or more")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if a table is out of step, 2 if a report or document cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = ("soak", "fuzz", "faults", "soak-real", "attacks", "load")
    for kind in kinds:
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"of `make {kind}`")
    parser.add_argument("--check", action="store_true", help="compare only")
    ages = parser.add_mutually_exclusive_group()
    ages.add_argument(
        "--strict",
        dest="most",
        action="store_const",
        const=NOT_AT_ALL,
        help="with --check: fail where code has changed since a table was made, committed or not",
    )
    ages.add_argument(
        "--strict-after",
        dest="most",
        type=number_of_commits,
        metavar="N",
        help="with --check: fail where more than N commits have changed it",
    )
    arguments = parser.parse_args(argv)
    if arguments.most is not None and not arguments.check:
        parser.error("--strict and --strict-after are for --check")
    given = any(getattr(arguments, kind.replace("-", "_")) for kind in kinds)
    if not given and not arguments.check:
        parser.error("nothing to do: give a report, or --check to hear how old the tables are")
    try:
        found = parts(arguments)
        return check(found, most=arguments.most) if arguments.check else write(found)
    except TableError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
