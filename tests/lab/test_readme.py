"""The README's numbers and picture are those of the results that it keeps."""

import shutil
from pathlib import Path

from sumrate.report import readme

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_says_what_the_results_say() -> None:
    assert readme.main(["--check", "--root", str(ROOT)]) == 0


def test_a_changed_number_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "docs" / "results")
    text = (ROOT / "README.md").read_text()
    begin = text.index(readme.BEGIN)
    planted = text[:begin] + text[begin:].replace("| WiFi alone | ", "| WiFi alone | 9", 1)
    assert planted != text
    (tmp_path / "README.md").write_text(planted)
    assert readme.main(["--check", "--root", str(tmp_path)]) == 1
