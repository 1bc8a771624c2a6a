"""One made-up run and its page, shared by the tests."""

from pathlib import Path

import pytest

from sumrate.report.lab import write_report
from tests.report.made_up import text_of, write_claims, write_run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result folder."""
    return write_run(tmp_path_factory.mktemp("out") / "made-up")


@pytest.fixture(scope="session")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalogue."""
    return write_claims(tmp_path_factory.mktemp("experiments") / "claims.toml")


@pytest.fixture(scope="session")
def page(folder: Path, claims: Path) -> str:
    """The whole report."""
    output = folder.parent / "report.html"
    write_report([folder], claims, output)
    return text_of(output)
