"""A condition of a result is drawn against time, and what is none is refused."""

import re
from pathlib import Path

import pytest

from sumrate.report.lab.palette import AT_NIGHT, INK, PAPER
from sumrate.report.lab.read import read_run
from sumrate.report.lab.summary import summarise
from sumrate.report.series import main, series
from tests.report.pictures import problems, title, words


def test_every_scheme_has_a_strip_and_the_title_is_computed(folder: Path) -> None:
    drawn = series(folder, "blackout")
    summary = summarise(read_run(folder))
    setting = next(s for s in summary.settings if s.condition == "blackout")
    sampled = [n.title for n in summary.schemes if summary.median_run(setting, n.name)]
    assert set(sampled) <= set(words(drawn))
    assert len(drawn.axes) == len(sampled)
    own = summary.spread("longest_stall_ms", setting, "sumrate")
    assert own is not None
    assert f"stalls for {own.median:.0f} ms" in title(drawn)
    assert not problems(drawn)


def test_an_svg_follows_a_dark_system(folder: Path, tmp_path: Path) -> None:
    figure = tmp_path / "strips.svg"
    assert main([str(folder), "--condition", "blackout", "--figure", str(figure)]) == 0
    text = figure.read_text(encoding="utf-8")
    night = re.search(r"<style>@media \(prefers-color-scheme: dark\)(.*?)</style>", text)
    assert night is not None
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text)) & set(AT_NIGHT)
    assert {INK, PAPER} <= used
    assert all(colour in night[1] for colour in used)
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
