"""What libFuzzer and the soak say ends up in the documents as it is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import code_state
import fuzz
import trust_tables
from tests.fuzz import timed

WORDS = """INFO: Loaded 1 modules   (5123 inline 8-bit counters): 5123 [0x1, 0x2),
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#900\tNEW    cov: 321 ft: 987 corp: 4/9b lim: 4 exec/s: 0 rss: 30Mb
stat::number_of_executed_units: 4242
"""


CODE: dict[str, Any] = {
    "commit": "a" * 40,
    "date": "2026-01-02",
    "trees": {"crates/fbdt-proto": "b" * 40, "crates/fbdt-sim": "c" * 40},
    "changed_meanwhile": False,
}


def soak_report(failed: int = 0) -> dict[str, Any]:
    fault: dict[str, Any] = {"injected": 7, "seeds": 5, "bytes": 3_000_000, "failed_seeds": 0}
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
        "code": CODE,
    }  # fmt: skip


SIMULATED = ("faults", "schedulers", "rules")


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    marks = "".join(f"<!-- {n}: begin -->\n<!-- {n}: end -->\n" for n in SIMULATED)
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
    assert "| blest | 40 | 30 | 2 | 0 | 0 |" in text
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


def test_bytes_lost_are_a_column_where_the_report_has_them(documents: Path) -> None:
    counted = soak_report()
    counted["faults"]["loss"]["bytes_lost"] = 0
    assert trust_tables.main(written(documents, counted)) == 0
    text = (documents / "reliability.md").read_text()
    assert "| MB read | bytes lost | seeds failed |" in text
    assert "| loss | 7 | 5 | 3 | 0 | 0 | 61 |" in text


def test_a_table_says_which_code_it_is_of(
    documents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    text = (documents / "reliability.md").read_text()
    assert text.count("Of the code at `aaaaaaaaaaaa` (2026-01-02): `crates/fbdt-proto` `bbbb") == 3
    monkeypatch.setattr(code_state, "state", lambda: CODE)
    assert trust_tables.main([*argv, "--check", "--strict"]) == 0
    assert capsys.readouterr().out == ""


def test_a_table_that_is_older_than_its_code_is_said(
    documents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    later = {**CODE, "trees": {"crates/fbdt-proto": "b" * 40, "crates/fbdt-sim": "d" * 40}}
    monkeypatch.setattr(code_state, "state", lambda: later)
    assert trust_tables.main([*argv, "--check"]) == 0, "figures are old, rows are not"
    said = capsys.readouterr().out
    assert "warning:" in said
    assert "faults is of aaaaaaaaaaaa (2026-01-02), older than crates/fbdt-sim" in said
    assert "fbdt-proto" not in said
    assert trust_tables.main([*argv, "--check", "--strict"]) == 1


@pytest.mark.parametrize(
    ("since", "most", "status"),
    [(3, "3", 0), (4, "3", 1), (0, "0", 0), (1, "0", 1), (None, "1000", 1)],
)
def test_a_table_may_be_so_many_commits_old_and_no_more(
    documents: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    since: int | None,
    most: str,
    status: int,
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    later = {**CODE, "trees": {"crates/fbdt-proto": "d" * 40, "crates/fbdt-sim": "d" * 40}}
    monkeypatch.setattr(code_state, "state", lambda: later)
    asked = []

    def commits_since(commit: str, directories: list[str], _root: Path) -> int | None:
        asked.append((commit, *directories))
        return since

    monkeypatch.setattr(trust_tables, "commits_since", commits_since)
    assert trust_tables.main([*argv, "--check", "--strict-after", most]) == status
    said = capsys.readouterr().out
    words = "an unknown number of commits" if since is None else f"{since} commits"
    assert f"older than crates/fbdt-proto ({words}), crates/fbdt-sim ({words})" in said
    assert ("warning:" in said) == (status == 0)
    assert ("run: make tables" in said) == (status == 1)
    assert ("aaaaaaaaaaaa", "crates/fbdt-proto", "crates/fbdt-sim") in asked, "all together"


@pytest.mark.parametrize(
    ("ages", "status"), [([], 0), (["--strict"], 2), (["--strict-after", "1000"], 2)]
)
def test_an_age_that_git_does_not_tell_is_no_young_one(
    documents: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ages: list[str],
    *,
    status: int,
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    monkeypatch.setattr(code_state, "state", lambda: None)
    assert trust_tables.main([*argv, "--check", *ages]) == status
    assert ("git does not say which code this is" in capsys.readouterr().err) == (status == 2)


def test_ci_bounds_the_age_of_every_table(repository: Path) -> None:
    script = (repository / ".ci/run").read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = [line for line in script.splitlines() if "trust_tables.py" in line]
    given = re.search(r"--check .*--strict-after ([0-9]+)$", line)
    assert given, line
    page = (repository / "docs/reliability.md").read_text(encoding="utf-8")
    assert f"CI gives it {given[1]}." in page


def test_ages_are_checked_without_a_report(
    documents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trust_tables.main(written(documents, soak_report())) == 0
    monkeypatch.setattr(code_state, "state", lambda: CODE)
    assert trust_tables.main(["--check", "--strict"]) == 0
    later = {**CODE, "trees": dict.fromkeys(CODE["trees"], "d" * 40)}
    monkeypatch.setattr(code_state, "state", lambda: later)
    capsys.readouterr()
    assert trust_tables.main(["--check", "--strict"]) == 1
    assert "faults is of aaaaaaaaaaaa (2026-01-02), older than" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        trust_tables.main([])


def test_how_old_a_table_may_be_is_said_once_and_for_a_check(documents: Path) -> None:
    argv = written(documents, soak_report())
    for words in (
        ["--strict-after", "3"],
        ["--strict"],
        ["--check", "--strict-after", "-1"],
        ["--check", "--strict-after", "many"],
        ["--check", "--strict", "--strict-after", "3"],
    ):
        with pytest.raises(SystemExit, match="2"):
            trust_tables.main([*argv, *words])


def test_a_scheduler_that_never_chose_is_no_table(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = soak_report()
    report["schedulers"]["blest"]["placed_seeds"] = 0
    assert trust_tables.main(written(documents, report)) == 2
    assert "blest never chose between paths" in capsys.readouterr().err


def test_tables_without_a_report_are_not_forgotten(
    documents: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    directories = trust_tables.TABLES["fuzzing"]
    then = dict.fromkeys(directories, "e" * 40)
    old = trust_tables.stamp({**CODE, "trees": then}, directories)
    trust_tables.replace(documents / "security.md", "fuzzing", f"| a |\n\n{old}")
    now = {**CODE, "trees": {**then, **CODE["trees"], "fuzz": "d" * 40}}
    monkeypatch.setattr(code_state, "state", lambda: now)
    assert trust_tables.main([*argv, "--check"]) == 0
    said = capsys.readouterr().out
    assert "fuzzing is of aaaaaaaaaaaa (2026-01-02), older than" in said
    assert "fuzz (" in said


@pytest.mark.parametrize(
    ("kept", "problem"),
    [
        ("| target |\n| --- |\n| trace |", True),
        ("", True),
        ("Not made yet: run `make fuzz tables`.", False),
        ("Not made yet: run `make load tables`.", True),
        ("Not made yet: run `make fuzz tables`.\n\n| target |\n| --- |\n| trace |", True),
    ],
)
def test_a_table_without_a_report_says_its_code_or_that_there_is_none(
    documents: Path, kept: str, capsys: pytest.CaptureFixture[str], *, problem: bool
) -> None:
    argv = written(documents, soak_report())
    assert trust_tables.main(argv) == 0
    trust_tables.replace(documents / "security.md", "fuzzing", kept)
    assert trust_tables.main([*argv, "--check"]) == int(problem)
    assert ("fuzzing does not say which state" in capsys.readouterr().out) == problem


def test_what_was_never_made_is_said_in_its_place(documents: Path) -> None:
    assert trust_tables.main(written(documents, soak_report())) == 0
    assert trust_tables.not_made("fuzzing") in (documents / "security.md").read_text()
    assert "Not made yet" not in (documents / "reliability.md").read_text()
    trust_tables.replace(documents / "security.md", "fuzzing", "| kept |")
    assert trust_tables.main(written(documents, soak_report())) == 0
    assert "| kept |" in (documents / "security.md").read_text(), "only nothing is replaced"


def test_a_table_that_does_not_say_its_code_fails(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = soak_report()
    del report["code"]
    argv = written(documents, report)
    assert trust_tables.main(argv) == 1, "it is written, and that is said"
    assert "faults, schedulers, rules: the report does not say" in capsys.readouterr().err
    assert trust_tables.main([*argv, "--check"]) == 1
    assert "does not say which state of crates/fbdt-proto" in capsys.readouterr().out


def test_a_report_of_changing_code_is_no_table(documents: Path) -> None:
    report = soak_report()
    report["code"] = {**CODE, "changed_meanwhile": True}
    assert trust_tables.main(written(documents, report)) == 2


def test_the_kept_tables_say_which_code_they_are_of() -> None:
    kept = trust_tables.kept()
    assert {part.name for part in kept} == set(trust_tables.TABLES) == set(trust_tables.MADE_BY)
    assert [line for part in kept for line in trust_tables.unstamped(part)] == []


def test_the_kept_table_has_every_target_and_no_other() -> None:
    kept = trust_tables.kept_table(trust_tables.SECURITY, "fuzzing")
    wanted = {(target,) for target in [*fuzz.targets(), *fuzz.FILE_TARGETS]}
    assert trust_tables.first_cells(kept, 1) == wanted, "run: make fuzz tables"


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
