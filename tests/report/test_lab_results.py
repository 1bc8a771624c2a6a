"""Result folders are read whole, and what is wrong with one is said."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sumrate.report.lab import (
    BrokenRunError,
    MissingRunError,
    RunError,
    compare_table,
    read_run,
    write_report,
)
from sumrate.report.lab.palette import STYLES, styles
from sumrate.report.lab.read import RunKey, Setting
from sumrate.report.lab.summary import summarise
from sumrate.report.lab.words import number, quantity
from tests.report.made_up import VOID, text_of, write_run

NORMAL = Setting("normal", "cubic", "default")


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(folder, tmp_path / "own"))


def test_a_run_is_read_whole_but_for_void_values(folder: Path) -> None:
    run = read_run(folder)
    void = RunKey(VOID[0], NORMAL, VOID[2])
    assert run.experiment == "made-up"
    assert [scheme.name for scheme in run.schemes if scheme.missing] == ["tquic"]
    assert len(run.ran) == 40
    assert run.void == {void}
    assert len(run.series) == 39
    assert void not in run.series
    assert void not in {value.key for value in run.metrics}
    assert len(run.verdicts) == 6


def test_subflows_are_kept_apart_from_their_sum_and_drawn(
    own: Path, claims: Path, tmp_path: Path
) -> None:
    path = own / "series.parquet"
    rows = pq.read_table(path).to_pylist()
    parts = [
        {**row, "path": name, "goodput_mbps": row["goodput_mbps"] * share}
        for row in rows
        if row["scheme"] == "mptcp"
        for name, share in (("wifi", 0.25), ("wigig", 0.75))
    ]
    before = read_run(own)
    pq.write_table(pa.Table.from_pylist([{**row, "path": ""} for row in rows] + parts), path)
    run = read_run(own)
    assert run.series == before.series
    assert not before.subflows
    assert {key.scheme for key in run.subflows} == {"mptcp"}
    key = next(iter(run.subflows))
    assert sum(rate for _, rate in run.subflows[key]["wigig"]) == pytest.approx(
        0.75 * sum(rate for _, rate in run.series[key])
    )
    write_report([own], claims, tmp_path / "report.html")
    assert "Thin lines are the subflows" in text_of(tmp_path / "report.html")


def test_a_scheme_that_is_missing_in_part_is_said_and_a_loss_is_left_of_zero(
    own: Path, claims: Path, tmp_path: Path
) -> None:
    path = own / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["schemes"][2]["missing_in_part"] = ["the congestion control lia is not loaded"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    rows = pq.read_table(own / "metrics.parquet").to_pylist()
    benefit = [
        {**row, "metric": "aggregation_benefit", "value": row["value"] - 1.0}
        for row in rows
        if row["metric"] == "sum_ratio"
    ]
    pq.write_table(pa.Table.from_pylist(rows + benefit), own / "metrics.parquet")
    write_report([own], claims, tmp_path / "report.html")
    text = text_of(tmp_path / "report.html")
    assert "Missing in part: <b>Kernel MPTCP</b>, because: the congestion control lia" in text
    assert "aggregation benefit" in text
    assert "No scheme is missing" not in text


def test_the_median_repetition_stands_for_the_others(folder: Path) -> None:
    run = read_run(folder)
    goodput = {
        v.key: v.value
        for v in run.metrics
        if v.metric == "goodput_mbps" and v.key.setting == NORMAL and v.key.scheme == "sumrate"
    }
    chosen = summarise(run).median_run(NORMAL, "sumrate")
    assert chosen is not None
    assert sorted(goodput.values())[2] == goodput[chosen]
    beside = summarise(run).median_run(NORMAL, "wifi")
    assert beside is not None
    assert beside.repetition == chosen.repetition, "the same seed and traces"


def test_failed_runs_are_listed_and_not_counted(own: Path, claims: Path) -> None:
    path = own / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["runs"][0]["error"] = "the sink saw <nothing>"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    run = read_run(own)
    (failed,) = run.failed
    assert failed not in {value.key for value in run.metrics}
    write_report([own], claims, own / "report.html")
    page = text_of(own / "report.html")
    assert "WiFi alone, Normal, repetition 0: the sink saw &lt;nothing&gt;" in page


@pytest.mark.parametrize(
    "name", ["metrics.parquet", "series.parquet", "manifest.json", "verdicts.json"]
)
def test_each_missing_or_broken_file_is_named(own: Path, name: str, claims: Path) -> None:
    (own / name).write_text("{", encoding="utf-8")
    with pytest.raises(BrokenRunError, match=name):
        read_run(own)
    (own / name).unlink()
    with pytest.raises(MissingRunError, match=name):
        read_run(own)
    with pytest.raises(RunError):
        write_report([own], claims, own / "report.html")
    assert not (own / "report.html").exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingRunError, match="no such result folder"):
        read_run(tmp_path / "nothing")


def test_a_lacking_column_and_another_schema_are_said(own: Path) -> None:
    table = pq.read_table(own / "metrics.parquet")
    pq.write_table(table.drop_columns(["unit"]), own / "metrics.parquet")
    with pytest.raises(BrokenRunError, match="no column unit"):
        read_run(own)
    (own / "manifest.json").write_text('{"schema": "other"}', encoding="utf-8")
    with pytest.raises(BrokenRunError, match=r"sumrate\.lab\.run\.v1"):
        read_run(own)


def test_an_unknown_verdict_is_refused(own: Path) -> None:
    (own / "verdicts.json").write_text('[{"claim": "x", "verdict": "maybe"}]', encoding="utf-8")
    with pytest.raises(BrokenRunError, match="maybe"):
        read_run(own)


def test_a_missing_catalogue_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingRunError, match="catalogue"):
        write_report([folder], tmp_path / "claims.toml", tmp_path / "report.html")


def test_a_run_without_values_still_has_a_page(own: Path, claims: Path) -> None:
    for name in ("metrics", "series"):
        table = pq.read_table(own / f"{name}.parquet")
        pq.write_table(pa.Table.from_batches([], table.schema), own / f"{name}.parquet")
    write_report([own], claims, own / "report.html")
    assert "Nothing was measured" in text_of(own / "report.html")


def test_two_runs_side_by_side(folder: Path, tmp_path: Path) -> None:
    slower = write_run(tmp_path / "slower", factor=0.8)
    lines = compare_table(folder, slower).splitlines()
    own = next(x for x in lines if x.startswith("goodput, Mbit/s") and "normal" in x and
               "sumrate" in x)  # fmt: skip
    assert own.endswith("0.800  *")
    same = next(x for x in lines if x.startswith("goodput, Mbit/s") and "wifi" in x)
    assert same.endswith("1.000")
    assert "1 void runs" in lines[0]


def test_single_values_are_not_said_to_be_apart(own: Path, tmp_path: Path) -> None:
    slower = write_run(tmp_path / "slower", factor=0.8)
    for folder in (own, slower):
        table = pq.read_table(folder / "metrics.parquet")
        rows = [row for row in table.to_pylist() if row["repetition"] == 1]
        pq.write_table(pa.Table.from_pylist(rows), folder / "metrics.parquet")
    lines = compare_table(own, slower).splitlines()
    found = next(x for x in lines if "normal" in x and "sumrate" in x and "goodput" in x)
    assert found.endswith("0.800")


def test_what_only_one_run_has_is_said(folder: Path, own: Path) -> None:
    table = pq.read_table(own / "metrics.parquet")
    rows = [row for row in table.to_pylist() if row["scheme"] != "mptcp"]
    pq.write_table(pa.Table.from_pylist(rows), own / "metrics.parquet")
    assert "only in A" in compare_table(folder, own)
    assert "only in B" in compare_table(own, folder)


def test_ten_schemes_look_different_without_colour() -> None:
    names = ["sumrate", "wifi", "wigig", "mptcp", "sumrate-thesis", "a", "b", "c", "d", "e"]
    looks = styles(names).values()
    assert len({look.hatch for look in looks}) == len(STYLES)
    assert len({look.dash for look in looks}) == len(STYLES)
    assert len({look.marker for look in looks}) == len(STYLES)


def test_nothing_but_sumrate_looks_like_it() -> None:
    looks = styles(["one", "uncoupled", *(f"other{number}" for number in range(30))])
    assert STYLES[0] not in looks.values()
    assert styles(["one", "sumrate"])["sumrate"] == STYLES[0]


def test_more_than_ten_schemes_never_look_the_same() -> None:
    looks = styles(["wifi", "wigig", *(f"other{number}" for number in range(30))]).values()
    assert len({(look.line, look.dash) for look in looks}) == len(looks) == 32
    assert len({(look.line, look.marker) for look in looks}) == len(looks)


def test_many_blackouts_are_said_shortly() -> None:
    dark = [[i, i + 0.3, "both"] for i in range(1, 13, 2)] + [[2, 4, "a_to_b"]]
    assert quantity("blackouts", dark) == (
        "dark 1 to 1.3 s, 3 to 3.3 s … 11 to 11.3 s (6 times); dark towards the server 2 to 4 s"
    )


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(2379.4, "Mbit/s", "2379"), (0.9876, "ratio", "0.988"), (0.0012, "ratio", "0.0012"),
     (25.23, "ms", "25.2"), (0, "B", "0")],
)  # fmt: skip
def test_numbers_have_the_digits_that_mean_something(value: float, unit: str, shown: str) -> None:
    assert number(value, unit) == shown


def test_the_leading_sentence_counts_medians_by_what_is_better(folder: Path) -> None:
    summary = summarise(read_run(folder))
    (shown,) = (c for c in summary.columns if c.metric == "goodput_mbps")
    assert shown.better == 1
    said = summary.leads(["goodput_mbps"], summary.settings)
    rivals = [n.name for n in summary.schemes if not n.name.startswith("sumrate-")]
    ahead = sum(
        max(rivals, key=lambda n: getattr(summary.spread("goodput_mbps", s, n), "median", 0.0))
        == "sumrate"
        for s in summary.settings
    )
    assert f"in {ahead} of {len(summary.settings)} cases" in said
    assert summary.leads(["cpu_s_per_gb"], summary.settings) == ""
