"""Where the axis of bars ends."""

from pathlib import Path

import numpy as np
import pytest

from sumrate.report.lab.bars import axis_limit, bar_figures
from sumrate.report.lab.palette import styles
from sumrate.report.lab.read import read_run
from sumrate.report.lab.summary import summarise
from tests.report.pictures import problems


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


def test_bars_can_be_read_and_their_axis_leaves_the_headings_free(folder: Path) -> None:
    summary = summarise(read_run(folder))
    looks = styles(scheme.name for scheme in summary.schemes)
    (drawn,) = bar_figures(summary, ("longest_stall_ms",), summary.settings, looks)
    assert not problems(drawn)
    (axes,) = drawn.axes
    assert not axes.spines["left"].get_visible()
    assert axes.get_xlabel().endswith("less is better")
    standing = [line for line in axes.get_lines() if not np.asarray(line.get_xdata()).any()]
    assert len(standing) >= len(summary.settings)
