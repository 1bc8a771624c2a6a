"""Checks that are written once for many rows are judged as if each was written by itself."""

from pathlib import Path

import pytest

from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.model import Check, Selection

FILE = """schema = 1
name = "trial"
title = "Trial"
question = "Is it?"
method = "bench"
seconds = 1.0
congestion_control = ["cubic", "bbr"]

[[links]]
name = "wifi"
title = "WiFi"
rate_mbps = 100.0
rtt_ms = 3.0

[[schemes]]
kind = "alone"

[[schemes]]
kind = "sumrate"

[[conditions]]
name = "good"
title = "good"

[[conditions]]
name = "bad"
title = "bad"

[each]
control = [
  { control = "cubic", goal = "P1", why = "because" },
  { control = "bbr", goal = "P2", why = "" },
]
state = [
  { state = "good" },
  { state = "bad" },
]

[[checks]]
each = ["control", "state"]
goal = "{goal}"
statement = "{control} is {state}"
value.metric = "sum_ratio"
value.scheme = "sumrate"
value.condition = "{state}"
value.congestion_control = "{control}"
at_least = 0.9
cause = "{why}"
causes.bad = "{control} {why}"

[[checks]]
goal = "P1"
statement = "a check of its own {with braces}"
value = { metric = "sum_ratio", scheme = "sumrate", condition = "good" }
reported = true
"""


def read(folder: Path, text: str) -> tuple[Check, ...]:
    (folder / "trial.toml").write_text(text, encoding="utf-8")
    return load("trial", folder).checks


def test_every_combination_of_rows_is_a_check(tmp_path: Path) -> None:
    checks = read(tmp_path, FILE)
    assert [check.statement for check in checks] == [
        "cubic is good",
        "cubic is bad",
        "bbr is good",
        "bbr is bad",
        "a check of its own {with braces}",
    ]
    value = Selection("sum_ratio", "sumrate", condition="bad", congestion_control="cubic")
    assert checks[1] == Check(
        statement="cubic is bad", value=value, goal="P1", at_least=0.9, cause="because",
        causes={"bad": "cubic because"},
    )  # fmt: skip
    assert (checks[3].goal, checks[3].cause) == ("P2", "")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('["control", "state"]', '["control", "stat"]', 40, "which `each` does not have; it has"),
        ('each = ["control", "state"]', 'each = ["state"]', 30, "no check is for each `control`"),
        ("{control} is", "{contrl} is", 42, "is in none of its rows"),
        ("{state}", "good", 34, "all would be the same"),
        ('{ state = "bad" }', '{ stat = "bad" }', 34, "have the same words"),
        ('{ state = "bad" }', '{ state = "worse" }', 36, "is no condition"),
        ('control = "bbr"', 'control = "bbrr"', 32, "did you mean bbr"),
        ('{ state = "bad" }', "{ state = 1 }", 29, "Expected `str`"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in FILE
    with pytest.raises(ExperimentError) as refused:
        read(tmp_path, FILE.replace(old, new))
    assert said in str(refused.value)
    assert f"trial.toml:{line}: " in str(refused.value), str(refused.value)
