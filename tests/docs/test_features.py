"""Each feature that the table says we have is shown by a test that exists."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import features

KNOWN = "tests/conftest.py::repository"


def test_every_yes_has_its_test(repository: Path) -> None:
    table = features.load(repository)
    assert features.findings(table, repository) == []
    states = [feature["sumrate"] for feature in table.features]
    assert "yes" in states
    assert len(states) > 20


def test_the_readme_has_the_short_table(repository: Path) -> None:
    table = features.load(repository)
    wanted = features.readme_lines(table)
    assert len(wanted) == 10, "eight features below the head"
    text = (repository / "README.md").read_text(encoding="utf-8")
    assert "\n".join(wanted) in text, "the README should have:\n" + "\n".join(wanted)


@pytest.mark.parametrize(
    ("planted", "says"),
    [
        ({"sumrate": "yes"}, "names its tests"),
        ({"sumrate": "yes", "tests": []}, "names its tests"),
        ({"sumrate": "yes", "tests": ["tests/none.py::test_x"]}, "there is no"),
        ({"sumrate": "yes", "tests": [KNOWN, "tests/conftest.py::test_x"]}, "no test test_x"),
        ({"sumrate": "yes", "test": KNOWN}, "no product test"),
        ({"sumrate": "no", "tests": [KNOWN]}, "is not there"),
        ({"sumrate": "perhaps"}, "not one of"),
        ({"sumrate": "no", "linksys": "yes"}, "no product linksys"),
    ],
)
def test_a_claim_without_its_test_is_seen(
    repository: Path, planted: dict[str, Any], says: str
) -> None:
    table = features.load(repository)
    wrong = replace(table, features=[{"title": "flies", **planted}])
    assert says in "".join(features.findings(wrong, repository))


def test_what_lands_is_switched_on_in_one_place(repository: Path) -> None:
    table = features.load(repository)
    known = {"title": "flies", "sumrate": "yes", "tests": [KNOWN, KNOWN]}
    (row,) = features.rows(replace(table, features=[known]), "docs", repository, [])
    line = features.line_of(repository / "tests/conftest.py", "repository")
    place = f"../tests/conftest.py#L{line}"
    assert row == ["flies", f"[yes]({place}) [2]({place})", *"?????"]
