"""Figures of users' workloads show every size, page and split that was measured."""

import re
from pathlib import Path

from matplotlib.patches import Rectangle

from sumrate.lab.experiment.durations import add_splits
from sumrate.lab.experiment.load import FOLDER, load
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.store import write
from sumrate.report.lab import read_run, write_report
from sumrate.report.lab.palette import styles
from sumrate.report.lab.summary import summarise
from sumrate.report.lab.workloads import (
    duration_figures,
    file_sizes,
    page_loads,
    split_figures,
)
from tests.report import made_up

ORIGIN = {"commit": "0" * 40, "kernel": "test", "machine": {}, "argv": [], "started": "now"}


def made(scheme: str, condition: str, *metrics: tuple[str, float, str]) -> Run:
    run = Run(scheme, condition, "cubic", "default", 0, 1, detail={"title": scheme})
    for metric in metrics:
        run.add(*metric)
    return run


def files_result(folder: Path) -> Path:
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
    return folder / "files"


def test_sizes_are_in_order_and_every_condition_has_a_panel(tmp_path: Path) -> None:
    summary = summarise(read_run(files_result(tmp_path)))
    assert [c.label for c in file_sizes(summary)] == ["10 KB", "1 MB", "1 GB"]
    looks = styles(scheme.name for scheme in summary.schemes)
    ((figure, said),) = duration_figures(summary, summary.settings, looks)
    assert "last byte" in said
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "line of sight",
        "moving client",
    ]


def test_splits_are_drawn_of_schemes_and_not_of_links_alone(tmp_path: Path) -> None:
    summary = summarise(read_run(files_result(tmp_path)))
    looks = styles(scheme.name for scheme in summary.schemes)
    ((figure, link),) = split_figures(summary, summary.settings, looks)
    assert link == "WiGig"
    assert len(figure.axes) == 2, "Sumrate in two conditions"
    bars = {
        patch.get_x(): patch.get_height()
        for patch in figure.axes[0].patches
        if isinstance(patch, Rectangle)
    }
    assert {x: round(height) for x, height in bars.items()} == {72.0: 67, 12.0: 33}


def test_pages_are_named_with_version_cold_and_warm_apart(tmp_path: Path) -> None:
    experiment = load("pages")
    metrics = [
        (f"onload_msn_{version}_{state}_ms", 500.0, "ms")
        for version in ("h2", "h1")
        for state in ("warm", "cold")
    ]
    runs = [made("sumrate", "mobility", *metrics)]
    write(tmp_path / "pages", experiment, runs, [], ORIGIN)
    summary = summarise(read_run(tmp_path / "pages"))
    for state in ("cold", "warm"):
        found = page_loads(summary, state)
        assert [c.label.split("\n") for c in found] == [["msn", "HTTP/1.1"], ["msn", "HTTP/2"]]
        assert all(state in c.metric for c in found)
    looks = styles(scheme.name for scheme in summary.schemes)
    assert len(list(duration_figures(summary, summary.settings, looks))) == 2


def test_the_report_has_these_figures(tmp_path: Path) -> None:
    folder = files_result(tmp_path)
    output = tmp_path / "report.html"
    write_report([folder], FOLDER / "claims.toml", output)
    text = made_up.text_of(output)
    assert len(re.findall("<figure>", text)) == 2
    assert "to its last byte" in text
    assert "came by WiGig" in text
    assert "<summary>Every value</summary>" in text
