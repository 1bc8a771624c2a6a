"""What libFuzzer and the soak say is reported as it is, and a failure fails."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import fuzz
import trust_report
from tests.fuzz import timed

WORDS = """INFO: Loaded 1 modules   (5123 inline 8-bit counters): 5123 [0x1, 0x2),
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#900\tNEW    cov: 321 ft: 987 corp: 4/9b lim: 4 exec/s: 0 rss: 30Mb
stat::number_of_executed_units: 4242
"""


def soak_report(failed: int = 0) -> dict[str, Any]:
    fault: dict[str, Any] = {"injected": 7, "seeds": 5, "bytes": 3_000_000, "bytes_lost": 0}
    fault["failed_seeds"] = 0
    seen = {"seeds": 4, "first": 3}
    return {
        "seeds": 1000, "first": 0, "wall_s": 2.5, "threads": 2, "sessions": 1100, "failed": failed,
        "bytes": 9_000_000, "virtual_ms": 7_200_000,
        "faults": {"loss": fault | {"longest_recovery_ms": 61}},
        "schedulers": {
            "blest": {
                "seeds": 40, "placed_seeds": 30, "bytes": 2_000_000, "bytes_lost": 0,
                "failed_seeds": 0,
            }
        },
        "rules": {"F10": {"an idle copy": seen}, "F9b": {"a redial": seen}},
    }  # fmt: skip


def given(folder: Path, report: dict[str, Any]) -> list[str]:
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


def test_a_report_is_printed_as_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trust_report.main(given(tmp_path, soak_report())) == 0
    text = capsys.readouterr().out
    assert "| loss | 7 | 5 | 3 | 0 | 0 | 61 |" in text
    assert "| blest | 40 | 30 | 2 | 0 | 0 |" in text
    assert text.index("F9b") < text.index("F10")


def test_a_failure_and_what_is_no_report_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trust_report.main(given(tmp_path, soak_report(failed=1))) == 2
    assert "1 seeds failed" in capsys.readouterr().err
    idle = soak_report()
    idle["schedulers"]["blest"]["placed_seeds"] = 0
    assert trust_report.main(given(tmp_path, idle)) == 2
    assert "blest never chose between paths" in capsys.readouterr().err
    (tmp_path / "fuzz.json").write_text(
        '{"targets": [{"target": "dns", "failed": true}], "seconds": 1}'
    )
    assert trust_report.main(["--fuzz", str(tmp_path / "fuzz.json")]) == 2
    assert "dns failed" in capsys.readouterr().err
    assert trust_report.main(["--soak", str(tmp_path / "none.json")]) == 2
    with pytest.raises(SystemExit, match="2"):
        trust_report.main([])


def test_every_target_has_a_program_and_a_corpus() -> None:
    for target in fuzz.targets():
        assert any((fuzz.CORPUS / target).iterdir()), target


def test_a_target_that_does_too_little_has_failed() -> None:
    assert not fuzz.outcome("trace", WORDS, 0, seconds=30)["failed"]
    idle = fuzz.outcome("trace", WORDS.replace("4242", "59"), 0, seconds=30)
    assert idle["failed"]
    assert "59 executions in 30 s, 60 are needed" in idle["too_little"]
    blind = fuzz.outcome("trace", WORDS.replace("cov: 321", "cov: 0"), 0)
    assert blind["failed"]
    assert "0 edges reached" in blind["too_little"]
    silent = fuzz.outcome("trace", "", 0)
    assert silent["failed"], "nothing was said at all"


def test_files_of_the_laboratory_are_fuzzed_for_a_time() -> None:
    assert set(timed.TARGETS) == set(fuzz.FILE_TARGETS)
    for name in timed.TARGETS:
        found = timed.fuzz(name, 1.0)
        assert not found["failed"]
        assert found["executions"] > 0
        assert 0 < found["edges"] < found["edges_linked"]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> str:
    """A target with a mistake."""

    def check(_folder: Path, content: bytes) -> None:
        assert content[:1] < b"\x80", "the first byte is too large"

    target = timed.Target(st.binary(), check, (timed.PACKAGE / "traces/trace.py",))
    monkeypatch.setitem(timed.TARGETS, "planted", target)
    return "planted"


@pytest.mark.usefixtures("planted")
def test_a_planted_mistake_is_found_and_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    found = timed.fuzz("planted", 20.0)
    assert found["failed"]
    assert bytes.fromhex(found["input"]) == b"\x80"
    assert "the first byte is too large" in capsys.readouterr().err


def test_a_file_that_failed_is_run_again(
    planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "failed-input"
    kept.write_bytes(b"\x80 and more")
    assert timed.main([planted, str(kept)]) == 1
    assert "the first byte is too large" in capsys.readouterr().err
    kept.write_bytes(b"\x7f")
    assert timed.main([planted, str(kept)]) == 0
    assert "nothing found" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        timed.main([planted, str(tmp_path / "none")])


def test_the_command_that_is_said_has_the_file_that_failed() -> None:
    for target, words in {
        "trace_file": "-m tests.fuzz.timed trace_file out/failed-input",
        "trace": "target/fuzz/release/fuzz_trace out/failed-input",
    }.items():
        assert fuzz.again({"target": target, "input": "out/failed-input"}).endswith(words)
        assert fuzz.again({"target": target, "input": None}).endswith(target)
