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

from templates import rendered

DATA = "docs/features.toml"
README_PRODUCTS = ("sumrate", "mptcp", "openmptcprouter", "speedify")
"""The columns of the README's table."""
OURS = "sumrate"
STATES = {"yes": "yes", "no": "no", "unknown": "?"}


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


def rows(table: Table, folder: str, root: Path, notes: list[str]) -> list[list[str]]:
    """The cells of every feature, for a page in this folder of the repository at `root`."""
    found = []
    for feature in table.features:
        cells = [STATES[feature.get(p["id"], "unknown")] for p in table.products]
        if "tests" in feature:
            cells[0] = links(feature["tests"], folder, root)
        mark = f" ({notes.index(feature['note']) + 1})" if "note" in feature else ""
        found.append([feature["title"] + mark, *cells])
    return found


def page(table: Table, root: Path) -> str:
    """The page of the documentation site."""
    notes = [feature["note"] for feature in table.features if "note" in feature]
    cells = rows(table, "docs", root, notes)
    return rendered("features.md.j2", "features", table.products, cells, notes)


def readme_lines(table: Table) -> list[str]:
    """The README's short table in Markdown."""
    shown = {product["id"]: product for product in table.products}
    products = [shown[name] for name in README_PRODUCTS]
    cells = [
        [row["readme"], *(STATES[row.get(name, "unknown")] for name in README_PRODUCTS)]
        for row in table.features
        if "readme" in row
    ]
    return rendered("features.md.j2", "table", products, cells).splitlines()
