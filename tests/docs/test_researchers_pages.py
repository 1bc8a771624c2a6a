"""Tables of the pages for researchers name what the code has."""

import re
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from sumrate.lab.cli import command_line
from sumrate.lab.experiment.catalogue import entries
from sumrate.lab.experiment.kept import KEPT
from sumrate.lab.experiment.load import load, names
from sumrate.verdict.metrics import registry

SHARES = {1: "of the half that is one TCP's", 2: "of the third that", 4: "of the fifth that"}
"""Connections beside fair control, and words of the check that measures its share."""


def section(text: str, title: str) -> str:
    """What stands below a heading, up to the next one of its level."""
    found = re.search(rf"^(#+) {title}\n(.*?)(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no heading `{title}`"
    return found[2]


def first_column(text: str) -> list[str]:
    """Names in code in the first column of a table."""
    return re.findall(r"^\| `([\w-]+)`", text, re.MULTILINE)


def of_page(repository: Path, page: str, title: str) -> list[str]:
    return first_column(section((repository / page).read_text(encoding="utf-8"), title))


def schedulers(repository: Path) -> set[str]:
    """Names of the flag's values."""
    code = (repository / "crates/fbdt-proto/src/config/scheduler.rs").read_text(encoding="utf-8")
    _, begun, rest = code.partition("pub const fn name(self)")
    assert begun
    return set(re.findall(r'=> "([\w-]+)",', rest.partition("pub const fn")[0]))


def emulator_parameters(repository: Path) -> set[str]:
    """Keys that a direction of a link may have."""
    path = repository / "crates/sumrate-link/src/config/parameters.rs"
    _, begun, rest = path.read_text(encoding="utf-8").partition("pub struct WrittenUpdate {")
    assert begun
    return set(re.findall(r"^    pub (\w+): Option", rest.partition("\n}")[0], re.MULTILINE))


def test_the_table_of_schedulers_is_whole(repository: Path) -> None:
    told = of_page(repository, "docs/schedulers.md", "All schedulers")
    assert len(told) == len(set(told))
    assert set(told) == schedulers(repository)
    assert "minrtt" in told


def test_the_table_of_the_emulators_parameters_is_whole(repository: Path) -> None:
    told = of_page(repository, "docs/link-emulator.md", "Parameters of a direction")
    assert set(told) == emulator_parameters(repository)
    assert "loss_burst" in told


def test_the_shares_of_fair_control_are_the_measured_ones(repository: Path) -> None:
    text = (repository / "docs/coupling.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert {int(row[0]) for row in rows} == set(SHARES)
    (judged,) = (entry for entry in entries(KEPT) if entry.id == "S15")
    for beside, share, one in rows:
        (found,) = (
            check.found()
            for check in judged.checks
            if SHARES[int(beside)] in check.statement and "RTTs" not in check.statement
        )
        assert float(share) == pytest.approx(float(found.split()[0]), abs=0.005)
        assert float(one) == pytest.approx(1 / (1 + int(beside)), abs=0.005)


def test_a_heading_that_is_missing_is_found() -> None:
    with pytest.raises(AssertionError, match="no heading"):
        section("# One\ntext\n", "Two")
    assert section("# One\nfirst\n# Two\nsecond\n", "One") == "first\n"


def metrics_told(repository: Path) -> set[str]:
    """Whole names of metrics in the laboratory's table; names with a pattern are left out."""
    text = (repository / "docs/laboratory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", section(text, "Metrics"), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([a-z][a-z\d_]+)`", row)}


def test_the_laboratorys_metrics_exist(repository: Path) -> None:
    told = metrics_told(repository)
    assert len(told) > 30
    checked = {check.value.metric for name in names() for check in load(name).checks}
    assert not told - registry().keys() - checked


PAGES = ("figures", "laboratory", "traces", "channel", "initial-access", "schedulers",
         "congestion-control", "coupling", "sender", "wire")  # fmt: skip


def commands_told(repository: Path) -> list[list[str]]:
    """Commands of the laboratory in running text; words in capitals stand for a name."""
    found = []
    for page in PAGES:
        text = (repository / f"docs/{page}.md").read_text(encoding="utf-8")
        found += re.findall(r"`sumrate-lab\s+([^`]+)`", text.replace("\n", " "))
    return [command.split() for command in found if not re.search(r"\b[A-Z]{2,}\b|\[", command)]


def is_understood(words: list[str]) -> bool:
    try:
        command_line().parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        print(error)
        return False
    return True


def test_commands_in_running_text_exist(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = commands_told(repository)
    assert len(told) > 25
    assert not [words for words in told if not is_understood(words)]
    assert not is_understood(["verdict"])
    assert "Unknown command" in capsys.readouterr().out
