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


def test_both_pages_are_in_step(repository: Path) -> None:
    assert features.out_of_step(repository) == {}


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
    row = features.lines(replace(table, features=[known]), "docs", repository)[2]
    place = "../tests/conftest.py#L11"
    assert row == f"| flies | [yes]({place}) [2]({place}) | ? | ? | ? | ? | ? |"
