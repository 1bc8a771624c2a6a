"""The tables of constants have every constant of the core with its value."""

from pathlib import Path

import pytest

import constants
from constants import Constant


def test_every_constant_is_in_one_table_with_its_value() -> None:
    found = constants.compared()
    assert not found, "\n".join(found)


def test_constants_and_settings_are_found(repository: Path) -> None:
    assert len(constants.constants(repository)) > 40
    assert "copy_margin" in {setting.name for setting in constants.settings(repository)}


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("64 << 10", (65536.0,)),
        ("4 * 14_600", (58400.0,)),
        ("3 * LEAST", (6.0,)),
        ("Duration::from_millis(10)", (0.01,)),
        ("(Duration::from_millis(1), Duration::from_secs(5))", (0.001, 5.0)),
        ("[Self { share: 0.5, allowance: 4 << 20 }]", (0.5, 4194304.0)),
        ("SchedulerKind::default()", None),
        ("UNKNOWN << 1", None),
    ],
)
def test_an_expression_is_evaluated(expression: str, values: constants.Values | None) -> None:
    assert constants.evaluated(expression, {"LEAST": (2.0,)}) == values


def test_a_row_is_read_with_its_unit() -> None:
    rows = "|`A`|1, 5|ms|`a.rs`|why|\n| `B` | 0.5, 4 | share MiB | `b/c.rs` | why |\n"
    assert constants.written(rows) == [
        (("a.rs", "A"), (0.001, 0.005)),
        (("b/c.rs", "B"), (0.5, 4194304.0)),
    ]


def test_what_differs_is_told() -> None:
    code = [Constant("a.rs", "A", (1.0,)), Constant("a.rs", "B", (2.0,))]
    right = [(("a.rs", "A"), (1.0,)), (("a.rs", "B"), (2.0,))]
    assert constants.differences(code, right) == []
    found = constants.differences(code, [right[0], right[0], (("a.rs", "C"), (3.0,))])
    assert found == [
        "a.rs: B = 2 is in no table",
        "a.rs: A has 2 rows",
        "a.rs: C has a row and is not in the code",
    ]
    (wrong,) = constants.differences(code, [right[0], (("a.rs", "B"), (2.5,))])
    assert "B is 2, its row has 2.5" in wrong
