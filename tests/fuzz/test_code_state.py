"""A table says which code it is of, and a change of that code is seen."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import code_state


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two directories."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one/code.rs").write_text("1\n")
    (tmp_path / "two/code.rs").write_text("2\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        commit(tmp_path, *words)
    return tmp_path


def commit(project: Path, *words: str) -> None:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", "-C", str(project), *who, *words], check=True)


def trees(project: Path) -> dict[str, str]:
    found = code_state.state(project, ["one", "two"])
    assert found is not None
    kept: dict[str, str] = found["trees"]
    return kept


def test_what_is_not_committed_counts_and_nothing_else_changes(project: Path) -> None:
    before = trees(project)
    (project / "one/more.rs").write_text("3\n")
    (project / "elsewhere").write_text("4\n")
    after = trees(project)
    assert after["one"] != before["one"]
    assert after["two"] == before["two"]
    words = ["git", "-C", str(project), "status", "--porcelain"]
    status = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert status.splitlines() == ["?? elsewhere", "?? one/more.rs"], "the index is left alone"
    commit(project, "add", ".")
    commit(project, "commit", "-q", "-m", "second")
    assert trees(project) == after, "committed as it was"


def test_commits_are_counted_by_directory(project: Path) -> None:
    first = code_state.git("rev-parse", "HEAD", root=project)
    (project / "one/code.rs").write_text("5\n")
    commit(project, "commit", "-q", "-a", "-m", "second")
    assert code_state.commits_since(first, ["one"], project) == 1
    assert code_state.commits_since(first, ["two"], project) == 0
    assert code_state.commits_since("0" * 40, ["one"], project) is None
    (project / "one/code.rs").write_text("6\n")
    (project / "two/code.rs").write_text("7\n")
    commit(project, "commit", "-q", "-a", "-m", "third")
    assert code_state.commits_since(first, ["one", "two"], project) == 2, "each commit counts once"


def test_outside_a_repository_nothing_is_said(tmp_path: Path) -> None:
    assert code_state.state(tmp_path / "nowhere") is None


WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('{\"failed\": 0}')"


@pytest.mark.skipif(code_state.state() is None, reason="this is no git repository")
def test_a_report_is_told_its_code(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = [str(report), "--", sys.executable, "-c", WRITES, str(report)]
    assert code_state.main(words) == 0
    found: dict[str, Any] = json.loads(report.read_text())
    assert found["failed"] == 0
    assert "crates/fbdt-proto" in found["code"]["trees"]
    assert found["code"]["changed_meanwhile"] is False


def test_the_commands_own_status_is_given_and_bad_calls_are_refused(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    status = [str(report), "--", sys.executable, "-c", "raise SystemExit(7)"]
    assert code_state.main(status) == 7
    assert not report.exists()
    assert code_state.main([str(report)]) == 2
    assert code_state.main([str(report), "--", "no-such-program"]) == 127
