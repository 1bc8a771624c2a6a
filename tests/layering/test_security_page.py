"""Each test that docs/security.md names exists."""

import re
from pathlib import Path

NAME = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+){2,})`")
WORDS = {"no_new_privs"}


def missing(page: str, sources: str) -> list[str]:
    """Names of the page that no source defines as a function."""
    names = [name for name in NAME.findall(page) if name not in WORDS]
    return [name for name in names if not re.search(rf"\b(?:fn|def) {name}\b", sources)]


def test_every_named_test_exists(repository: Path) -> None:
    page = (repository / "docs" / "security.md").read_text(encoding="utf-8")
    files = [*(repository / "crates").rglob("*.rs"), *(repository / "tests").rglob("*.py")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(NAME.findall(page)) > 60
    assert missing(page, sources) == []


def test_a_claim_without_its_test_is_seen() -> None:
    page = "| a | `one_test_here`, `another_test_gone` |"
    assert missing(page, "fn one_test_here() {}") == ["another_test_gone"]
