"""Why the default is behind: what has to be left out so that it is not."""

from pathlib import Path
from typing import Any

import pytest

from sumrate.report.tournament.causes import again, causes, lost, main, summary, tables
from sumrate.report.tournament.table import TableError, read
from tests.report.tournament.test_standings import row, table

OUTAGE: dict[str, Any] = {
    "group": "outage",
    "loss": 0.0,
    "lossy": "none",
    "dark": "slow",
    "outage_s": 1.0,
}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The default loses goodput in one with losses, and waits longer than two others in another."""
    rows = [
        row("just-in-time", 50, 5, 2, condition=7),
        row("minrtt", 60, 5, 2, condition=7),
        row("ecf", 59, 5, 2, condition=7),
        row("just-in-time", 50, 90, 2, condition=8, **OUTAGE),
        row("minrtt", 50, 20, 2, condition=8, **OUTAGE),
        row("ecf", 50, 30, 2, condition=8, **OUTAGE),
    ]
    return table(tmp_path / "published.json", rows)


def others(tmp_path: Path, **values: tuple[float, float]) -> list[Path]:
    """Tables of the default without a rule: goodput with losses, stall in the outage."""
    return [
        table(
            tmp_path / f"{rules}.json",
            [
                row("just-in-time", goodput, 5, 2, rules=rules),
                row("just-in-time", 50, stall, 2, rules=rules, **OUTAGE),
            ],
        )
        for rules, (goodput, stall) in values.items()
    ]


def test_what_is_gone_without_a_rule_is_that_rules(published: Path, tmp_path: Path) -> None:
    paths = others(tmp_path, uncopied=(59.5, 80), unlimited=(51, 31), bare=(60, 25))
    first = read([published])
    assert [c.parameters["condition"] for c in lost(first)] == [7]
    goodput, stall = causes(first, tables([published, *paths]))
    assert (goodput.what, goodput.best, goodput.gone) == ("goodput", "minrtt", "copies")
    assert goodput.values["uncopied"] == pytest.approx(59.5 / 60)
    assert (stall.what, stall.best, stall.best_value, stall.gone) == (
        "stall",
        "minrtt",
        20,
        "commit limit",
    )
    text = summary([goodput, stall])
    assert "| goodput | 1 | 0 | 1 | 0 | 0 | 0 |" in text
    assert "| stall | 1 | 0 | 0 | 1 | 0 | 0 |" in text
    assert "| delay | 0 | 0 | 0 | 0 | 0 | 0 |" in text
    lossy = "| loss: rates 1:3, 1 % loss on fast | 1 "
    assert lossy + "| 0.833 | 0.992 | 0.850 | 1.000 | minrtt | copies |" in text
    assert (
        "| outage: rates 1:3, slow path dark 1 s once | 90 | 80 | 31 | 25 | minrtt | 20 "
        "| commit limit |"
    ) in text


def test_what_no_rule_explains_is_neithers(published: Path, tmp_path: Path) -> None:
    paths = others(tmp_path, uncopied=(51, 85), unlimited=(50, 90), bare=(52, 70))
    found = causes(read([published]), tables([published, *paths]))
    assert [behind.gone for behind in found] == ["neither", "neither"]


def test_a_tie_in_more_draws_is_a_tie(published: Path, tmp_path: Path) -> None:
    assert again(read([published])) == "--condition 7", "draws of an outage do not differ by losses"
    paths = others(tmp_path, uncopied=(51, 85), unlimited=(50, 90), bare=(52, 70))
    draws = [(1, 50.0, 60.0), (2, 61.0, 58.0), (3, 60.0, 59.0)]
    more = [
        row(name, goodput, 5, 2, seed=seed)
        for seed, *both in draws
        for name, goodput in zip(("just-in-time", "minrtt"), both, strict=True)
    ]
    late = table(tmp_path / "again.json", more)
    with pytest.raises(TableError, match="uncopied has other draws than published of rates 1:3"):
        causes(read([published]), tables([published, *paths, late]))
    for rules in ("uncopied", "unlimited", "bare"):
        own = [row("just-in-time", 55, 5, 2, seed=seed, rules=rules) for seed in (1, 2, 3)]
        paths.append(table(tmp_path / f"again-{rules}.json", own))
    goodput = causes(read([published]), tables([published, *paths, late]))[0]
    assert goodput.gone == "more draws"
    assert goodput.values["published"] == pytest.approx(60 / 59), "the median of three draws"


def test_tables_that_do_not_do_are_refused(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(published)]) == 2
    assert "no table is of uncopied, unlimited, bare rules" in capsys.readouterr().err
    product = table(tmp_path / "product.json", [row("just-in-time", 1, 1, 1, rules="product")])
    assert main([str(published), str(product)]) == 2
    assert "a table of one of published, uncopied" in capsys.readouterr().err
    far = [
        table(tmp_path / f"far-{r}.json", [row("just-in-time", 1, 1, 1, loss=0.5, rules=r)])
        for r in ("uncopied", "unlimited", "bare")
    ]
    assert main([str(published), *map(str, far)]) == 2
    assert "no uncopied table has the condition rates 1:3" in capsys.readouterr().err


def test_the_command_line_writes_all_of_it(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(published), "--again"]) == 0
    assert capsys.readouterr().out == "--condition 7\n"
    paths = others(tmp_path, uncopied=(59.5, 80), unlimited=(51, 31), bare=(60, 25))
    output = tmp_path / "causes.md"
    arguments = [str(published), *map(str, paths), "--output", str(output), "--commit", "abc"]
    assert main(arguments) == 0
    text = output.read_text(encoding="utf-8")
    assert text.startswith("# The tournament: why just-in-time is behind where it is\n")
    assert "Made at commit abc: 2 conditions, 12 cells, 1 draw of each" in text
    assert "## Goodput" in text and "## Stall" in text and "## Delay" not in text
