"""What all tests share: the repository, and where skipped tests are noted."""

import json
from pathlib import Path

import pytest

from tests.everyday import is_alone, is_long

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the repository."""
    return REPOSITORY


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares where skips are noted."""
    parser.addoption("--skips", type=Path, help="append each skipped test to this file, as JSON")


class SkipNotes:
    """Notes each skipped test; with pytest-xdist only the controller does."""

    def __init__(self, file: Path) -> None:
        """Notes to `file`."""
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a test that was skipped."""
        if report.skipped and isinstance(report.longrepr, tuple):
            self.note(report.nodeid, report.longrepr[2])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notes a module that was skipped as a whole."""
        if report.skipped and isinstance(report.longrepr, tuple):
            self.note(report.nodeid, report.longrepr[2])

    def note(self, test: str, reason: str) -> None:
        """Appends a line."""
        line = {"test": test, "reason": reason.removeprefix("Skipped: ")}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the notes."""
    file = config.getoption("--skips")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipNotes(file))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that `make test` leaves out, and those that no other may disturb."""
    for item in items:
        if is_long(item.nodeid, system=item.get_closest_marker("system") is not None):
            item.add_marker("long")
        if is_alone(item.nodeid):
            item.add_marker("alone")
