"""Which results may be taken over into the repository: whole ones, of committed files."""

import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sumrate.lab import cli
from sumrate.lab.experiment import keeping
from sumrate.lab.experiment.keeping import (
    combinations,
    incomplete,
    keep_problems,
    objections,
    uncounted,
)
from sumrate.lab.experiment.kept import read_kept_runs, read_provenance
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.store import write_tables
from sumrate.report.lab.result import RUN, read_result

NAME = "lap"


def whole(repetitions: int = 5) -> dict[str, Any]:
    """The manifest of a whole result."""
    keys = ("condition", "scheme", "congestion_control", "buffers")
    runs = [
        {**dict(zip(keys, point, strict=True)), "repetition": number, "void": False}
        for number in range(repetitions)
        for point in sorted(combinations(load(NAME)))
    ]
    return {
        "schema": "sumrate.lab.run.v1",
        "experiment": NAME,
        "title": "A lap",
        "question": "How is it?",
        "commit": "0" * 40,
        "kernel": "6.18",
        "machine": {"cpus": 2},
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T04:04:05+00:00",
        "argv": ["sumrate-lab", "run", NAME],
        "seeds": [1],
        "links": [{"condition": "lap", "name": "wifi", "rate_mbps": 315.0, "loss": 0.0}],
        "schemes": [{"name": "wifi", "title": "WiFi alone"}],
        "conditions": [{"name": "lap", "title": "a lap"}],
        "method": "stream",
        "repetitions": repetitions,
        "void_runs": 0,
        "calibration": [
            {
                "link": "wifi",
                "quantity": "loss",
                "direction": "a_to_b",
                "expected": 0.0,
                "measured": 0.0,
                "ok": True,
            }
        ],
        "runs": runs,
    }


def put(results: Path, manifest: dict[str, Any]) -> Path:
    folder = results / NAME
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    runs = []
    for entry in manifest["runs"]:
        keys = ("scheme", "condition", "congestion_control", "buffers", "repetition")
        run = Run(**{key: entry[key] for key in keys}, seed=1, void=entry["void"])
        run.add("goodput_mbps", 100.0 + run.repetition, "Mbit/s")
        run.series = [(0.05, 100.0)]
        runs.append(run)
    write_tables(folder, load(NAME), runs)
    (folder / "verdicts.json").write_text("[]", encoding="utf-8")
    return folder


def kept(monkeypatch: pytest.MonkeyPatch, results: Path, into: Path, *more: str) -> int:
    monkeypatch.setattr(keeping, "KEPT", into)
    words = ["sumrate-lab", "keep", NAME, "--results", str(results), *more]
    monkeypatch.setattr(sys, "argv", words)
    return cli.main()


def test_a_whole_result_is_one_table_with_its_provenance(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = whole()
    of(manifest, "aggligator")[0]["error"] = "no answer"
    put(tmp_path / "out", manifest)
    packed = tmp_path / "lap.tar.xz"
    into = tmp_path / "kept"
    assert kept(monkeypatch, tmp_path / "out", into, "--archive", str(packed)) == 0
    assert [path.name for path in into.iterdir()] == ["lap.parquet"]
    origin = read_provenance(into / "lap.parquet")
    assert origin["commit"] == "0" * 40
    assert origin["command"] == "sumrate-lab run lap"
    assert origin["calibration"] == "measured"
    runs = read_kept_runs(into / "lap.parquet")
    assert len(runs) == len(manifest["runs"]) - 1, "the run that failed has no value"
    assert {run.value("goodput_mbps") for run in runs} == {100.0, 101.0, 102.0, 103.0, 104.0}
    with tarfile.open(packed) as archive:
        names = set(archive.getnames())
    assert {f"lap/{name}" for name in ("manifest.json", "series.parquet")} <= names


def test_the_report_reads_a_kept_table_as_the_folder_that_it_is_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = whole()
    of(manifest, "wifi")[0]["void"] = True
    folder = put(tmp_path / "out", manifest)
    assert kept(monkeypatch, tmp_path / "out", tmp_path / "kept") == 0
    table = tmp_path / "kept" / "lap.parquet"
    raw, tidy = read_result(folder), read_result(table)
    key = [*RUN, "metric", "value", "unit"]
    assert set(raw.values.select(key).iter_rows()) <= set(tidy.values.select(key).iter_rows())
    assert [run["void"] for run in tidy.runs].count(True) == 1
    assert tidy.manifest.title == raw.manifest.title
    assert tidy.manifest.commit == raw.manifest.commit
    assert not raw.samples.is_empty()
    assert tidy.samples.is_empty()


def one_condition(manifest: dict[str, Any]) -> None:
    manifest["runs"] = [run for run in manifest["runs"] if run["condition"] == "normal"]


def no_peer(manifest: dict[str, Any]) -> None:
    manifest["runs"] = [run for run in manifest["runs"] if run["scheme"] != "aggligator"]


def a_repetition_less(manifest: dict[str, Any]) -> None:
    there = [r for r in manifest["runs"] if (r["scheme"], r["repetition"]) != ("sumrate", 3)]
    manifest["runs"] = there


def without_its_own(manifest: dict[str, Any]) -> None:
    for entry in manifest["runs"]:
        if entry["scheme"] == "sumrate":
            entry["missing"] = "the binary is not built"


def dirty(manifest: dict[str, Any]) -> None:
    manifest["commit"] += "-dirty"


def failed(manifest: dict[str, Any]) -> None:
    of(manifest, "sumrate")[0]["error"] = "no answer"


def void(manifest: dict[str, Any]) -> None:
    own = [r for scheme in ("sumrate", "wifi", "wigig") for r in of(manifest, scheme)]
    for entry in own[::2]:
        entry["void"] = True


def of(manifest: dict[str, Any], scheme: str) -> list[dict[str, Any]]:
    return [entry for entry in manifest["runs"] if entry["scheme"] == scheme]


def off(manifest: dict[str, Any]) -> None:
    found = {"link": "wifi", "direction": "a_to_b", "quantity": "rate_mbps"}
    manifest["calibration"] = [found | {"expected": 630.0, "measured": 500.0, "ok": False}]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (one_condition, "lap, aggligator, cubic, default was not run"),
        (no_peer, "lap, aggligator, cubic, default was not run"),
        (a_repetition_less, "lap, sumrate, cubic, default: 4 of 5 repetitions were run"),
        (without_its_own, "lap, sumrate, cubic, default is missing: the binary is not built"),
        (dirty, "uncommitted"),
        (failed, "failed: no answer"),
        (void, "are void"),
        (off, "a link was off: wifi, a_to_b: rate_mbps is 500.0"),
    ],
)
def test_a_spoilt_result_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    spoil: Callable[[dict[str, Any]], None],
    said: str,
) -> None:
    manifest = whole()
    spoil(manifest)
    put(tmp_path / "out", manifest)
    assert kept(monkeypatch, tmp_path / "out", tmp_path / "kept") == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("repetitions", [1, 4])
