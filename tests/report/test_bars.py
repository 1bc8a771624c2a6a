"""Where the axis of bars ends."""

import pytest

from sumrate.report.lab.bars import axis_limit


@pytest.mark.parametrize(
    ("highs", "end"),
    [
        ([1.0, 2.0, 3.0], 3.0),
        ([1.0, 1.0, 1.0, 1.0, 50.0], 1.0),
        ([1.0, 1.0, 50.0], 1.0),
        ([0.0, 0.0, 0.0, 0.0, 0.005, 0.1, 0.3, 0.7], 0.7),
        ([0.001, 0.001, 0.001, 0.7, 0.7], 0.7),
        ([0.0, 0.0], 0.0),
        ([-2.0, -1.0], -1.0),
    ],
    ids=[
        "alike",
        "one far beyond",
        "one of three",
        "many without any",
        "two of five",
        "none",
        "negative",
    ],
)
def test_only_a_few_values_far_beyond_the_others_are_cut(highs: list[float], end: float) -> None:
    assert axis_limit(highs) == end
