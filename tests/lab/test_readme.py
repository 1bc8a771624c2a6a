"""The README's numbers and picture are those of the results that it keeps."""

import json
import shutil
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("plant", ["nothing", "dirty", "void", "few"])
def test_a_result_that_must_not_count_is_refused(tmp_path: Path, plant: str) -> None:
    before = (ROOT / "README.md").read_text().replace("| WiFi alone | ", "| WiFi alone | 9", 1)
    (tmp_path / "README.md").write_text(before)
    demo = json.loads((ROOT / "docs" / "results" / "demo.json").read_text())
    demo["commit"] = "0123abcd" + ("-dirty" if plant == "dirty" else "")
    for entry in demo["schemes"].values():
        entry["void"] = plant == "void"
    bench = json.loads((ROOT / "docs" / "results" / "bench.json").read_text())
    bench["commit"] = "0123abcd"
    for condition in bench["conditions"].values():
        condition |= {"repetitions": [{}] * 5, "void_repetitions": 1 if plant == "few" else 0}
    for name, document in (("demo", demo), ("bench", bench)):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "result.json").write_text(json.dumps(document))
    taken = plant == "nothing"
    assert readme.main(["--root", str(tmp_path)]) == (0 if taken else 1)
    assert ((tmp_path / "README.md").read_text() != before) == taken
