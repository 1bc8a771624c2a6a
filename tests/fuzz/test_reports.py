"""What libFuzzer and the soak say ends up in the documents as it is."""

import json
from pathlib import Path
from typing import Any

import pytest

import fuzz
import trust_tables

WORDS = """INFO: Loaded 1 modules   (5123 inline 8-bit counters): 5123 [0x1, 0x2),
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#900\tNEW    cov: 321 ft: 987 corp: 4/9b lim: 4 exec/s: 0 rss: 30Mb
stat::number_of_executed_units: 4242
"""


def soak_report(failed: int = 0) -> dict[str, Any]:
    fault = {"injected": 7, "seeds": 5, "bytes": 3_000_000, "failed_seeds": 0}
    seen = {"seeds": 4, "first": 3}
    return {
        "seeds": 1000, "first": 0, "wall_s": 2.5, "threads": 2, "sessions": 1100, "failed": failed,
        "bytes": 9_000_000, "virtual_ms": 7_200_000,
        "faults": {"loss": fault | {"longest_recovery_ms": 61}},
        "rules": {"F10": {"an idle copy": seen}, "F9b": {"a redial": seen}},
    }  # fmt: skip


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    marks = "".join(f"<!-- {n}: begin -->\n<!-- {n}: end -->\n" for n in ("faults", "rules"))
    (tmp_path / "reliability.md").write_text(marks)
    (tmp_path / "security.md").write_text("<!-- fuzzing: begin -->\n<!-- fuzzing: end -->\n")
    monkeypatch.setattr(trust_tables, "RELIABILITY", tmp_path / "reliability.md")
    monkeypatch.setattr(trust_tables, "SECURITY", tmp_path / "security.md")
    return tmp_path


def written(folder: Path, report: dict[str, Any]) -> list[str]:
    (folder / "soak.json").write_text(json.dumps(report))
    return ["--soak", str(folder / "soak.json")]


def test_libfuzzers_words_are_understood() -> None:
    found = fuzz.outcome("trace", WORDS, 0)
    assert found["executions"] == 4242
    assert (found["edges"], found["features"], found["edges_linked"]) == (321, 987, 5123)
    assert not found["failed"]
    crash = WORDS + "artifact_prefix='x'; Test unit written to out/crash-1\n"
    assert fuzz.outcome("trace", crash, 77)["input"] == "out/crash-1"
    assert fuzz.outcome("trace", crash, 77)["failed"]


def test_tables_are_written_and_agree(documents: Path) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main([*argv, "--check"]) == 1, "nothing is written yet"
    assert trust_tables.main(argv) == 0
    text = (documents / "reliability.md").read_text()
    assert "| loss | 7 | 5 | 3 | 0 | 61 |" in text
    assert text.index("F9b") < text.index("F10")
    assert trust_tables.main([*argv, "--check"]) == 0


def test_a_new_fault_or_a_failure_is_out_of_step(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    more = soak_report()
    more["faults"]["flood"] = more["faults"]["loss"]
    assert trust_tables.main([*written(documents, more), "--check"]) == 1
    assert "faults lacks flood" in capsys.readouterr().out
    assert trust_tables.main(written(documents, soak_report(failed=1))) == 2
    assert trust_tables.main(["--soak", str(documents / "none.json")]) == 2


def test_every_target_has_a_program_and_a_corpus() -> None:
    for target in fuzz.targets():
        assert any((fuzz.CORPUS / target).iterdir()), target