def test_a_quick_result_is_refused(tmp_path: Path, repetitions: int) -> None:
    folder = put(tmp_path, whole(repetitions))
    said = f"{NAME}: {repetitions} repetitions"
    assert [why for why in objections(folder) if why.startswith(said)]
    assert [why for why in incomplete(folder, load(NAME)) if why.startswith(said)]


def test_a_simulations_repetitions_are_many_realisations(tmp_path: Path) -> None:
    assert not objections(put(tmp_path, whole(3) | {"method": "simulation"}))


def test_an_experiment_with_more_repetitions_wants_them_all(tmp_path: Path) -> None:
    nine = load("redial-fairness")
    folder = put(tmp_path, whole())
    assert not objections(folder)
    assert f"{NAME}: 5 repetitions, the experiment has 9" in incomplete(folder, nine)


def test_a_kept_result_need_not_have_what_its_file_has_since(tmp_path: Path) -> None:
    manifest = whole()
    one_condition(manifest)
    assert not objections(put(tmp_path, manifest))


def test_a_missing_peer_was_asked_for(tmp_path: Path) -> None:
    """It is in the manifest with the reason: the result is whole without it."""
    manifest = whole()
    for entry in manifest["runs"]:
        if entry["scheme"] == "aggligator":
            entry["missing"] = "aggligator is not installed"
    assert not keep_problems(put(tmp_path, manifest), NAME)


def test_results_of_no_experiment_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "keep", "lapp", "--results", str(tmp_path)])
    assert cli.main() == 2
    assert "did you mean lap" in capsys.readouterr().err


def test_what_a_peer_cannot_do_costs_nothing_but_its_own_values(tmp_path: Path) -> None:
    manifest = whole()
    first, second, *others = of(manifest, "aggligator")
    first["error"] = second["error"] = "the tunnel was closed"
    for entry in others:
        entry["void"] = True
    assert not keep_problems(put(tmp_path, manifest), NAME)


def test_points_with_few_runs_need_a_reason(tmp_path: Path) -> None:
    manifest = whole()
    for entry in of(manifest, "wifi"):
        entry["void"] = True
    folder = put(tmp_path, manifest)
    experiment = load(NAME)
    said = uncounted(folder, experiment)
    assert said
    assert all("wifi" in line and ": 0 of 5 runs count" in line for line in said)
    expecting = structs.replace(
        experiment,
        conditions=tuple(
            structs.replace(condition, few_runs={"wifi": "the emulator is late beside it"})
            for condition in experiment.conditions
        ),
    )
    assert not uncounted(folder, expecting)


def test_a_result_whose_links_were_not_measured_is_refused(tmp_path: Path) -> None:
    manifest = whole()
    del manifest["calibration"]
    (problem,) = keep_problems(put(tmp_path, manifest), NAME)
    assert problem == f"{NAME}: its links were not measured before it"
