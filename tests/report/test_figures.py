"""Figures of a result show its medians, sizes and shares."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from sumrate.lab.experiment.durations import add_splits
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.store import write
from sumrate.report.lab.canvas import drawing
from sumrate.report.lab.figures import (
    axis_limit,
    dot_figures,
    dot_rows,
    duration_rows,
    families,
    split_figure,
    sweep_figure,
    time_figure,
)
from sumrate.report.lab.palette import styles
from sumrate.report.lab.result import Result, read_result
from sumrate.verdict.metrics import find
from tests.report.pictures import problems, words

ORIGIN = {"commit": "0" * 40, "kernel": "test", "machine": {}, "argv": [], "started": "now"}


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
)
def test_only_few_far_values_are_cut(highs: list[float], end: float) -> None:
    assert axis_limit(highs) == end


def test_dots_are_medians_and_can_be_read(folder: Path) -> None:
    result = read_result(folder)
    looks = styles(scheme.name for scheme in result.schemes)
    metrics = [find("goodput_mbps"), find("longest_stall_ms")]
    with drawing():
        (drawn,) = dot_figures(result, metrics, dot_rows(result, metrics, result.settings), looks)
        assert not problems(drawn)
    dots = [line for line in drawn.axes[0].get_lines() if line.get_marker() == "o"]
    own = [result.spreads["goodput_mbps", setting, "sumrate"].median for setting in result.settings]
    assert np.asarray(dots[0].get_xdata()).tolist() == pytest.approx(own)
    assert drawn.axes[1].get_xlabel().endswith("less is better")
    assert "Normal" in words(drawn)


def test_strips_show_when_a_link_is_dark(folder: Path) -> None:
    result = read_result(folder)
    with drawing():
        drawn = time_figure(result, result.settings, styles(s.name for s in result.schemes))
    assert len(drawn.axes) == 4 * len(result.settings)
    assert any("hatched: WiGig dark" in text for text in words(drawn))


def made(scheme: str, condition: str, *metrics: tuple[str, float, str]) -> Run:
    run = Run(scheme, condition, "cubic", "default", 0, 1, detail={"title": f"{scheme}!"})
    for metric in metrics:
        run.add(*metric)
    return run


def files_result(folder: Path) -> Result:
    experiment = load("files")
    runs = [
        made(
            scheme,
            condition,
            ("time_1MB_ms", 30.0, "ms"),
            ("time_10KB_ms", 10.0, "ms"),
            ("time_1GB_ms", 5000.0, "ms"),
            *(("wigig_share", share, "ratio") for share in (0.75, 0.8, 0.2)),
        )
        for scheme in ("wifi", "wigig", "sumrate")
        for condition in ("los", "mobility")
    ]
    add_splits(experiment, runs)
    write(folder / "files", experiment, runs, [], ORIGIN)
    return read_result(folder / "files")


def test_sizes_are_rows_in_ascending_order(tmp_path: Path) -> None:
    result = files_result(tmp_path)
    ((kind, rows),) = duration_rows(result, result.settings).items()
    assert kind == "time of a download"
    assert [row.words for row in rows] == [
        f"{size}, {condition}"
        for condition in ("line of sight", "moving client")
        for size in ("10 KB", "1 MB", "1 GB")
    ]


def test_splits_are_drawn_without_links_alone(tmp_path: Path) -> None:
    result = files_result(tmp_path)
    with drawing():
        figure = split_figure(
            result, "wigig", result.settings, styles(scheme.name for scheme in result.schemes)
        )
    assert len(figure.axes) == 2, "Sumrate in two conditions"
    bars = {
        patch.get_x(): round(patch.get_height())
        for patch in figure.axes[0].patches
        if isinstance(patch, Rectangle) and patch.get_height()
    }
    assert bars == {72.0: 67, 12.0: 33}


def test_pages_loaded_cold_and_warm_are_apart(tmp_path: Path) -> None:
    metrics = [
        (f"onload_msn_{version}_{state}_ms", 500.0, "ms")
        for version in ("h2", "h1")
        for state in ("warm", "cold")
    ]
    write(tmp_path / "pages", load("pages"), [made("sumrate", "mobility", *metrics)], [], ORIGIN)
    result = read_result(tmp_path / "pages")
    found = duration_rows(result, result.settings)
    assert [len(rows) for rows in found.values()] == [2, 2]
    assert [row.words for row in next(iter(found.values()))] == [
        "msn h1, moving client",
        "msn h2, moving client",
    ]


def test_three_sizes_are_a_line_of_medians(tmp_path: Path) -> None:
    sizes = {"1M": 0.3, "16K": 0.1, "256K": 0.2}
    runs = [
        made(f"windows-{size}", "normal", ("sum_ratio", value, "ratio"))
        for size, value in sizes.items()
    ]
    runs += [made(f"pair-{n}K", "normal", ("sum_ratio", 1.0, "ratio")) for n in (1, 2)]
    runs.append(made("sumrate", "normal", ("sum_ratio", 0.9, "ratio")))
    write(tmp_path / "windows", load("windows"), runs, [], ORIGIN)
    result = read_result(tmp_path / "windows")
    ((title, family),) = families(result).items()
    assert title == "windows-N!"
    assert list(family) == [16 << 10, 256 << 10, 1 << 20]
    with drawing():
        figure = sweep_figure(result, find("sum_ratio"), result.settings)
    line, level = figure.axes[0].get_lines()
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert np.asarray(level.get_ydata()).tolist() == pytest.approx([0.9, 0.9])
