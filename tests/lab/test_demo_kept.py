"""The README's picture is drawn from the demo's kept result."""

import json
import shutil
from pathlib import Path

import pytest

from sumrate.report import demo_kept

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path("docs") / "results"


def test_the_picture_is_of_the_kept_result() -> None:
    assert demo_kept.main(["--check", "--root", str(ROOT)]) == 0


@pytest.mark.parametrize("plant", ["nothing", "dirty", "void"])
def test_a_result_that_must_not_count_is_refused(tmp_path: Path, plant: str) -> None:
    (tmp_path / RESULTS).mkdir(parents=True)
    for file in ("demo.json", "demo.svg"):
        shutil.copy(ROOT / RESULTS / file, tmp_path / RESULTS / file)
    before = (tmp_path / RESULTS / "demo.svg").read_text()
    demo = json.loads((tmp_path / RESULTS / "demo.json").read_text())
    demo["commit"] = "0123abcd" + ("-dirty" if plant == "dirty" else "")
    for entry in demo["schemes"].values():
        entry["void"] = plant == "void"
        entry["longest_stall_ms"] = 1234.0
    (tmp_path / "out" / "demo").mkdir(parents=True)
    (tmp_path / "out" / "demo" / "result.json").write_text(json.dumps(demo))
    taken = plant == "nothing"
    assert demo_kept.main(["--root", str(tmp_path)]) == (0 if taken else 1)
    kept = json.loads((tmp_path / RESULTS / "demo.json").read_text())
    assert (kept["commit"] == "0123abcd") == taken
    if not taken:
        assert (tmp_path / RESULTS / "demo.svg").read_text() == before
    planted = (tmp_path / RESULTS / "demo.svg").read_text() + "<!-- other -->"
    (tmp_path / RESULTS / "demo.svg").write_text(planted)
    assert demo_kept.main(["--check", "--root", str(tmp_path)]) == 1
