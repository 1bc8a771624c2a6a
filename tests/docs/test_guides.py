"""The guides that add something to the project say what the code takes."""

import re
from pathlib import Path

from sumrate.lab.experiment.load import load
from tests.docs.blocks import Given, blocks, mark

EXPERIMENT = "docs/guide/add-an-experiment.md"
SCHEDULER = "docs/guide/add-a-scheduler.md"


def given(repository: Path, page: str) -> dict[str, str]:
    """The files that a page shows, by name."""
    text = (repository / page).read_text(encoding="utf-8")
    found = blocks(text, page)
    return {how.name: b.text for b in found if isinstance(how := mark(b), Given)}


def test_the_experiment_of_the_guide_is_one(repository: Path, tmp_path: Path) -> None:
    files = given(repository, EXPERIMENT)
    text = "\n".join([files["half-loss.toml"], files["check.toml"]])
    (tmp_path / "half-loss.toml").write_text(text, encoding="utf-8")
    (tmp_path / "claims.toml").write_bytes((repository / "experiments/claims.toml").read_bytes())
    experiment = load("half-loss", tmp_path)
    assert [scheme.kind for scheme in experiment.schemes] == ["alone", "mptcp", "sumrate"]
    (check,) = experiment.checks
    assert check.at_least


def test_the_scheduler_of_the_guide_has_what_the_trait_demands(repository: Path) -> None:
    """Methods without a default body, and types that exist under these names."""
    (code,) = given(repository, SCHEDULER).values()
    schedule = repository / "crates/fbdt-proto/src/schedule/mod.rs"
    trait = schedule.read_text(encoding="utf-8").partition("pub trait Scheduler")[2]
    trait = trait.partition("\n}\n")[0]
    demanded = re.findall(r"^    (fn [^{;]*);$", trait, re.MULTILINE)
    assert len(demanded) > 2
    for signature in demanded:
        name = signature.partition("(")[0]
        written = re.search(rf"^    {name}\(.*\{{$", code, re.MULTILINE)
        assert written, name
        assert written[0].rpartition("->")[2].rstrip(" {") == signature.rpartition("->")[2]
    names = (repository / "crates/fbdt-units/src/names.rs").read_text(encoding="utf-8")
    assert "    InOrder," in names
