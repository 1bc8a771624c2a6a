"""What a terminal shows of verdicts and of a run."""

import sys
from pathlib import Path

import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.execute import summary
from sumrate.lab.experiment.kept import SCHEMA, write_kept
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.verdicts import listing
from sumrate.verdict.model import DEPENDS, FAILS, NOT_RUN, Demand, Entry, Finding, Verdict


def demand(statement: str, cause: str) -> Demand:
    return Demand("goal", "P1", statement, "at least 1", "lap", verdict=FAILS, cause=cause)


def test_a_cause_stands_below_its_check_once_and_what_no_check_says_after_them() -> None:
    entry = Entry(
        id="P1",
        document="goal",
        figure="",
        published="",
        claim="",
        experiment="lap",
        command="sumrate-lab run lap",
        verdict=DEPENDS,
        measured="",
        cause="It is late. It is late. And lossy. Nobody looked.",
        results="",
        unmeasured="Nobody looked.",
        fitted="",
        checks=(
            demand("one", "It is late."),
            demand("two", "It is late. And lossy."),
            demand("three", "It is late."),
        ),
    )
    lines = [line.strip() for line in listing([entry]).splitlines()]
    assert [line for line in lines if line.startswith(("-", "because"))] == [
        "- one: does not hold",
        "because: It is late.",
        "- two: does not hold",
        "because: It is late. And lossy.",
        "- three: does not hold",
        "because: Nobody looked.",
    ]


def test_a_part_of_a_run_shows_no_figures_of_what_it_left_out() -> None:
    def finding(statement: str, measured: float | None, expected: str) -> Finding:
        held = None if measured is None else True
        return Finding(statement, "normal", "cubic", "default", measured, expected, held)

    findings = (
        finding("it adds up", 1.0, "at least 0.98"),
        finding("it adds up", None, "at least 0.98"),
        finding("beside it, late", None, ""),
        finding("it is wanted", None, "at least 1"),
    )
    verdict = Verdict("P1", "goal", NOT_RUN, "1", "", "", "", findings)
    lines = summary(load("five-conditions"), [verdict], Path("out"))
    assert lines[1:-1] == [
        "  P1: not measured everywhere",
        "    it adds up: 1 (at least 0.98)",
        "    it is wanted: not measured (at least 1)",
    ]
    lines = summary(load("five-conditions"), [verdict], Path("out"), whole=False)
    assert lines[1:-1] == [
        "  P1: not measured everywhere",
        "    it adds up: 1 (at least 0.98)",
        "    statements of which nothing was measured: 1",
    ]


def test_of_a_part_of_an_experiment_only_what_was_measured_is_shown() -> None:
    def verdict(name: str, measured: float | None) -> Verdict:
        finding = Finding("it is so", "normal", "cubic", "default", measured, "at least 1", None)
        return Verdict(name, "goal", NOT_RUN, "", "", "", "", (finding,))

    found = [verdict("P1", 1.0), verdict("P2", None), verdict("P3", None)]
    lines = summary(load("five-conditions"), found, Path("out"), whole=False)
    assert [line for line in lines if "P2" in line or "P3" in line] == []
    assert "  2 more goals and claims need other conditions or schemes" in lines
    assert any("P1" in line for line in lines)


def test_values_are_medians_of_what_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = []
    for repetition, rate in enumerate((1.0, 2.0, 30.0, 400.0)):
        run = Run("wifi", "normal", "cubic", "default", repetition, 1, void=rate == 400.0)
        run.add("goodput_mbps", rate, "Mbit/s")
        runs.append(run)
    origin = {"schema": SCHEMA, "experiment": "lap", "command": "sumrate-lab run lap"}
    write_kept(tmp_path, origin | {"started": "2026-01-02", "commit": "0" * 40}, runs)
    words = ["sumrate-lab", "values", "lap", "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    assert cli.main() == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "sumrate-lab run lap, 2026-01-02, commit 0000000000"
    assert "goodput_mbps:\n| condition | wifi |\n|---|---|\n| normal | 2 |" in said
    monkeypatch.setattr(sys, "argv", [*words, "--metric", "moon"])
    assert cli.main() == 2
    assert "has no moon; it has goodput_mbps" in capsys.readouterr().err
