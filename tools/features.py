"""The table of features, of Sumrate and others: docs/features.toml -> README.md, docs/features.md.

Each `yes` of Sumrate names the test that shows it, FILE::FUNCTION; what has none is refused.

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

What Sumrate has and has not, and what is known of others. Each of our `yes` is a link to the test
that shows it. `?`: neither the source below says it, nor was it seen here. What others do better or
worse is measured, not listed: [goals and claims](verdicts.md).
"""


@dataclass(frozen=True)
class Table:
    """Products, in the order of their columns, and features, in that of their rows."""

    products: list[dict[str, str]]
    features: list[dict[str, str]]


def load(root: Path) -> Table:
    """The table's data."""
    data: dict[str, Any] = tomllib.loads((root / DATA).read_text(encoding="utf-8"))
    return Table(data["product"], data["feature"])


def findings(table: Table, root: Path) -> list[str]:
    """What is wrong with the data: unknown keys and states, a `yes` without a test that exists."""
    products = {product["id"] for product in table.products}
    found = []
    for feature in table.features:
        title = feature.get("title", "a feature without title")
        for key, value in feature.items():
            if key not in products | {"title", "note", "test"}:
                found.append(f"{title}: there is no product {key}")
            elif key in products and value not in STATES:
                found.append(f"{title}: {key} is {value}, not one of {', '.join(STATES)}")
        if feature.get(OURS) == "yes":
            found += missing_test(title, feature.get("test", ""), root)
        elif "test" in feature:
            found.append(f"{title}: it has a test, and is not there")
    return found


def missing_test(title: str, test: str, root: Path) -> list[str]:
    """What is wrong with the test of a feature; empty if it is there."""
    name, _, function = test.partition("::")
    if not function or not (root / name).is_file():
        return [f"{title}: a `yes` names its test, FILE::FUNCTION; there is no `{test}`"]
    text = (root / name).read_text(encoding="utf-8")
    if not re.search(rf"^\s*(?:async )?(?:fn|def) {re.escape(function)}\(", text, re.MULTILINE):
        return [f"{title}: {name} has no test {function}"]
    return []


def lines(table: Table, folder: str) -> list[str]:
    """The table in Markdown, for a page in this folder of the repository."""
    notes = [feature["note"] for feature in table.features if "note" in feature]
    head = ["", *(product["title"] for product in table.products)]
    rows = [head, ["---"] * len(head)]
    for feature in table.features:
        cells = [STATES[feature.get(p["id"], "unknown")] for p in table.products]
        if "test" in feature:
            cells[0] = f"[yes]({os.path.relpath(feature['test'].partition('::')[0], folder)})"
        mark = f" ({notes.index(feature['note']) + 1})" if "note" in feature else ""
        rows.append([feature["title"] + mark, *cells])
    written = ["| " + " | ".join(row) + " |" for row in rows]
    explained = [f"({number}) {note}." for number, note in enumerate(notes, start=1)]
    return [*written, "", " ".join(explained)] if explained else written


def page(table: Table) -> str:
    """docs/features.md."""
    sources = [f"- {p['title']}: {p['sources']}." for p in table.products if "sources" in p]
    parts = [HEAD, *lines(table, "docs"), "", "## Sources", "", *sources]
    return "\n".join(parts) + "\n"


def readme(text: str, table: Table) -> str:
    """The README with its table written again.

    Raises:
        ValueError: it has no place for it.

    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README} has no {BEGIN} ... {END}")
    return "\n".join([before + begin, *lines(table, "."), end + after])


def out_of_step(root: Path) -> dict[str, str]:
    """Pages that are not what the data say, and what they should be."""
    table = load(root)
    wanted = {
        PAGE: page(table),
        README: readme((root / README).read_text(encoding="utf-8"), table),
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
