import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sumrate.access import kernel
from sumrate.access.budget import make_pool
from sumrate.access.curves import CURVES
from sumrate.access.equations import exact_failure_probability
from sumrate.access.figures import FIGURES, Effort, cells
from sumrate.access.figures.table import QUICK
from sumrate.access.progress import compile_simulation, is_compiled
from sumrate.access.scenes import SCENES, scene_named
from sumrate.access.tasks import evaluate
from sumrate.access.words import INPUTS, MEANINGS
from sumrate.lab import cli
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.results import Progress
from sumrate.phy.codebook import codebook_36, write_patterns
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
        ("figure 9.9", "figure must be all or one of"),
        ("sweep --compare best", "protocol must be one of"),
        ("sweep --realisations 1", "realisations must be 2 to"),
        ("sweep --workers 0", "workers must be at least 1, not 0"),
        ("sweep --compare jpoc --slots 4", "--slots needs a protocol of 802.11ad"),
        ("sweep --compare dot11ad --slots 0", "must be"),
        ("run", "give --protocol with one protocol, or --compare with several"),
        ("run --protocol jpoc --compare jpoc", "give --protocol with one protocol, or --compare"),
        ("run --compare jpoc mini-slots", "mini-slots has no cell"),
        ("run --compare jpoc dot11ad --rounds 9", "--rounds must go with --protocol mini-slots"),
        ("run --protocol jpoc --patterns /nowhere.csv", "cannot read patterns from /nowhere.csv"),
        ("run --protocol mini-slots --patterns x.csv", "--patterns must go with --protocol jpoc"),
        ("figure", "figure needs a name, or all; see --list"),
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

    monkeypatch.setattr("sumrate.access.actions.simulate", interrupted)
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
def test_every_figures_table_has_metrics_and_bands(name: str) -> None:
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


