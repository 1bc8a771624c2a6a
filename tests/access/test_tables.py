"""The tables of docs/initial-access.md are what the kept results say."""

import re
from pathlib import Path

import pytest

import access_tables


def test_the_document_is_in_step() -> None:
    assert access_tables.main(["--check"]) == 0, "run: python tools/access_tables.py"


def test_a_changed_number_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "initial-access.md"
    text = access_tables.DOCUMENT.read_text(encoding="utf-8")
    path.write_text(text.replace("| 288 |", "| 287 |", 1), encoding="utf-8")
    monkeypatch.setattr(access_tables, "DOCUMENT", path)
    assert access_tables.main(["--check"]) == 1
    assert access_tables.main([]) == 0
    assert path.read_text(encoding="utf-8") == text
    path.write_text(text.replace("<!-- power: end -->", ""), encoding="utf-8")
    assert access_tables.main([]) == 2


def test_pictures_of_the_document_are_kept() -> None:
    text = access_tables.DOCUMENT.read_text(encoding="utf-8")
    found = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(found) == 2
    for path in found:
        assert "<svg" in (access_tables.DOCUMENT.parent / path).read_text(encoding="utf-8")
