"""The README's numbers and picture are those of the results that it keeps."""

import json
import re
import shutil
from pathlib import Path

import pytest

from sumrate.report import readme

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_says_what_the_results_say() -> None:
    assert readme.main(["--check", "--root", str(ROOT)]) == 0


def test_the_readme_names_the_workloads_of_which_no_result_is_kept() -> None:
    text = (ROOT / "README.md").read_text()
    row = next(line for line in text.splitlines() if "`sumrate-lab run files calls" in line)
    command = re.search(r"`sumrate-lab run ([a-z -]+)`", row)
    assert command is not None
    kept = ROOT / "docs" / "results" / "lab"
    lacking = [name for name in command[1].split() if not (kept / name).is_dir()]
    names = ", ".join(f"`{name}`" for name in lacking)
    assert (f"no result of {names} is kept yet" in row) if lacking else "is kept yet" not in row


def test_a_changed_number_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "docs" / "results")
    text = (ROOT / "README.md").read_text()
    begin = text.index(readme.BEGIN)
    planted = text[:begin] + text[begin:].replace("| WiFi alone | ", "| WiFi alone | 9", 1)
    assert planted != text
    (tmp_path / "README.md").write_text(planted)
    assert readme.main(["--check", "--root", str(tmp_path)]) == 1


@pytest.mark.parametrize("plant", ["nothing", "dirty", "void"])
def test_a_result_that_must_not_count_is_refused(tmp_path: Path, plant: str) -> None:
    before = (ROOT / "README.md").read_text().replace("| WiFi alone | ", "| WiFi alone | 9", 1)
    (tmp_path / "README.md").write_text(before)
    (tmp_path / "docs" / "results").mkdir(parents=True)
    kept = (ROOT / "docs" / "results" / "demo.json").read_text()
    (tmp_path / "docs" / "results" / "demo.json").write_text(kept)
    demo = json.loads(kept)
    demo["commit"] = "0123abcd" + ("-dirty" if plant == "dirty" else "")
    for entry in demo["schemes"].values():
        entry["void"] = plant == "void"
    (tmp_path / "out" / "demo").mkdir(parents=True)
    (tmp_path / "out" / "demo" / "result.json").write_text(json.dumps(demo))
    taken = plant == "nothing"
    assert readme.main(["--root", str(tmp_path)]) == (0 if taken else 1)
    assert ((tmp_path / "README.md").read_text() != before) == taken
