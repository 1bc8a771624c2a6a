"""How many of something the pages speak of is how many there are."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.load import names
from sumrate.lab.faults.catalogue import FAULTS
from tests.docs import first_use
from tests.docs.blocks import Run, mark

WORDS = {"nine": 9, "ten": 10, "eleven": 11, "seventeen": 17, "eighteen": 18, "twenty": 20}


def variants(repository: Path, file: str, begins: str, variant: str) -> int:
    """Of what a Rust file enumerates between a line and the brace that closes it."""
    _, found, rest = (repository / file).read_text(encoding="utf-8").partition(begins)
    assert found, f"{file} has no `{begins}`"
    return len(re.findall(variant, rest.partition("\n}")[0], re.MULTILINE))


def planted_mistakes(repository: Path) -> int:
    """Of the model."""
    return variants(
        repository, "crates/fbdt-model/src/lib.rs", "pub enum Bug {", r"^    [A-Z]\w+,$"
    )


def all_schedulers(repository: Path) -> int:
    """Of `--scheduler`."""
    kinds = "crates/fbdt-proto/src/config/scheduler.rs"
    return variants(repository, kinds, "pub enum SchedulerKind {", r"^    [A-Z]\w+,$")


def real_faults(_: Path) -> int:
    """Of `make faults`."""
    return len(FAULTS)


@pytest.mark.parametrize(
    ("page", "sentence", "count"),
    [
        ("docs/reliability.md", r"(\w+) planted mistakes", planted_mistakes),
        ("docs/reliability.md", r"makes (\w+) real faults on real sockets", real_faults),
        ("README.md", r"with (\w+) schedulers", all_schedulers),
    ],
)
def test_a_number_in_words_is_the_number_there_is(
    repository: Path, page: str, sentence: str, count: Callable[[Path], int]
) -> None:
    (word,) = re.findall(sentence, (repository / page).read_text(encoding="utf-8"))
    assert WORDS.get(word.lower()) == count(repository), f"{page}: {word}"


def test_the_readme_counts_experiments_and_claims(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["sumrate-lab", "verdicts", "--json"])
    assert cli.main() == 0
    entries = json.loads(capsys.readouterr().out)
    claims = Counter(e["verdict"] for e in entries if e["document"] != "goal")
    text = " ".join((repository / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"Of the {claims.total()} published claims in the catalogue of {len(names())} experiments, "
        f"{claims['holds']} hold, {claims['depends']} hold in part, {claims['fails']} do not hold "
        f"and {claims['unmeasured']} are not measured"
    ) in text


def test_the_first_use_is_the_whole_story_of_the_readme(repository: Path) -> None:
    commands = [block.text.split() for block in first_use.story()]
    assert commands[0][:2] == ["sumrate", "serve"]
    assert ["sumrate", "up"] in [words[:2] for words in commands]
    assert commands[-1][:2] == ["sumrate", "status"]
    kept = [mark(block) for block in first_use.story()]
    assert {how.host for how in kept if isinstance(how, Run)} >= {first_use.ON_THE_LAPTOP}
    assert first_use.PACKAGE in (repository / first_use.README).read_text(encoding="utf-8")
