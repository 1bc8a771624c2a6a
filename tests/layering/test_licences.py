"""The licence check judges expressions rightly and sees each kind of planted violation."""

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

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


def crate(**fields: str | None) -> dict[str, Any]:
    whole = {"name": "a", "version": "1.0.0", "license": "MIT", "source": check_licences.SOURCE}
    return {"packages": [whole | fields]}


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ({"license": "GPL-3.0-only"}, "GPL-3.0-only"),
        ({"license": None}, "not allowed"),
        ({"source": "git+https://example.org/a"}, "only crates.io"),
        ({"name": "openssl-sys"}, "rustls"),
    ],
)
def test_a_planted_crate_is_found(planted: dict[str, Any], word: str) -> None:
    found = list(check_licences.crate_findings(crate(**planted), {"openssl-sys"}))
    assert len(found) == 1
    assert word in found[0]
    assert list(check_licences.crate_findings(crate(), {"a"})) == []
    # What is known of and not built does no harm.
    assert list(check_licences.crate_findings(crate(name="ring"), {"a"})) == []


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
