"""Every constant of the sender can be varied, and every listed rule switched off."""

from pathlib import Path

import pytest

import ablation
import constants
import variants
from variant_runs import DOES_NOT_BUILD, Judge, Row, Run
from variants import UNMODIFIED, Edit, Variant


def rows(*goodputs: float, stall: float = 0.0, is_broken: bool = False) -> list[Row]:
    return [Row((goodput, stall, 0.0, 0.0), is_broken) for goodput in goodputs]


def test_every_constant_is_varied_to_what_its_factor_says(repository: Path, tmp_path: Path) -> None:
    every = list(variants.of_constants(repository))
    assert len(every) > 60
    code = constants.constants(repository) + constants.settings(repository)
    originals = {(c.file, c.name): c.values for c in code}
    unusual = []
    for variant in every:
        for path, text in variants.edited(repository, variant).items():
            copy = tmp_path / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
            found = constants.constants(tmp_path) + constants.settings(tmp_path)
            file, _, name = variant.name.partition(":")
            factor = {"halved": 0.5, "doubled": 2.0}[variant.change]
            [varied] = [c.values for c in found if (c.file, c.name) == (f"{file}.rs", name)]
            original = originals[f"{file}.rs", name]
            if not constants.is_same(varied, tuple(value * factor for value in original)):
                unusual.append((name, variant.change))
            copy.unlink()
    assert unusual == [
        ("RECURRING", "halved"),  # of 3
        ("FEW", "halved"),  # of 3
        ("copy_margin", "halved"),  # a session refuses less than 1
        ("LATE_RTTS", "halved"),  # of 3
        ("DEFAULT", "doubled"),  # a share is at most 1
    ]


def test_every_rule_can_be_switched_off(repository: Path) -> None:
    rules = list(variants.of_rules(repository))
    assert len({rule.name for rule in rules}) == len(rules) > 15
    for rule in rules:
        assert variants.edited(repository, rule), rule.name


def test_text_that_is_not_there_once_is_refused() -> None:
    edit = Edit("a.rs", "one", "two")
    assert edit.applied("one three") == "two three"
    for text in ("three", "one one"):
        with pytest.raises(ValueError, match=r"a\.rs has"):
            edit.applied(text)


def test_losing_and_winning_draws_are_counted() -> None:
    base = rows(100, 100, 100, 100) + rows(0, is_broken=True)
    run = Run(rows(97, 99, 103, 0) + rows(5))
    result = ablation.compared(Variant("a", "off"), run, base)
    assert (result.lose["goodput"], result.win["goodput"]) == (2 / 5, 2 / 5)
    broken = Run(rows(100, 100, 100) + rows(0, is_broken=True) + rows(0, is_broken=True))
    result = ablation.compared(Variant("a", "off"), broken, base)
    assert (result.lose["stall"], result.win["stall"]) == (1 / 5, 0)
    assert result.goodput == 1.0


@pytest.mark.parametrize(
    ("stall", "is_worse"), [(106, False), (112, True), (4, False)], ids=["share", "both", "least"]
)
def test_a_stall_is_worse_by_share_and_by_time(stall: float, is_worse: bool) -> None:
    before = 1.0 if stall < 5 else 100.0
    assert ablation.MEASURES[1].is_worse(stall, before) == is_worse


@pytest.mark.parametrize(
    ("lose", "win", "verdict"),
    [
        (400, 100, "pays"),
        (210, 190, "pays?"),
        (100, 400, "does not pay: better so"),
        (190, 210, "does not pay: better so?"),
        (2, 1, "does not pay"),
        (100, 100, "does not pay?"),
    ],
)
def test_a_rule_pays_if_one_percent_lose_without_it(lose: int, win: int, verdict: str) -> None:
    assert ablation.verdict([(lose, win), (1, 0)], 2000) == verdict


def test_a_variant_without_effect_or_build_is_told() -> None:
    same = ablation.compared(UNMODIFIED, Run(rows(1, 2)), rows(1, 2, 3))
    assert same.verdict == "does not pay: no effect in 2 draws"
    failed = ablation.compared(UNMODIFIED, Run([], failure=DOES_NOT_BUILD), rows(1))
    assert failed.verdict == DOES_NOT_BUILD
    lines = ablation.table([same, failed]).splitlines()
    assert len({line.count("|") for line in lines}) == 1 and "| `unmodified` |" in lines[2]


def test_outcomes_are_kept_until_the_source_changes(tmp_path: Path) -> None:
    for path in ("Cargo.lock", "rust-toolchain.toml", "crates/fbdt-proto/a.rs"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1", encoding="utf-8")
    folder, variant = tmp_path / "out", Variant("a:B", "halved", (Edit("a.rs", "1", "2"),))
    judge = Judge(tmp_path, folder, draws=2)
    assert not judge.is_known(variant, Run([]))
    judge.keep(variant, Run(rows(1.5, 2), judge_s=3.0))
    assert judge.run(variant) == Run(rows(1.5, 2), judge_s=3.0)
    assert not Judge(tmp_path, folder, draws=3).is_known(variant, Run([])), "a draw is missing"
    assert not judge.is_known(Variant("a:B", "halved", (Edit("a.rs", "1", "3"),)), Run([]))
    (tmp_path / "crates/fbdt-proto/a.rs").write_text("2", encoding="utf-8")
    assert not Judge(tmp_path, folder, draws=2).is_known(variant, Run([]))


def test_a_variant_is_not_run_further_than_it_needs(tmp_path: Path) -> None:
    for path in ("Cargo.lock", "rust-toolchain.toml"):
        (tmp_path / path).touch()
    judge = Judge(tmp_path, tmp_path / "out", draws=2000)
    base, variant = Run(rows(*range(1, 2001))), Variant("a:B", "halved")
    judge.keep(variant, Run(base.rows[:500]))
    assert judge.is_known(variant, base), "it has no effect"
    judge.keep(variant, Run(rows(*[0.5] * 500)))
    assert not judge.is_known(variant, base)
    judge.is_decided = ablation.is_sure
    assert judge.is_known(variant, base)
    judge.keep(variant, Run(rows(*[0.5] * 499)))
    assert not judge.is_known(variant, base)
