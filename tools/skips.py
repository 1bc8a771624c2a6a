"""Counts the tests that were skipped, and compares them with those that are expected to be.

A Rust test that cannot run calls `test_skip::skipped`, which writes a line `SKIPPED NAME: REASON`;
an ignored one is said by libtest. Python tests skip by pytest; tests/conftest.py appends each to
the file that the option --skips names. Both leave lines of JSON.

python3 tools/skips.py rust FILE -- cargo test ...   # runs it, adds its skips to FILE
python3 tools/skips.py list FILE                     # shows them
python3 tools/skips.py check FILE [EXPECTED]         # 1: a skip nobody expects, or an expected one
                                                     # that did not happen
"""

import argparse
import fnmatch
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

EXPECTED = Path("tests/expected_skips.toml")
SKIPPED = re.compile(r"SKIPPED ([\w:]+): (.*)")
IGNORED = re.compile(r"^test (\S+)(?: - .*)? \.\.\. ignored(?:, (.*))?$")
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")


@dataclass(frozen=True)
class Skip:
    """A test that did not run: its name and why."""

    test: str
    reason: str


@dataclass(frozen=True)
class Expected:
    """A skip that is known; `test` may have wildcards."""

    test: str
    reason: str
    """A part of the reason that the test gives."""
    because: str
    """Why it is in order."""
    sometimes: bool = False
    """It depends on the moment, so it need not happen."""

    def is_of(self, skip: Skip) -> bool:
        """Whether it describes this skip."""
        return fnmatch.fnmatchcase(skip.test, self.test) and self.reason in skip.reason


def rust_skips(lines: Iterable[str]) -> Iterator[Skip]:
    """The skips in what `cargo test` wrote."""
    for line in lines:
        if found := SKIPPED.search(line):
            yield Skip(found[1], found[2].strip())
        elif found := IGNORED.match(line):
            yield Skip(found[1], found[2] or "ignored")


def read(path: Path) -> list[Skip]:
    """The skips of a file; the same test and reason counts once."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list(dict.fromkeys(Skip(**json.loads(line)) for line in lines))


def expected(path: Path) -> list[Expected]:
    """The known skips."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Expected(**entry) for entry in document.get("skip", [])]


def findings(skips: Iterable[Skip], known: Iterable[Expected]) -> list[str]:
    """Skips that nobody expects, and expected skips that did not happen."""
    happened, entries = list(skips), list(known)
    found = [
        f"{skip.test} was skipped ({skip.reason}), and {EXPECTED} does not name it"
        for skip in happened
        if not any(entry.is_of(skip) for entry in entries)
    ]
    found += [
        f"{entry.test} was not skipped for `{entry.reason}`: take it out of {EXPECTED}"
        for entry in entries
        if not entry.sometimes and not any(entry.is_of(skip) for skip in happened)
    ]
    return found


def run_rust(file: Path, command: list[str]) -> int:
    """Runs `cargo test`, shows what it says, and adds its skips to the file."""
    counts: Counter[str] = Counter()
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
        file.open("a", encoding="utf-8") as skips,
    ):
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            for skip in rust_skips([line]):
                skips.write(json.dumps(asdict(skip)) + "\n")
            counts["skipped"] += SKIPPED.search(line) is not None
            if found := RESULT.match(line):
                counts["passed"] += int(found[1])
                counts["failed"] += int(found[2])
                counts["ignored"] += int(found[3])
    print(
        f"Rust: {counts['passed'] - counts['skipped']} tests passed, {counts['failed']} failed, "
        f"{counts['skipped']} were skipped, {counts['ignored']} ignored"
    )
    return process.returncode


def show(file: Path, known: Path | None = None) -> int:
    """Prints the skips and, beside expected ones, what is wrong with them."""
    skips = read(file)
    print(f"{len(skips)} tests or parts of them were skipped")
    for skip in skips:
        print(f"  {skip.test}: {skip.reason}")
    wrong = findings(skips, expected(known)) if known else []
    for finding in wrong:
        print(finding, file=sys.stderr)
    return 1 if wrong else 0


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("rust", "run cargo test and note its skips"),
        ("list", "show the skips"),
        ("check", "compare the skips with the expected ones"),
    ):
        commands.add_parser(name, help=words).add_argument("file", type=Path)
    commands.choices["rust"].add_argument("cargo", nargs="+")
    commands.choices["check"].add_argument("expected", type=Path, nargs="?", default=EXPECTED)
    args = parser.parse_args(argv)
    if args.command == "rust":
        return run_rust(args.file, args.cargo)
    return show(args.file, getattr(args, "expected", None))


if __name__ == "__main__":
    sys.exit(main())
