"""One made-up run and its report, shared by the tests."""

from pathlib import Path

import pytest

from sumrate.report.lab import write_report
from tests.report.made_up import entries, write_run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result folder."""
    return write_run(tmp_path_factory.mktemp("out") / "made-up")


@pytest.fixture(scope="session")
def report(folder: Path) -> Path:
    """The index of a whole report."""
    output = folder.parent / "report.html"
    write_report([folder], entries(), output)
    return output


@pytest.fixture(scope="session")
def page(report: Path) -> str:
    """The page of the made-up experiment."""
    return (report.parent / "report-pages" / "made-up.html").read_text(encoding="utf-8")
