"""The rules F1 to F19: where each is described, its code and its tests.

A rule is described in docs/wire.md or docs/sender.md: a paragraph that begins with its number and
name in bold. Its home is the file of the product whose module documentation names it in the first
line, in parentheses: exactly one. Other files cite it in comments. A test of a rule begins with its
number: `fn f6_f10_...`. The table of all is a page of the documentation site, written when the site
is built.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from templates import rendered

PAGES = ("wire", "sender")
PRODUCT = ("fbdt", "fbdt-baselines", "fbdt-coupling", "fbdt-proto", "fbdt-units", "fbdt-wire")
"""Crates whose `src` has the homes."""
DEFINED = re.compile(r"^\*\*(F\d+b?) ([^*]+?)\.?\*\*", re.MULTILINE)
NUMBER = re.compile(r"\bF\d+b?\b")
TEST = re.compile(r"\bfn ((?:f\d+b?_)+)(\w+)\(")


@dataclass
class Rule:
    """A rule, and what cites it; paths are relative to the repository."""

    name: str
    title: str
    page: str
    homes: list[str] = field(default_factory=list)
    citing: list[str] = field(default_factory=list)
    """Other files that cite it in comments."""
    tests: list[tuple[str, str]] = field(default_factory=list)
    """Files and functions."""


def defined(text: str, page: str) -> list[Rule]:
    """The rules that a page describes, in its order."""
    return [Rule(name, title, page) for name, title in DEFINED.findall(text)]


def is_product(path: str) -> bool:
    """Whether a Rust file may be a rule's home."""
    crates, crate, folder, *rest = path.split("/")
    is_test = bool(rest) and re.search(r"(^|_)tests?\.rs$|^testing\.rs$", rest[-1])
    return crates == "crates" and crate in PRODUCT and folder == "src" and not is_test


def first_line(source: str) -> str:
    """The first line of a file's module documentation."""
    line = source.partition("\n")[0]
    return line if line.startswith("//!") else ""


def cite(rules: list[Rule], path: str, source: str) -> None:
    """Enters what a Rust file has to do with each rule."""
    own = set(NUMBER.findall(first_line(source))) if is_product(path) else set()
    comments = "\n".join(line[line.index("//") :] for line in source.splitlines() if "//" in line)
    cited = set(NUMBER.findall(comments))
    tested = [(numbers.upper().split("_"), f"{numbers}{rest}")
              for numbers, rest in TEST.findall(source)]  # fmt: skip
    for rule in rules:
        if rule.name in own:
            rule.homes.append(path)
        elif rule.name in cited:
            rule.citing.append(path)
        rule.tests += [(path, name) for numbers, name in tested if rule.name.upper() in numbers]


def load(root: Path) -> list[Rule]:
    """Every rule, by number, with what cites it."""
    rules: list[Rule] = []
    for page in PAGES:
        rules += defined((root / f"docs/{page}.md").read_text(encoding="utf-8"), page)
    rules.sort(key=lambda rule: (int(re.sub(r"\D", "", rule.name)), rule.name))
    for path in sorted((root / "crates").glob("fbdt*/**/*.rs")):
        cite(rules, str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    return rules


def findings(rules: list[Rule]) -> list[str]:
    """What is wrong: rules described twice, without exactly one home, or without a test."""
    names = [rule.name for rule in rules]
    found = [f"{name} is described {names.count(name)} times"
             for name in dict.fromkeys(names) if names.count(name) > 1]  # fmt: skip
    for rule in rules:
        if len(rule.homes) != 1:
            homes = ", ".join(rule.homes) or "no file"
            found.append(f"{rule.name} is in the first line of {homes}; it needs exactly one home")
        if not rule.tests:
            found.append(f"{rule.name}: no test's name begins with {rule.name.lower()}_")
    return found


def source_link(path: str) -> str:
    """A link to a file from the page `reference/rules.md`."""
    return f"[`{path.removeprefix('crates/')}`](../../{path})"


def sentence(name: str) -> str:
    """A test's name as words, without the rules in front."""
    return re.sub(r"^(?:f\d+b?_(?:to_f\d+b?_)?)+", "", name).replace("_", " ")


def page(rules: list[Rule]) -> str:
    """The table and, below it, each rule's tests as sentences."""
    return rendered("rules.md.j2", "rules", rules, source=source_link, sentence=sentence)
