"""A result says which programs made it, and that they were not of this source if so."""

import hashlib
import os
from pathlib import Path

import pytest

from sumrate.lab import built
from sumrate.lab.experiment.keeping import objections
from tests.lab.test_keep import put, whole


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose one program was built after its one source was written."""
    folder = tmp_path / "target" / "release"
    folder.mkdir(parents=True)
    source = tmp_path / "a folder" / "main.rs"
    source.parent.mkdir()
    source.write_text("fn main() {}")
    (folder / "sumrate").write_bytes(b"program")
    (folder / "made.o").write_bytes(b"made by a build script")
    (tmp_path / "one" / "src").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "one" / "src" / "lib.rs").write_text("")
    os.utime(tmp_path / "one" / "src" / "lib.rs", (1000, 1000))
    spaced = str(source).replace(" ", "\\ ")
    tree = tmp_path / "other" / ".." / "one" / "src"
    listed = f"{folder / 'sumrate'}: {spaced} {tree} {folder / 'made.o'}\n"
    (folder / "sumrate.d").write_text(listed)
    os.utime(source, (1000, 1000))
    os.utime(folder / "sumrate", (2000, 2000))
    monkeypatch.setattr(built, "REPOSITORY", tmp_path)
    monkeypatch.setattr(built, "binary_folder", lambda: folder)
    return source


def test_a_program_of_this_source_is_told_by_its_digest(here: Path) -> None:
    assert here.is_file()
    assert built.digests() == {"sumrate": hashlib.sha256(b"program").hexdigest()}
    assert built.behind() == []


def test_a_source_that_was_changed_later_is_named(here: Path) -> None:
    os.utime(here, (3000, 3000))
    (said,) = built.behind()
    assert "before a folder/main.rs was changed: run `make build`" in said


def test_an_example_that_a_scheme_is_run_with_is_looked_at_too(here: Path) -> None:
    folder = here.parent.parent / "target" / "release" / "examples"
    folder.mkdir()
    program = folder / "message_relay"
    program.write_bytes(b"relay")
    program.with_suffix(".d").write_text(f"{program}: {str(here).replace(' ', chr(92) + ' ')}\n")
    os.utime(program, (2000, 2000))
    assert built.digests()["message_relay"] == hashlib.sha256(b"relay").hexdigest()
    assert built.behind() == []
    os.utime(program, (500, 500))
    (said,) = built.behind()
    assert said.endswith("run `cargo build --release --locked -p fbdt --example message_relay`")


def test_a_file_of_a_folder_that_was_changed_later_is_noticed(here: Path) -> None:
    os.utime(here.parent.parent / "one" / "src" / "lib.rs", (3000, 3000))
    (said,) = built.behind()
    assert "before one/src was changed" in said


def test_a_program_of_another_folder_is_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "REPOSITORY", here.parent / "elsewhere")
    (said,) = built.behind()
    assert "built from another folder" in said


def test_such_a_result_is_not_kept(tmp_path: Path) -> None:
    assert objections(put(tmp_path / "one", whole())) == []
    said = "sumrate was built before crates/fbdt/src/lib.rs was changed: run `make build`"
    assert objections(put(tmp_path / "two", {**whole(), "programs_behind": [said]})) == [
        f"lap: {said}"
    ]
