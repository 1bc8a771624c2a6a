"""docs/figures.md names every published figure, every experiment, and commands that exist."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sumrate.access.figures.catalogue import FIGURES
from sumrate.lab.experiment.catalogue import claims
from sumrate.lab.experiment.commands import durations
from sumrate.lab.experiment.load import load, names

ROW = re.compile(r"^\| (.+) \| `sumrate-lab run ([\w -]+)` \| (\d+) \|$", re.MULTILINE)
FIGURE = re.compile(r"(?:Fig\.|Table) ([\d.]+[a-f]?(?: and [\d.]+[a-f]?)?)")
THESIS = "D4"


@dataclass(frozen=True)
class Row:
    """A line of a table of figures."""

    document: str
    figures: tuple[str, ...]
    experiments: tuple[str, ...]
    minutes: int


def rows(text: str) -> Iterator[Row]:
    """Lines of both tables: those of the papers name their document, the thesis's do not."""
    for cells, experiments, minutes in ROW.findall(text):
        first, *rest = (cell.strip() for cell in cells.split("|"))
        paper = re.search(r"D\d", first)
        figures = (rest[0] if paper else first).replace("Table ", "").split(", ")
        yield Row(
            paper[0] if paper else THESIS, tuple(figures), tuple(experiments.split()), int(minutes)
        )


def judged_by() -> dict[str, set[str]]:
    """Claims, and the experiments whose checks judge them."""
    found: dict[str, set[str]] = {}
    for name in names():
        for check in load(name).checks:
            found.setdefault(check.claim, set()).add(name)
    return found


def missing(text: str) -> set[str]:
    """Claims whose figure has no row with an experiment that judges them."""
    judges = judged_by()
    told = {(row.document, figure): row.experiments for row in rows(text) for figure in row.figures}
    found = set()
    for identity, claim in claims().items():
        if identity not in judges or claim["figure"].startswith("Text"):
            continue
        for figure in FIGURE.findall(claim["figure"]):
            for one in figure.split(" and "):
                if not judges[identity] & set(told.get((claim["document"], one), ())):
                    found.add(identity)
    return found


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs/figures.md").read_text(encoding="utf-8")


def test_every_judged_figure_has_its_row(page: str) -> None:
    assert len(list(rows(page))) > 20
    assert not missing(page)


def test_a_figure_without_its_row_is_found(page: str) -> None:
    without = page.replace("`sumrate-lab run files`", "`sumrate-lab run pages`")
    assert "T-4.6b" in missing(without)


def test_every_experiment_is_named_and_exists(page: str) -> None:
    told = {name for row in rows(page) for name in row.experiments}
    code = set(re.findall(r"`([a-z\d]+(?:-[a-z\d]+)*)`", page))
    assert told <= set(names())
    assert set(names()) <= told | code
    assert code <= set(names())


def test_minutes_are_those_of_the_plans(page: str) -> None:
    """Within a tenth, or one minute."""
    for row in rows(page):
        whole = sum(durations(load(name))[0] for name in row.experiments)
        assert row.minutes == pytest.approx(whole, rel=0.1, abs=1.0), row


def test_the_pictures_command_knows_its_figure(page: str) -> None:
    told = re.findall(r"sumrate-lab access figure ([\w.]+)", page)
    assert told
    assert set(told) <= set(FIGURES)
