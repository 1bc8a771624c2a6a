"""The table of docs/initial-access.md is what the command below it prints."""

import csv
import re
import shlex
from pathlib import Path

import pytest

from sumrate.access.scenes import SCENES
from sumrate.lab import cli

WITHIN = 0.05
"""Of an index or a share: the page has 400 realisations, this test fewer."""
LENGTH_WITHIN = 0.1
"""Share by which mini-slots may differ."""
SCENE = "office-aligned"


def page(repository: Path) -> str:
    return (repository / "docs/initial-access.md").read_text(encoding="utf-8")


def table(text: str) -> dict[str, list[float]]:
    """Protocols with their numbers."""
    found = re.search(r"<!-- sweep: begin -->\n(.*?)<!-- sweep: end -->", text, re.DOTALL)
    assert found
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", found[1], re.MULTILINE)
    return {name: [float(cell) for cell in cells.split("|")] for name, cells in rows}


def command(text: str) -> list[str]:
    """The words of the page's sweep of all protocols."""
    found = re.search(r"^(sumrate-lab access sweep --blockage 0\.9 .*?[^\\])\n```", text,
                      re.MULTILINE | re.DOTALL)  # fmt: skip
    assert found
    return shlex.split(found[1].replace("\\\n", " "))


def test_the_table_is_what_the_command_finds(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page(repository)
    output = tmp_path / "sweep.csv"
    words = [*command(text), "--realisations", "30", "--output", str(output)]
    monkeypatch.setattr("sys.argv", words)
    assert cli.main() == 0
    found = {}
    with output.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["curve"], row["panel"], row["metric"]] = row["mean"]
    scenes = words[words.index("--scene") + 1 : words.index("--curve")]
    told = table(text)
    assert set(told) == set(words[words.index("--curve") + 1 : words.index("--realisations")])
    for curve, (*indices, failures, mini_slots) in told.items():
        jain = [float(found[curve, scene, "jain"]) for scene in scenes]
        assert indices == pytest.approx(jain, abs=WITHIN), curve
        failed = float(found[curve, SCENE, "failure_probability"])
        assert failures == pytest.approx(failed, abs=WITHIN), curve
        length = float(found[curve, SCENE, "mini_slots"])
        assert mini_slots == pytest.approx(length, rel=LENGTH_WITHIN), curve


def test_scenes_of_the_page_exist(repository: Path) -> None:
    words = command(page(repository))
    scenes = words[words.index("--scene") + 1 : words.index("--curve")]
    assert len(scenes) == 4
    assert set(scenes) <= set(SCENES)
