"""The table of performance goals, and the documents that repeat it."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sumrate.lab.experiment.goals import document, measured_by, rows, span, table
from sumrate.lab.experiment.judge import judge
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.record import Run
from sumrate.lab.programs import (
    REPOSITORY,
    RUN_FOLDER,
    binary_folder,
    target_folder,
    without_machine_paths,
)
from sumrate.verdict.model import together

SCHEMA = "python/sumrate/lab/schemas/lab-goals.v1.json"
GOALS = ["P1", "P2", "P3", "P4", "P5", "P5b", "P6", "P7", "P8", "P9", "P10"]
VALUES = {"sumrate-plain": 900.0, "together": 1000.0, "parallel": 1000.0, "aggligator": 300.0,
          "sumrate": 500.0, "tls-pump": 800.0, "mptcp": 700.0, "sumrate-plain-two-ended": 890.0,
          "sumrate-plain-thesis": 200.0, "tquic": 1.0}  # fmt: skip


def unshaped(void: Collection[tuple[str, int]] = ()) -> list[Run]:
    found = []
    for scheme, rate in VALUES.items():
        for repetition in range(5):
            late = (scheme, repetition) in void
            run = Run(scheme, "unshaped", "cubic", "default", repetition, 1, late)
            run.add("goodput_mbps", rate, "Mbit/s")
            run.add("cpu_s_per_gb", 1.5, "s/GB")
            run.add("kernel_cpu_s_per_gb", 1.0, "s/GB")
            found.append(run)
    return found


def keep(results: Path, runs: list[Run]) -> Path:
    folder = results / "unshaped"
    folder.mkdir(exist_ok=True)
    found: list[dict[str, Any]] = [v.document() for v in judge(load("unshaped"), runs)]
    (folder / "verdicts.json").write_text(json.dumps(found))
    manifest: dict[str, Any] = {"commit": "0123", "kernel": "6.18", "repetitions": 5}
    manifest |= {"started": "2026-01-02T03:04:05+00:00", "void_runs": 0, "runs": []}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of one experiment only."""
    return keep(tmp_path, unshaped())


def test_every_goal_has_a_row_and_an_experiment(tmp_path: Path) -> None:
    found = [row for row in rows(tmp_path) if row.id.startswith("P")]
    assert list(dict.fromkeys(row.id for row in found)) == GOALS
    assert {row.experiment for row in found} == set(measured_by())
    assert {row.verdict for row in found} == {"not-run"}


def test_measured_goals_are_reached_or_missed(results: Path) -> None:
    found = {row.statement: row for row in rows(results) if row.id == "P4"}
    plain, one, *spread, kernel, peer, tls = [*found.values()][:7]
    figures = [*found.values()][7:]
    assert (plain.verdict, plain.measured["sumrate"]) == ("holds", (0.9, 0.9))
    assert (one.verdict, one.measured["sumrate"]) == ("holds", (0.9, 0.9))
    assert {row.verdict for row in (*spread, kernel)} == {"reported"}
    assert (peer.verdict, peer.measured["sumrate"]) == ("fails", (3.0, 3.0))
    assert peer.missed_in == ("unshaped: 3",)
    assert (tls.verdict, tls.limit) == ("fails", "at least 0.8")
    assert {row.verdict for row in figures} == {"reported"}
    encrypted = next(row for row in figures if "encrypted" in row.statement)
    assert set(encrypted.measured) == {"sumrate", "mptcp", "aggligator", "tquic"}


def test_the_table_says_what_was_measured(results: Path) -> None:
    text = table([row for row in rows(results) if row.id == "P4"])
    assert "missed in unshaped: 3" in text
    assert "at least 0.8         reached" in text
    whole = document(rows(results), results)
    schema = json.loads((REPOSITORY / SCHEMA).read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(json.dumps(whole)), schema)
    origin = whole["experiments"]["unshaped"]
    assert (origin["commit"], origin["kernel"], origin["repetitions"]) == ("0123", "6.18", 5)


def test_a_range_is_shown_as_one() -> None:
    assert [span(None), span((0.98, 0.98)), span((0.5, 1.0))] == ["-", "0.98", "0.5 to 1"]


@pytest.mark.parametrize(
    ("verdicts", "of", "one"),
    [
        ([], 1, "not-run"),
        (["holds"], 1, "holds"),
        (["holds"], 2, "not-run"),
        (["holds", "fails"], 2, "depends"),
        (["fails", "fails"], 2, "fails"),
        (["fails"], 2, "fails"),
        (["fails", "not-run"], 2, "fails"),
        (["depends"], 2, "depends"),
        (["holds", "not-run"], 2, "not-run"),
        (["depends", "holds"], 2, "depends"),
        (["holds", "reported"], 1, "holds"),
        (["fails", "reported"], 1, "fails"),
        (["reported"], 1, "not-run"),
        (["reported", "not-run"], 0, "reported"),
        ([], 0, "not-run"),
    ],
)
def test_experiments_about_one_claim_give_one_verdict(
    verdicts: list[str], of: int, one: str
) -> None:
    assert together(verdicts, of=of) == one


def test_results_name_no_place_of_this_machine() -> None:
    kept = without_machine_paths(
        {
            "argv": [f"{REPOSITORY}/python/sumrate/lab/__main__.py"],
            "runs": [{"command": f"{binary_folder()}/sumrate bench @{RUN_FOLDER}/run/sumrate.link"},
                     {"command": f"{target_folder()}/peers/bin/agg-speed client"}],
        }
    )  # fmt: skip
    assert kept["argv"] == ["python/sumrate/lab/__main__.py"]
    assert kept["runs"][0]["command"] == "target/release/sumrate bench @run/sumrate.link"
    assert kept["runs"][1]["command"] == "target/peers/bin/agg-speed client"


def test_void_runs_are_said_wherever_the_value_is(tmp_path: Path) -> None:
    late = [("sumrate-plain", 0), ("sumrate-plain", 4), ("mptcp", 1)]
    results = keep(tmp_path, unshaped(late))
    plain, *_, kernel, peer, tls = [row for row in rows(results) if row.id == "P4"][:7]
    assert (plain.found(), peer.missed_in) == (
        "0.9 (3 of 5 repetitions)",
        ("unshaped: 3 (3 of 5 repetitions)",),
    )
    assert (kernel.found(), tls.few(), tls.few("mptcp")) == (
        "0.7 (4 of 5 repetitions)",
        "",
        "4 of 5 repetitions",
    )
    text = table([plain, tls])
    assert "rests on 3 of 5 repetitions (measured); 4 of 5 repetitions (kernel MPTCP)\n" in text
    assert "rests on 4 of 5 repetitions (kernel MPTCP)\n" in text
    whole = json.loads(json.dumps(document([plain], results)))
    jsonschema.validate(whole, json.loads((REPOSITORY / SCHEMA).read_text(encoding="utf-8")))
    (goal,) = whole["goals"]
    assert (goal["goal"], goal["counted"]["sumrate-plain"], goal["repetitions"]) == (
        "P4",
        [3, 3],
        5,
    )
