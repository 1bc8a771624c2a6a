"""Shares of a shared bottleneck and their confidence bands are what the values say."""

from pathlib import Path

import polars as pl
import pytest

from sumrate.report.coupling import Band, figure, main, shares, summary
from sumrate.report.lab.canvas import save
from sumrate.report.lab.result import RUN, Manifest, Result, RunError
from tests.report.pictures import problems, title, words


def run(values: dict[tuple[str, str, str], list[float]]) -> Result:
    rows = [
        (scheme, condition, control, "default", n, "bottleneck_share", value, "ratio")
        for (scheme, condition, control), measured in values.items()
        for n, value in enumerate(measured)
    ]
    table = pl.DataFrame(rows, [*RUN, "metric", "value", "unit"], orient="row")
    manifest = Manifest("", "rfc6356", "", "", [], [], [])
    return Result(Path("made-up"), manifest, (), table, pl.DataFrame())


SOME = {
    ("mptcp", "shared-2-1", "sumrate_lia"): [0.50, 0.52, 0.54],
    ("mptcp", "shared-2-1", "sumrate_reno"): [0.66],
    ("mptcp", "shared-4-1", "sumrate_lia"): [0.5, 0.5],
    ("mptcp", "shared-2-3", "sumrate_reno"): [0.4, 0.4],
    ("one", "shared-2-1", "reno"): [0.5],
    ("mptcp", "disjoint", "sumrate_lia"): [0.9],
}


def test_students_interval_as_worked_out_by_hand() -> None:
    band = Band.of([0.50, 0.52, 0.54])
    assert band.mean == pytest.approx(0.52)
    assert band.high - band.mean == pytest.approx(4.3027 * 0.02 / 3**0.5, rel=1e-4)
    assert band.mean - band.low == pytest.approx(band.high - band.mean)
    assert Band.of([0.3]) == Band(0.3, 0.3, 0.3, 1), "one repetition has no interval"
    wide = Band.of([0.0, 1.0] * 50)
    assert wide.high - wide.mean == pytest.approx(1.984 * 0.5025 / 10, rel=1e-3)


def test_only_shared_bottlenecks_of_the_scheme_count() -> None:
    found = shares(run(SOME))
    assert found.keys() == {1, 3}
    assert found[1]["sumrate_lia"].keys() == {2, 4}
    assert found[1]["sumrate_reno"][2].mean == pytest.approx(0.66)
    with pytest.raises(RunError, match="bottleneck_share of aggligator"):
        shares(run(SOME), "aggligator")


def test_the_table_has_every_cell_and_says_where_nothing_was_measured() -> None:
    lines = summary(shares(run(SOME))).splitlines()
    assert lines[0].endswith("| LIA | uncoupled |")
    assert lines[2] == "| 1 | 2 | 0.50 | 0.52 (0.47 to 0.57) | 0.66 |"
    assert lines[3] == "| 1 | 4 | 0.50 | 0.50 (0.50 to 0.50) | - |"
    assert lines[4] == "| 3 | 2 | 0.25 | - | 0.40 (0.40 to 0.40) |"


def test_the_figure_has_a_panel_for_each_number_of_tcps() -> None:
    drawn = figure(shares(run(SOME)))
    titles = [axis.get_title(loc="left") for axis in drawn.axes]
    assert titles == ["against 1 plain TCP", "against 3 plain TCPs"]
    assert title(drawn) == (
        "Against one plain TCP, 4 coupled subflows take 0.50 of the link; fair is 0.50"
    )
    assert {"LIA", "uncoupled"} <= set(words(drawn))
    assert not problems(drawn)


def test_a_folder_without_results_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "no such result" in capsys.readouterr().err


SHOWN = [("rfc6356", "mptcp", "coupling"), ("rfc6356-subflows", "sumrate", "coupling-subflows")]
"""Pictures of the documents: experiment, whose subflows, the picture's name."""


@pytest.mark.parametrize(("name", "scheme", "picture"), SHOWN)
def test_the_picture_of_the_documents_is_of_the_kept_result(
    repository: Path, tmp_path: Path, name: str, scheme: str, picture: str
) -> None:
    drawn, kept = tmp_path / f"{picture}.svg", repository / "results" / f"{name}.parquet"
    assert main([str(kept), "--scheme", scheme, "--figure", str(drawn)]) == 0
    place = f"docs/img/{picture}.svg"
    again = f"python -m sumrate.report.coupling results/{name}.parquet --scheme {scheme}"
    shown = (repository / place).read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == shown, f"{again} --figure {place}"


def test_the_picture_of_another_result_differs(tmp_path: Path) -> None:
    other = {**SOME, ("mptcp", "shared-4-1", "sumrate_lia"): [0.5, 0.51]}
    pictures = []
    for number, values in enumerate((SOME, SOME, other)):
        save(figure(shares(run(values))), tmp_path / f"{number}.svg")
        pictures.append((tmp_path / f"{number}.svg").read_text(encoding="utf-8"))
    assert pictures[0] == pictures[1] != pictures[2]
