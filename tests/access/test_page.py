"""The pages on initial access show commands that exist, and the numbers that they print."""

import csv
import re
import shlex
from pathlib import Path

import pytest

from sumrate.access.errors import AccessError
from sumrate.access.figures import FIGURES, figures_named
from sumrate.access.scenes import SCENES
from sumrate.lab import cli
from sumrate.lab.cli import command_line

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
    scenes = words[words.index("--scene") + 1 : words.index("--compare")]
    told = table(text)
    assert set(told) == set(words[words.index("--compare") + 1 : words.index("--realisations")])
    for curve, (*indices, failures, mini_slots) in told.items():
        jain = [float(found[curve, scene, "jain"]) for scene in scenes]
        assert indices == pytest.approx(jain, abs=WITHIN), curve
        failed = float(found[curve, SCENE, "failure_probability"])
        assert failures == pytest.approx(failed, abs=WITHIN), curve
        length = float(found[curve, SCENE, "mini_slots"])
        assert mini_slots == pytest.approx(length, rel=LENGTH_WITHIN), curve


def test_scenes_of_the_page_exist(repository: Path) -> None:
    words = command(page(repository))
    scenes = words[words.index("--scene") + 1 : words.index("--compare")]
    assert len(scenes) == 4
    assert set(scenes) <= set(SCENES)


PICTURE = re.compile(
    r"^\| ([\w., ]+) \| `sumrate-lab access (figure [\w. ]+)` \| ([\d.]+) \|$", re.M
)


def test_thesis_pictures_have_command_and_minutes(repository: Path) -> None:
    rows = PICTURE.findall((repository / "docs/figures.md").read_text(encoding="utf-8"))
    told = {figure for figures, _, _ in rows for figure in figures.split(", ")}
    assert {"3.1b", "3.6a", "3.7b"} <= told
    for figures, command, minutes in rows:
        _, bound, _ = command_line().parse_args(["access", *command.split()])
        drawn = {one.name for name in bound.args[0] for one in figures_named(name)}
        assert drawn == {one.name for name in figures.split(", ") for one in figures_named(name)}
        seconds = sum(FIGURES[name].seconds for name in drawn)
        assert float(minutes) == pytest.approx(seconds / 60, abs=0.06), command


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("3.6a", ["3.6"]),
        ("3.7", ["3.7a", "3.7b"]),
        ("3.7b", ["3.7b"]),
        ("3.2", ["3.2a"]),
        ("all", list(FIGURES)),
    ],
)
def test_parts_and_groups_of_figures_have_names(name: str, figures: list[str]) -> None:
    assert [figure.name for figure in figures_named(name)] == figures


@pytest.mark.parametrize("name", ["3.7x", "3.1a", "3", "3.", "capturea", ""])
def test_other_names_of_figures_are_refused(name: str) -> None:
    with pytest.raises(AccessError, match="figure must be all or one of"):
        figures_named(name)
