"""The table of features, of Sumrate and others: docs/features.toml -> README.md, docs/features.md.

Each `yes` of Sumrate names the tests that show it, FILE::FUNCTION; what has none is refused. The
pages link to the lines where these are now, so they are written again when a test moves.

Run: .venv/bin/python tools/features.py [--check] [REPOSITORY]
"""

import argparse
import os
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = "docs/features.toml"
PAGE = "docs/features.md"
README = "README.md"
BEGIN, END = "<!-- features: begin -->", "<!-- features: end -->"
OURS = "sumrate"
STATES = {"yes": "yes", "no": "no", "unknown": "?"}
HEAD = """# Features, beside others

<!-- Written by `make reference` from docs/features.toml; a test keeps it in step. -->

What Sumrate has and has not, and what is known of others. Each of our `yes` links to the tests
that show it. `?`: neither the source below says it, nor was it seen here. What others do better or
worse is measured, not listed: [goals and claims](verdicts.md).
"""


@dataclass(frozen=True)
class Table:
    """Products, in the order of their columns, and features, in that of their rows."""

    products: list[dict[str, str]]
    features: list[dict[str, Any]]


def load(root: Path) -> Table:
    """The table's data."""
    data: dict[str, Any] = tomllib.loads((root / DATA).read_text(encoding="utf-8"))
    return Table(data["product"], data["feature"])


def findings(table: Table, root: Path) -> list[str]:
    """What is wrong with the data: unknown keys and states, a `yes` whose tests do not exist."""
    products = {product["id"] for product in table.products}
    found = []
    for feature in table.features:
        title = feature.get("title", "a feature without title")
        for key, value in feature.items():
            if key not in products | {"title", "note", "tests"}:
                found.append(f"{title}: there is no product {key}")
            elif key in products and value not in STATES:
                found.append(f"{title}: {key} is {value}, not one of {', '.join(STATES)}")
        if feature.get(OURS) == "yes":
            tests = feature.get("tests") or [""]
            found += [wrong for test in tests for wrong in missing_test(title, test, root)]
        elif "tests" in feature:
            found.append(f"{title}: it has tests, and is not there")
    return found


def missing_test(title: str, test: str, root: Path) -> list[str]:
    """What is wrong with the test of a feature; empty if it is there."""
    name, _, function = test.partition("::")
    if not function or not (root / name).is_file():
        return [f"{title}: a `yes` names its tests, FILE::FUNCTION; there is no `{test}`"]
    if line_of(root / name, function) is None:
        return [f"{title}: {name} has no test {function}"]
    return []


def line_of(file: Path, function: str) -> int | None:
    """The line where a function begins; None if the file has none of this name."""
    text = file.read_text(encoding="utf-8")
    begin = rf"^[ \t]*(?:pub )?(?:async )?(?:fn|def) {re.escape(function)}\("
    found = re.search(begin, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None


def links(tests: list[str], folder: str, root: Path) -> str:
    """`yes`, leading to the first test, and numbers, leading to the others."""
    written = []
    for number, test in enumerate(tests, start=1):
        name, _, function = test.partition("::")
        target = f"{os.path.relpath(name, folder)}#L{line_of(root / name, function)}"
        written.append(f"[{STATES['yes'] if number == 1 else number}]({target})")
    return " ".join(written)


def lines(table: Table, folder: str, root: Path) -> list[str]:
    """The table in Markdown, for a page in this folder of the repository at `root`."""
    notes = [feature["note"] for feature in table.features if "note" in feature]
    head = ["", *(product["title"] for product in table.products)]
    rows = [head, ["---"] * len(head)]
    for feature in table.features:
        cells = [STATES[feature.get(p["id"], "unknown")] for p in table.products]
        if "tests" in feature:
            cells[0] = links(feature["tests"], folder, root)
        mark = f" ({notes.index(feature['note']) + 1})" if "note" in feature else ""
        rows.append([feature["title"] + mark, *cells])
    written = ["| " + " | ".join(row) + " |" for row in rows]
    explained = [f"({number}) {note}." for number, note in enumerate(notes, start=1)]
    return [*written, "", " ".join(explained)] if explained else written


def page(table: Table, root: Path) -> str:
    """docs/features.md."""
    sources = [f"- {p['title']}: {p['sources']}." for p in table.products if "sources" in p]
    parts = [HEAD, *lines(table, "docs", root), "", "## Sources", "", *sources]
    return "\n".join(parts) + "\n"


def readme(text: str, table: Table, root: Path) -> str:
    """The README with its table written again.

    Raises:
        ValueError: it has no place for it.

    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README} has no {BEGIN} ... {END}")
    return "\n".join([before + begin, *lines(table, ".", root), end + after])


def out_of_step(root: Path) -> dict[str, str]:
    """Pages that are not what the data say, and what they should be."""
    table = load(root)
    wanted = {
        PAGE: page(table, root),
        README: readme((root / README).read_text(encoding="utf-8"), table, root),
    }
    return {
        name: text
        for name, text in wanted.items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    }


def main() -> int:
    """Writes both pages, or with --check says which are out of step; the exit status is 1 then."""
    parser = argparse.ArgumentParser(description="The table of features.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    if wrong := findings(load(args.root), args.root):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    stale = out_of_step(args.root)
    for name, text in stale.items():
        print(f"{name} " + ("is out of step" if args.check else "written"))
        if not args.check:
            (args.root / name).write_text(text, encoding="utf-8")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
