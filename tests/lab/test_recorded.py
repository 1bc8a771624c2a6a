"""Of which code results are, and what changed since."""

import json
import subprocess
from pathlib import Path

import pytest

from sumrate.history import commits_since
from sumrate.lab.experiment.recorded import TRANSPORT, changes_since, recorded
from sumrate.lab.programs import REPOSITORY
from sumrate.verdict.model import Recorded


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")
    argv = ["git", "-C", str(root), *who, *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def commit(root: Path, file: str) -> str:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{path.exists() and path.read_text()}.", encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", file)
    return git(root, "rev-parse", "HEAD")


def test_commits_to_the_transport_are_counted_and_no_others(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    first = commit(tmp_path, f"{TRANSPORT[0]}/lib.rs")
    assert changes_since(first, tmp_path) == 0
    commit(tmp_path, "README.md")
    commit(tmp_path, f"{TRANSPORT[1]}/lib.rs")
    second = commit(tmp_path, f"{TRANSPORT[0]}/lib.rs")
    assert changes_since(f"{first}-dirty", tmp_path) is None
    assert changes_since("0" * 40, tmp_path) is None
    assert git(tmp_path, "rev-list", "--count", f"{first}..HEAD") == "3"
    # What is known of a commit is kept: another name for the first asks anew.
    assert changes_since(first[:20], tmp_path) == 2
    assert changes_since(second, tmp_path) == 0


def test_a_commit_beside_the_history_is_not_counted_from(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    base = commit(tmp_path, "one/code")
    git(tmp_path, "checkout", "--quiet", "-b", "aside")
    aside = commit(tmp_path, "two/code")
    git(tmp_path, "checkout", "--quiet", "main")
    commit(tmp_path, "one/code")
    assert commits_since(base, ["one"], tmp_path) == 1
    assert commits_since(base, ["two"], tmp_path) == 0
    assert commits_since(base, ["one", "two"], tmp_path) == 1
    assert commits_since(aside, ["one"], tmp_path) is None
    assert commits_since(base, ["one"], tmp_path / "nowhere") is None


def test_the_transport_is_there() -> None:
    assert all((REPOSITORY / folder / "lib.rs").is_file() for folder in TRANSPORT)


@pytest.mark.parametrize(
    ("name", "ours"),
    [("lap", True), ("fair-coupling", True), ("calls", True), ("tcp-delay", False)],
)
def test_results_with_a_scheme_of_the_transport_have_changes(
    tmp_path: Path, name: str, ours: bool
) -> None:
    head = git(REPOSITORY, "rev-parse", "HEAD")
    (tmp_path / name).mkdir()
    manifest = json.dumps({"commit": head, "started": "2026-11-23T10:00:00"})
    (tmp_path / name / "manifest.json").write_text(manifest, encoding="utf-8")
    found = list(recorded(tmp_path, [name, "blackout"]))
    assert found == [Recorded(name, "2026-11-23", head, 0 if ours else None)]
    words = f"{name} 2026-11-23 at {head[:10]}"
    assert found[0].words() == (f"{words}, no commits to the transport since" if ours else words)


@pytest.mark.parametrize(("changes", "words"), [(1, "1 commit to"), (12, "12 commits to")])
def test_changes_are_counted_in_words(changes: int, words: str) -> None:
    assert words in Recorded("lap", "2026-11-23", "0" * 40, changes).words()
