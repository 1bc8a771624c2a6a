"""A condition of a result is drawn against time, and what is none is refused."""

from pathlib import Path

import pytest

from sumrate.report.lab.result import read_result
from sumrate.report.series import main, series
from tests.report.pictures import words


def test_every_scheme_has_a_strip(folder: Path, tmp_path: Path) -> None:
    drawn = series(folder, "blackout")
    result = read_result(folder)
    setting = next(s for s in result.settings if s.condition == "blackout")
    sampled = [n.title for n in result.schemes if (setting, n.name) in result.median_runs]
    assert set(sampled) <= set(words(drawn))
    assert len(drawn.axes) == len(sampled)
    own = result.spreads["longest_stall_ms", setting, "sumrate"].median
    assert any(f"stalls for {own:.0f} ms" in text for text in words(drawn))
    figure = tmp_path / "strips.svg"
    assert main([str(folder), "--condition", "blackout", "--figure", str(figure)]) == 0
    assert figure.stat().st_size < 60_000


def test_what_is_no_series_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, condition, said in (
        (folder, "nowhere", "has no condition nowhere; it has"),
        (tmp_path, "blackout", str(tmp_path)),
        (tmp_path / "switchover.parquet", "away", "`sumrate-lab run switchover` leaves them in"),
    ):
        words = [str(given), "--condition", condition, "--figure", str(tmp_path / "x.svg")]
        assert main(words) == 2
        assert said in capsys.readouterr().err


def test_a_figure_that_cannot_be_written_is_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["nowhere", "--condition", "away", "--figure", str(tmp_path / "x.foo")])
    assert ".svg, .png, .pdf" in capsys.readouterr().err