def test_failed_searches_leave_ratios_without_value(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_ratio_without_capture_follows_the_closed_forms(
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


CELL = ["--scene", "los-aligned", "--clients", "4", "--realisations", "4", "--intervals", "20"]


def test_the_table_has_units_and_meanings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "run", "--protocol", "jpoc", *CELL, "--json") == 0
    document = answer(capsys)
    assert document.keys() - set(INPUTS) - {"schema"} <= MEANINGS.keys()
    assert command(monkeypatch, "run", "--protocol", "jpoc", *CELL) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("scene los-aligned, clients 4, blockage 0.2")
    (first,) = (line for line in lines if line.startswith("first success"))
    value, unit, meaning = re.split("  +", first.removeprefix("first success").strip())
    assert float(value) == pytest.approx(document["first_success"], rel=1e-3)
    assert (unit, meaning) == ("beacon intervals", MEANINGS["first_success"].text)


def test_protocols_are_compared_in_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--compare", "jpoc", "dot11ad", "--slots", "4", *CELL]
    assert command(monkeypatch, *words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["jpoc", "dot11ad", "unit", "meaning"]
    (sizes,) = (line.split()[2:4] for line in lines if line.startswith("mini slots"))
    assert float(sizes[0]) >= 36
    assert float(sizes[1]) == 144
    assert command(monkeypatch, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["protocol"] for run in found] == ["jpoc", "dot11ad"]


def test_a_sweep_over_slots_names_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "sweep --compare jpoc dot11ad --slots 4 8 --scene los-aligned --blockage 0 --clients 4"
    assert (
        command(monkeypatch, *words.split(), "--workers", "1", "--realisations", "2", "--json") == 0
    )
    rows = [row for row in answer(capsys)["tables"]["sweep"] if row["metric"] == "mini_slots"]
    assert {row["curve"]: row["mean"] for row in rows if row["curve"] != "jpoc"} == {
        "dot11ad, 4 slots": 144.0,
        "dot11ad, 8 slots": 288.0,
    }


@pytest.mark.parametrize(
    ("action", "named"), [("figure", FIGURES), ("sweep", {**CURVES, **SCENES})]
)
def test_list_has_a_line_for_each_name(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    action: str,
    named: dict[str, Any],
) -> None:
    assert command(monkeypatch, action, "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    for name, entry in named.items():
        assert any(line.split() == [name, *entry.title.split()] for line in lines), name


def test_figures_show_their_number_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["figure", "signalling", "3.2a", "--quick", "--workers", "1", "--output", str(tmp_path)]
    assert command(monkeypatch, *words) == 0
    said = capsys.readouterr().err
    assert re.search(r"figure 1 of 2: signalling, .* about .* left", said)
    assert re.search(r"figure 2 of 2: 3.2a, .* about .* left", said)


def test_a_sweep_prints_units_and_intervals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "sweep --compare jpoc --scene los-aligned --blockage 0.5 --clients 4 --workers 1"
    assert command(monkeypatch, *words.split(), "--realisations", "3") == 0
    shown = capsys.readouterr()
    (line,) = (x for x in shown.out.splitlines() if "failure probability  " in x)
    scene, protocol, _, clients, blockage, mean, interval, unit = re.split("  +", line)
    assert (scene, protocol, clients, blockage) == ("los-aligned", "jpoc", "4", "0.50")
    low, high = map(float, interval.split(" to "))
    assert low <= float(mean) <= high
    assert unit == "of sweeps"
    assert re.search(r"sweep: 0 of 1 tasks, about \d+ s left", shown.err)


def test_only_a_missing_cache_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(1.0)
    compile_simulation(progress)
    assert is_compiled(kernel.realise)
    capsys.readouterr()
    compile_simulation(progress)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(kernel, "__file__", "other.py")
    assert not is_compiled(kernel.realise)
    compile_simulation(progress)
    assert "compiling the simulation, which later runs reuse" in capsys.readouterr().err


def test_clients_get_the_beams_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "one-beam.csv"
    path.write_text("# omni\nbeam,azimuth_deg,elevation_deg,gain_dbi\n0,0,0,12.5\n")
    pool = make_pool(scene_named("los-aligned", path), 64, 1)
    assert pool.beams.tolist() == [1] * 64
    assert pool.array_gain_db == pytest.approx(12.5 - 5.0)


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in codebook as a file: in `los-aligned`, clients differ in elevation only."""
    path = tmp_path_factory.mktemp("patterns") / "built-in.csv"
    write_patterns(codebook_36(), [-1.0, 0.0, 1.0], np.arange(-90, 90.05, 0.1).tolist(), path)
    return path


@pytest.mark.parametrize("protocol", ["jpoc", "dot11ad"])
def test_built_in_codebook_from_file_gives_equal_numbers(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    built_in: Path,
    protocol: str,
) -> None:
    words = ["run", "--protocol", protocol, "--scene", "los-aligned", "--realisations", "20"]
    words += ["--clients", "8", "--blockage", "0.5", "--json"]
    assert command(monkeypatch, *words) == 0
    usual = answer(capsys)
    assert command(monkeypatch, *words, "--patterns", str(built_in)) == 0
    read = answer(capsys)
    assert read["jain"] == pytest.approx(usual["jain"], abs=0.003)
    assert read["failure_probability"] == pytest.approx(usual["failure_probability"], abs=0.01)
    assert read["mini_slots"] == pytest.approx(usual["mini_slots"], rel=0.01)
    assert read["mean_good_beams"] == pytest.approx(usual["mean_good_beams"], abs=0.05)


@pytest.mark.parametrize(
    "action",
    [
        "access run --protocol dot11ad --realisations 2 --clients 4",
        "access sweep --compare dot11ad --realisations 2 --clients 4 --workers 1 --blockage 0.5",
        "trace make walk --seconds 2",
    ],
)
def test_sample_patterns_run_and_wrong_lines_are_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    action: str,
) -> None:
    sample = REPOSITORY / "docs" / "samples" / "beams.csv"
    words = ["sumrate-lab", *action.split(), "--patterns"]
    monkeypatch.setattr(sys, "argv", [*words, str(sample)])
    assert cli.main() == 0
    broken = tmp_path / "broken.csv"
    lines = sample.read_text(encoding="utf-8").splitlines()
    broken.write_text("\n".join([*lines[:4], "0,0,0", *lines[4:]]), encoding="utf-8")
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", [*words, str(broken)])
    assert cli.main() == 2
    said = capsys.readouterr().err
    assert f"error: {broken}: line 5: expected beam,azimuth_deg" in said
    assert "found 0,0,0\n" in said
