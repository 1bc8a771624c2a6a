"""Result folders are read whole, and what is wrong with one is said."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sumrate.report.lab import RunError, compare_table, read_result
from sumrate.report.lab.palette import STYLES, styles
from sumrate.report.lab.result import RUN, Setting
from sumrate.report.lab.words import number, quantity
from tests.report.made_up import VOID, write_run

NORMAL = Setting("normal", "cubic", "default")


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(folder, tmp_path / "own"))


def test_a_run_is_read_without_void_values(folder: Path) -> None:
    result = read_result(folder)
    assert result.manifest.experiment == "made-up"
    assert [scheme.name for scheme in result.schemes if scheme.missing] == ["tquic"]
    assert len(result.runs) == 40
    void = dict(zip(RUN, (VOID[0], *NORMAL, VOID[2]), strict=True))
    assert [{key: run[key] for key in RUN} for run in result.runs if run["void"]] == [void]
    for table in (result.values, result.samples):
        assert table.select(RUN).unique().height == 39
        assert table.filter(**void).is_empty()


def test_subflows_are_kept_apart_from_their_sum(own: Path) -> None:
    path = own / "series.parquet"
    rows = pq.read_table(path).to_pylist()
    parts = [
        {**row, "path": name, "goodput_mbps": row["goodput_mbps"] * share}
        for row in rows
        if row["scheme"] == "mptcp"
        for name, share in (("wifi", 0.25), ("wigig", 0.75))
    ]
    before = read_result(own)
    pq.write_table(pa.Table.from_pylist([{**row, "path": ""} for row in rows] + parts), path)
    after = read_result(own)
    assert after.distributions == before.distributions
    assert list(before.curves(NORMAL, "mptcp")) == [""]
    curves = after.curves(NORMAL, "mptcp")
    assert list(curves) == ["", "wifi", "wigig"]
    wigig, whole = (sum(rate for _, rate in curves[name]) for name in ("wigig", ""))
    assert wigig == pytest.approx(0.75 * whole)
    assert list(after.curves(NORMAL, "sumrate")) == [""]


def test_the_median_repetition_stands_for_others(folder: Path) -> None:
    result = read_result(folder)
    rows = result.values.filter(metric="goodput_mbps", scheme="sumrate", condition="normal")
    goodput = dict(rows.select("repetition", "value").iter_rows())
    chosen = result.median_runs[NORMAL, "sumrate"]
    assert sorted(goodput.values())[2] == goodput[chosen]
    assert result.median_runs[NORMAL, "wifi"] == chosen, "the same seed and traces"


def test_failed_runs_are_not_counted(own: Path) -> None:
    path = own / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["runs"][0]["error"] = "the sink saw <nothing>"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    result = read_result(own)
    failed = {key: manifest["runs"][0][key] for key in RUN}
    assert result.values.filter(**failed).is_empty()
    assert result.counted(NORMAL, "wifi") == (4, 1)


@pytest.mark.parametrize("name", ["metrics.parquet", "series.parquet", "manifest.json"])
def test_each_missing_or_broken_file_is_named(own: Path, name: str) -> None:
    (own / name).write_text("{", encoding="utf-8")
    with pytest.raises(RunError, match=name):
        read_result(own)
    (own / name).unlink()
    with pytest.raises(RunError, match=name):
        read_result(own)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nothing: there is no such result"):
        read_result(tmp_path / "nothing")


def test_another_schema_or_columns_are_refused(own: Path) -> None:
    table = pq.read_table(own / "metrics.parquet")
    pq.write_table(table.drop_columns(["unit"]), own / "metrics.parquet")
    with pytest.raises(RunError, match="no column unit"):
        read_result(own)
    text = (own / "manifest.json").read_text(encoding="utf-8")
    (own / "manifest.json").write_text(text.replace("run.v1", "run.v9"), encoding="utf-8")
    with pytest.raises(RunError, match=r"not of sumrate\.lab\.run\.v1"):
        read_result(own)
    (own / "manifest.json").write_text('{"schema": "other"}', encoding="utf-8")
    with pytest.raises(RunError, match="missing required field"):
        read_result(own)


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


def test_the_leading_sentence_counts_best_medians(folder: Path) -> None:
    result = read_result(folder)
    rivals = [n.name for n in result.schemes if not n.name.startswith("sumrate-")]
    medians = [
        {n: spread.median for n in rivals if (spread := result.spreads.get(("goodput_mbps", s, n)))}
        for s in result.settings
    ]
    ahead = sum(max(found, key=lambda n: found[n]) == "sumrate" for found in medians)
    assert f"in {ahead} of {len(result.settings)} cases" in result.leads(["goodput_mbps"])
    assert result.leads(["cpu_s_per_gb"]) == ""
