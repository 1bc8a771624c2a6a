"""What other rules change is told scheduler by scheduler, against the same one's own rules."""

import json
from pathlib import Path

import pytest

from sumrate.report.tournament.rules import WORDS, changes, main, summary
from sumrate.report.tournament.table import TableError
from tests.report.tournament.test_standings import SCHEMA, row, table


@pytest.fixture
def own(tmp_path: Path) -> Path:
    rows = [
        row("minrtt", 50, 20, 40),
        row("minrtt", 40, 30, 50, loss=0.02),
        row("just-in-time", 55, 5, 2),
        row("just-in-time", 44, 5, 2, loss=0.02),
    ]
    return table(tmp_path / "own.json", rows)


@pytest.fixture
def product(tmp_path: Path) -> Path:
    like: dict[str, str | float] = {"rules": "product"}
    rows = [
        row("minrtt", 51, 4, 8, **like),
        row("minrtt", 36, 6, 10, loss=0.02, **like),
        # Own rules were not run with these.
        row("minrtt", 1, 900, 900, loss=0.05, **like),
    ]
    return table(tmp_path / "product.json", rows)


def test_goodput_and_waits_are_against_the_same_schedulers_own(own: Path, product: Path) -> None:
    (change,) = changes(own, product)
    assert (change.scheduler, change.rules) == ("minrtt", "product")
    assert change.ratios == {"loss": (1.02, 0.9)}
    assert change.stall_ms == (25, 5)
    assert change.in_order_ms == (45, 9)
    text = summary([change])
    assert "With early copies (F6) and the commit limit by rate (F7) (`--rules product`)" in text
    assert "| minrtt | 0.960 | 0.900 | 0 of 2 | 1 of 2 | 25 → 5 | 45 → 9 |" in text


def test_every_set_of_rules_has_words(repository: Path) -> None:
    schema = json.loads((repository / SCHEMA).read_text(encoding="utf-8"))
    rules = schema["$defs"]["row"]["properties"]["rules"]["enum"]
    assert {"published", *WORDS} == set(rules)


def test_tables_that_cannot_be_compared_are_refused(
    own: Path, product: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TableError, match="other than those of"):
        changes(own, own)
    both = table(tmp_path / "both.json", [row("ecf", 1, 1, 1), row("ecf", 1, 1, 1, rules="bare")])
    with pytest.raises(TableError, match="one set of rules"):
        changes(own, both)
    drawn = [row("minrtt", 51, 4, 8, rules="product", seed=seed) for seed in (1, 2)]
    with pytest.raises(TableError, match="not as many draws"):
        changes(own, table(tmp_path / "more.json", drawn))
    older = json.loads(product.read_text(encoding="utf-8"))
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**older, "behaviour": "0123456789abcdef"}), encoding="utf-8")
    assert main([str(own), str(old)]) == 2
    assert "is of other schedulers" in capsys.readouterr().err
    far = table(tmp_path / "far.json", [row("minrtt", 1, 1, 1, loss=0.5, rules="bare")])
    with pytest.raises(TableError, match="no condition of"):
        changes(own, far)
    assert main([str(own), str(far)]) == 2
    assert "no condition of" in capsys.readouterr().err
    assert main([str(own), str(product)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# The tournament: what") and "3 conditions, 3 cells" in shown


def test_the_summary_is_written(own: Path, product: Path, tmp_path: Path) -> None:
    written = tmp_path / "rules.md"
    assert main([str(own), str(product), "--output", str(written), "--commit", "abc"]) == 0
    assert "Made at commit abc: 3 conditions" in written.read_text(encoding="utf-8")
