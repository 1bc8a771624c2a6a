import csv
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sumrate.access.equations import exact_failure_probability
from sumrate.access.figures import FIGURES, Effort, cells
from sumrate.access.figures.table import QUICK
from sumrate.access.tasks import evaluate
from sumrate.lab import cli
from sumrate.lab.programs import REPOSITORY
from sumrate.report.lab.palette import STYLES

TINY = Effort(8, 64)
SCHEMAS = REPOSITORY / "docs" / "schemas"


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "access", *words])
    return cli.main()


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What was printed, which is as its schema says."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    name = found["schema"].removeprefix("sumrate.")
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema)
    return found


def test_mini_slots_answer_agrees_with_the_exact_formula(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "run --protocol mini-slots --good-beams 6 --clients 16 --mini-slots 82 --capture off "
        "--rounds 20000 --seed 3 --json"
    )
    assert command(monkeypatch, *words.split()) == 0
    found = answer(capsys)
    exact = exact_failure_probability(6, 16, 82)
    assert abs(found["failure_probability"] - exact) <= 3 * found["standard_error"]
    assert 0 < found["standard_error"] < 0.001
    assert found["exact_without_capture"] == exact


@pytest.mark.parametrize("protocol", ["jpoc", "dot11ad"])
def test_whole_cells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    words = ["run", "--protocol", protocol, "--scene", "los-aligned", "--clients", "8"]
    words += ["--blockage", "0.5", "--realisations", "20", "--json"]
    assert command(monkeypatch, *words) == 0
    found = answer(capsys)
    assert 0.5 < found["jain"] <= 1.0
    assert 0.0 <= found["failure_probability"] < 1.0
    assert found["standard_error"] > 0
    assert command(monkeypatch, *words) == 0
    assert answer(capsys) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run --protocol mini-slots --good-beams 6 --mini-slots 5", "at most the 5 mini-slots"),
        ("run --protocol mini-slots --good-beams 6", "needs --good-beams and --mini-slots"),
        ("run --protocol jpoc --scene moon", "scene must be one of"),
        ("run --protocol jpoc --blockage 2", "blockage probability must be 0 to 1, not 2"),
        ("run --protocol dot11ad --multiplier 4", "A-BFT multiplier must be 0 to 3, not 4"),
        ("run --protocol dot11ad --slots 400", "fewer mini-slots or a longer interval"),
        ("run --protocol dot11ad --retry-limit -1", "RSSRetryLimit must be at least 0, not -1"),
        ("run --protocol jpoc --mini-slots 20", "--mini-slots must be at least 36, not 20"),
        ("run --protocol jpoc --slots 4", "--slots must go with --protocol dot11ad, not jpoc"),
        ("run --protocol dot11ad --mini-slots 64", "must go with --protocol mini-slots or jpoc"),
        (
            "run --protocol mini-slots --good-beams 6 --mini-slots 40 --scene los-aligned",
            "--scene must go with --protocol jpoc or dot11ad, not mini-slots",
        ),
        ("run --protocol jpoc --clients 5000", "--clients must be 1 to 1000, not 5000"),
        ("figure all 9.9", "not 9.9"),
        ("run --protocol jpoc --seed -1", "seed must be at least 0, not -1"),
        ("figure 9.9", "figure must be one of"),
        ("sweep --curve best", "curve must be one of"),
        ("sweep --realisations 1", "realisations must be 2 to"),
        ("sweep --workers 0", "workers must be at least 1, not 0"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert command(monkeypatch, *words.split()) == 2
    assert message in capsys.readouterr().err


def test_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sumrate.access.command.simulate", interrupted)
    words = ["run", "--protocol", "jpoc", "--scene", "los-aligned"]
    assert command(monkeypatch, *words) == 130


def test_figure_writes_table_and_pictures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["figure", "3.2a", "--quick", "--workers", "1", "--output", str(tmp_path)]
    assert command(monkeypatch, *words) == 0
    with (tmp_path / "3.2a.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["curve"] for row in rows} == {"product", "restrained"}
    assert all(float(r["low"]) <= float(r["mean"]) <= float(r["high"]) for r in rows)
    assert (tmp_path / "3.2a.svg").stat().st_size > 5000
    assert (tmp_path / "3.2a.png").stat().st_size > 5000
    assert "3.2a.png" in capsys.readouterr().out


@pytest.mark.parametrize("name", list(FIGURES))
def test_every_figure_has_a_table_with_its_metrics_and_bands(name: str) -> None:
    figure = FIGURES[name]
    tasks = figure.tasks(TINY, 1)
    # The first and the last task stand for the others, which differ in scene and curve only.
    rows = evaluate([tasks[0], tasks[-1]], workers=1)
    drawn = [row for row in rows if row["metric"] in figure.metrics]
    assert drawn
    assert all(row["low"] <= row["mean"] <= row["high"] for row in drawn if row["n"] > 0)


@pytest.mark.parametrize("name", list(FIGURES))
def test_curves_of_a_figure_can_be_told_apart(name: str) -> None:
    curves = {task.arguments.get("curve") for task in FIGURES[name].tasks(TINY, 1)}
    assert len(curves) <= len(STYLES)


def test_a_ratio_has_no_value_where_a_search_finds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([8, 8, 72, 36, 36] * 4 + [8, 8, None, 36, 36] * 4)
    order = [next(sizes) for _ in range(40)]
    found = iter([order[i] for curve in range(5) for i in range(curve, 40, 5)])
    monkeypatch.setattr(cells, "least_size", lambda *_, **__: next(found))
    rows = cells.overhead_rows("los-aligned", 4, TINY, 1)
    ratio = {r["curve"]: r["mean"] for r in rows if r["metric"] == "ratio"}
    assert np.isnan(ratio["802.11ad over JPOC"])
    assert ratio["802.11ad over mini-slots at full power"] == 8.0


@pytest.mark.parametrize(
    ("competing", "expected"),
    [(1.0, (29, 60, 63, 64, 65)), (0.2, (6, 14, 29, 59, 62))],
)
def test_ratio_without_capture_is_that_of_the_closed_forms(
    competing: float, expected: tuple[int, ...]
) -> None:
    found = [cells.ratio_without_capture(n, competing) for n in cells.CLIENTS]
    assert [round(value) for value in found] == list(expected)


def test_sweep_answers_with_its_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = "sweep --curve jpoc --scene los-aligned --blockage 0 0.5 --clients 4 --workers 1"
    path = tmp_path / "sweep.csv"
    words += f" --realisations 4 --json --output {path}"
    assert command(monkeypatch, *words.split()) == 0
    table = answer(capsys)["tables"]["sweep"]
    assert {row["x"] for row in table} == {0.0, 0.5}
    with path.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(table)


def test_published_figures_name_every_claim_on_initial_access() -> None:
    named = {claim for figure in FIGURES.values() for claim in figure.claims}
    assert {"T-3.1b-near", "T-3.5a-4", "T-3.7a-jpoc", "T-3.7b", "T-3-T5"} <= named
    assert len(named) == 22


def test_quick_is_less_than_the_default() -> None:
    assert QUICK.realisations * 10 == Effort().realisations
