"""Each rule of the protocol is described once, has one home file and a test."""

from pathlib import Path

import rules
from rules import Rule


def test_every_rule_has_one_home_and_a_test(repository: Path) -> None:
    found = rules.load(repository)
    assert len(found) >= 15
    assert rules.findings(found) == []


def loaded(**sources: str) -> list[Rule]:
    """Two rules, cited by files of the product."""
    found = rules.defined("**F1 Offsets.** Text.\n\n**F3b Just in time.** Text (F1).\n", "wire")
    for name, source in sources.items():
        rules.cite(found, f"crates/fbdt-proto/src/{name}.rs", source)
    return found


def test_a_home_a_citation_and_a_test_are_told_apart() -> None:
    first, second = loaded(
        frame="//! Frames (F1).\nfn f1_f3b_works() {}",
        other="//! Others.\n//!\n//! Rule: F1.",
        place="//! Places bytes (F3b).\nlet x = 1; // F12",
    )
    assert (first.title, first.page) == ("Offsets", "wire")
    assert first.homes == ["crates/fbdt-proto/src/frame.rs"]
    assert first.citing == ["crates/fbdt-proto/src/other.rs"]
    assert first.tests == second.tests == [("crates/fbdt-proto/src/frame.rs", "f1_f3b_works")]
    assert rules.findings([first, second]) == []


def test_a_missing_or_second_home_and_a_missing_test_are_found() -> None:
    first, second = rules.findings(loaded(a="//! A (F1, F3b).\nfn f1_a() {}", b="//! B (F1)."))
    assert "F1 is in the first line of crates/fbdt-proto/src/a.rs, crates/" in first
    assert "f3b_" in second
    (found,) = rules.findings(loaded(a="//! A (F3b).\nfn f1_f3b_a() {} // F1"))
    assert "no file" in found


def test_a_rule_that_is_described_twice_is_found() -> None:
    found = loaded(a="//! A (F1, F3b).\nfn f1_f3b_a() {}")
    assert rules.findings([*found, found[0]]) == ["F1 is described 2 times"]


def test_tests_are_no_homes() -> None:
    assert not rules.is_product("crates/fbdt-coupling/src/tests.rs")
    assert not rules.is_product("crates/fbdt-proto/tests/turns.rs")
    assert not rules.is_product("crates/fbdt-sim/src/coverage.rs")
    assert rules.is_product("crates/fbdt/src/dial/race.rs")


def test_the_page_leads_from_a_rule_to_its_file_and_its_tests() -> None:
    page = rules.page(loaded(a="//! A (F1, F3b).\nfn f1_f3b_bytes_leave() {}"))
    home = "[`fbdt-proto/src/a.rs`](../../crates/fbdt-proto/src/a.rs)"
    assert f"| F1 | [Offsets](../wire.md) | {home} | [1](#f1-offsets) |" in page
    assert "    - bytes leave\n" in page
