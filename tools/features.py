"""The table of features, of Sumrate and others, from docs/features.toml.

Each `yes` of Sumrate names the tests that show it, FILE::FUNCTION; a `yes` without a test is an
error. The whole table is a page of the documentation site, written when the site is built. The
README has the features with a `readme` title (tests/docs/test_features.py compares them).
"""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = "docs/features.toml"
README_PRODUCTS = ("sumrate", "mptcp", "openmptcprouter", "speedify")
"""The columns of the README's table."""
OURS = "sumrate"
STATES = {"yes": "yes", "no": "no", "unknown": "?"}
HEAD = """# Features, compared with others

Each of our `yes` links to the tests that show it. `?` means unknown: the sources below do not
mention it and we have not tested it. How fast each of them is was measured:
[results](results.md).
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
            if key not in products | {"title", "note", "tests", "readme"}:
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
    """The page of the documentation site."""
    sources = [f"- {p['title']}: {p['sources']}." for p in table.products if "sources" in p]
    parts = [HEAD, *lines(table, "docs", root), "", "## Sources", "", *sources]
    return "\n".join(parts) + "\n"


def readme_lines(table: Table) -> list[str]:
    """The README's short table in Markdown."""
    titles = {product["id"]: product["title"] for product in table.products}
    head = ["", *(titles[product] for product in README_PRODUCTS)]
    rows = [
        [row["readme"], *(STATES[row.get(p, "unknown")] for p in README_PRODUCTS)]
        for row in table.features
        if "readme" in row
    ]
    return ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
