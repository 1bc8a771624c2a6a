"""Skipped tests are counted, and CI knows which to expect."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skips
from skips import Expected, Skip, findings, rust_skips
from tests import everyday

SAID = """\
running 3 tests
test rows ... ignored, a table for people
SKIPPED socket::tests::short_queue: this machine allows no user namespaces
test plain ... okSKIPPED private::given_away: only root can give files away
test src/lib.rs - (line 4) ... ok
test result: ok. 6 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
NAMESPACES = Skip("socket::tests::short_queue", "this machine allows no user namespaces")


def test_skips_of_rust_are_read() -> None:
    assert list(rust_skips(SAID.splitlines())) == [
        Skip("rows", "a table for people"),
        NAMESPACES,
        Skip("private::given_away", "only root can give files away"),
    ]


def test_a_skip_must_be_expected_and_an_expected_one_must_happen() -> None:
    known = Expected("socket::*", "no user namespaces", "made up")
    assert findings([NAMESPACES], [known]) == []
    (unexpected,) = findings([NAMESPACES], [])
    assert "does not name it" in unexpected
    (gone,) = findings([], [known])
    assert "take it out" in gone
    sometimes = Expected("socket::*", "no user namespaces", "made up", sometimes=True)
    assert findings([], [sometimes]) == findings([NAMESPACES], [sometimes]) == []
    assert len(findings([Skip(NAMESPACES.test, "another reason")], [known])) == 2


def test_the_list_of_expected_skips_is_read(repository: Path) -> None:
    entries = skips.expected(repository / skips.EXPECTED)
    assert all(entry.because and entry.reason and entry.test for entry in entries)


def test_the_command_runs_tests_and_notes_their_skips(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes" / "skips"
    program = f"import sys; sys.stderr.write({SAID!r}); sys.exit(3)"
    assert skips.main(["rust", str(notes), "--", sys.executable, "-c", program]) == 3
    assert "4 tests passed, 0 failed, 2 were skipped, 1 ignored" in capfd.readouterr().out
    empty = tmp_path / "expected.toml"
    empty.write_text("")
    assert skips.main(["check", str(notes), str(empty)]) == 1
    assert "rows was skipped (a table for people)" in capfd.readouterr().err
    lines = (f'[[skip]]\ntest = "{s.test}"\nreason = "{s.reason}"\nbecause = "made up"\n'
             for s in skips.read(notes))  # fmt: skip
    empty.write_text("".join(lines))
    assert skips.main(["check", str(notes), str(empty)]) == 0


def test_pytest_notes_its_skips(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    hooks = (repository / "tests" / "conftest.py").read_text()
    (folder / "conftest.py").write_text(hooks)
    (folder / "test_planted.py").write_text(
        "import pytest\n\n\ndef test_planted() -> None:\n    pytest.skip('not here')\n"
    )
    notes = tmp_path / "skips"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--skips", str(notes), "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = notes.read_text().splitlines()
    assert json.loads(line) == {
        "test": "test_planted.py::test_planted",
        "reason": "not here",
    }


def test_each_listed_name_is_of_a_test(repository: Path) -> None:
    for begin in everyday.beginnings():
        file, _, name = begin.partition("::")
        text = (repository / file).read_text()
        assert f"\ndef {name or 'test_'}" in text, f"{begin}: there is no such test"


def test_system_tests_are_long_but_for_one_real_run_of_each_kind() -> None:
    assert everyday.is_long("tests/system/test_faults.py::test_x", system=True)
    assert not everyday.is_long("tests/lab/test_links.py::test_x", system=False)
    for kind, begins in everyday.EVERYDAY.items():
        assert not any(everyday.is_long(begin, system=True) for begin in begins), kind
