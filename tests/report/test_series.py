"""A condition of a kept result is drawn against time, and what is none is refused."""

from pathlib import Path

import pytest

from sumrate.report.series import main, series

KEPT = Path("docs/results/lab/switchover")


def test_every_scheme_of_the_condition_has_a_strip(repository: Path) -> None:
    drawn = series(repository / KEPT, "away")
    names = {text.get_text() for axes in drawn.axes for text in axes.texts}
    assert {"Sumrate", "Kernel MPTCP, full mesh", "TCP, link-level handover at once (FST)"} <= names
    assert len(drawn.axes) == 7
    highest = max(axes.dataLim.y1 for axes in drawn.axes)
    assert 1000 < highest < 1600, "Mbit/s of 802.11ad and 802.11n"


def test_the_kept_figure_is_of_the_kept_result(repository: Path, tmp_path: Path) -> None:
    figure = tmp_path / "again.svg"
    arguments = [str(repository / KEPT), "--condition", "away", "--figure", str(figure)]
    assert main(arguments) == 0
    kept = (repository / "docs/results/switchover.svg").read_text(encoding="utf-8")
    assert figure.read_text(encoding="utf-8") == kept


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([str(KEPT), "--condition", "nowhere"], "has no condition nowhere; it has away, normal"),
        (["docs", "--condition", "away"], "docs"),
    ],
)
def test_what_is_no_series_is_refused(
    arguments: list[str],
    words: str,
    repository: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = str(repository / arguments[0])
    assert main([folder, *arguments[1:], "--figure", str(tmp_path / "x.svg")]) == 2
    assert words in capsys.readouterr().err


def test_a_figure_that_cannot_be_written_is_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["nowhere", "--condition", "away", "--figure", str(tmp_path / "x.foo")])
    assert ".svg, .png, .pdf" in capsys.readouterr().err
