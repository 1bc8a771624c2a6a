"""The documents stay short enough to be read."""

import subprocess
from pathlib import Path

import pytest

import site_hooks

README_WORDS = 900
RESULTS_WORDS = 1_500
LIMITATIONS_WORDS = 520
"""One screen."""
ALL_WORDS = 40_000
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def written(repository: Path) -> list[Path]:
    """Every committed page that somebody wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "docs/*.md", *ROOT_PAGES],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    return [repository / line for line in listed.stdout.splitlines()]


def words(path: Path) -> int:
    """As `wc -w` counts them."""
    return len(path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("page", "most"),
    [
        ("README.md", README_WORDS),
        ("docs/results.md", RESULTS_WORDS),
        ("docs/limitations.md", LIMITATIONS_WORDS),
    ],
)
def test_a_page_keeps_to_its_words(repository: Path, page: str, most: int) -> None:
    assert words(repository / page) <= most


def test_all_pages_together_can_be_read(repository: Path) -> None:
    counted = {str(p.relative_to(repository)): words(p) for p in written(repository)}
    assert len(counted) > 30
    longest = sorted(counted.items(), key=lambda item: -item[1])[:5]
    assert sum(counted.values()) <= ALL_WORDS, f"the longest: {longest}"


def test_no_generated_page_is_committed(repository: Path) -> None:
    committed = {str(p.relative_to(repository / "docs")) for p in written(repository)
                 if p.is_relative_to(repository / "docs")}  # fmt: skip
    assert len(committed) > 25
    assert not committed & site_hooks.GENERATED.keys()
