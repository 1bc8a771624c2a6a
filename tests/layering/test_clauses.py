"""Each clause of the protocol is cited by the code that implements it and by a test."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLAUSE = re.compile(r"^\*\*(F\d+b?) ", re.MULTILINE)


def clauses(text: str) -> list[str]:
    """The clauses that a protocol page defines, in its order."""
    return CLAUSE.findall(text)


def uncited(names: list[str], sources: list[str]) -> list[str]:
    """Clauses that no source cites in a comment."""
    comments = "\n".join(line for source in sources for line in source.splitlines() if "//" in line)
    return [name for name in names if not re.search(rf"\b{name}\b", comments)]


def untested(names: list[str], sources: list[str]) -> list[str]:
    """Clauses that no test function is named after."""
    tests = re.findall(r"fn ((?:f\d+b?_)+)", "\n".join(sources))
    tested = {part.upper() for test in tests for part in test.strip("_").split("_")}
    return [name for name in names if name.upper() not in tested]


def test_every_clause_is_cited_and_tested() -> None:
    names = clauses((ROOT / "docs" / "protocol.md").read_text())
    files = sorted((ROOT / "crates").glob("fbdt*/**/*.rs"))
    sources = [path.read_text() for path in files]
    assert len(names) >= 15
    assert uncited(names, sources) == []
    assert untested(names, sources) == []


def test_a_missing_citation_or_test_is_found() -> None:
    source = "// F1 here\nfn f1_works() {}\nfn f3b_works() {}"
    assert uncited(["F1", "F2", "F3b"], [source]) == ["F2", "F3b"]
    assert untested(["F1", "F2", "F3B"], [source]) == ["F2"]
