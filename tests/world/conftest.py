"""Runs each test inside its own scene, and prints what came of the situations as a table.

A test declares its situation and what a plain TCP client, or the usual tool, does there::

    @pytest.mark.situation("the uplink of one radio is silent", plain="hangs for 2 minutes")
    def test_name(world: World) -> None:
        ...
        world.measured("goes on after 0.4 s")

Further keywords of the marker are arguments of `scene.world`.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from sumrate.lab.programs import have
from tests.system.scenario import isolated
from tests.world.scene import World
from tests.world.scene import world as build

PROGRAMS = ("ip", "nft", "ss", "curl", "dnsmasq", "unshare")
SITUATION, PLAIN, SUMRATE = "situation", "plain", "sumrate"
COLUMNS = (SITUATION, PLAIN, SUMRATE)
FAILED_LENGTH = 200


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", "situation(words, plain, **scene): a row of the table")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here starts real processes."""
    for item in items:
        if item.get_closest_marker(SITUATION):
            item.add_marker("system")
            item.add_marker("world")


@pytest.fixture
def world() -> World:
    """The scene. The test's body gets it in namespaces of its own (`pytest_pyfunc_call`)."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=search_path())]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found")
    for name in ("sumrate", "sumrate-link"):
        if not have(name):
            pytest.skip(f"the binary `{name}` is not built (make build)")
    return cast(World, None)


def search_path() -> str:
    """Where programs of the system are."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs the test with its scene as the first process of new namespaces."""
    marker = pyfuncitem.get_closest_marker(SITUATION)
    if marker is None:
        return None
    options = {name: value for name, value in marker.kwargs.items() if name != PLAIN}
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    note(pyfuncitem, SITUATION, marker.args[0])
    note(pyfuncitem, PLAIN, marker.kwargs[PLAIN])
    with tempfile.NamedTemporaryFile("r") as said:
        try:
            isolated(lambda scratch: body(scratch, pyfuncitem.obj, given, options, Path(said.name)))
        finally:
            note(pyfuncitem, SUMRATE, said.read() or "-")
    return True


def body(
    scratch: Path,
    test: Callable[..., None],
    given: dict[str, Any],
    options: dict[str, Any],
    said: Path,
) -> None:
    """The test in its scene; what it measured, or why it failed, goes to a file."""
    with build(scratch, **options) as built:
        try:
            test(**{**given, "world": built})
        except BaseException as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            built.measured(f"FAILED: {reason[:FAILED_LENGTH]}")
            logs = sorted(scratch.glob("*.log"))
            for log in logs:
                print(
                    f"--- {log.name}\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}"
                )
            raise
        finally:
            said.write_text("; ".join(built.said), encoding="utf-8")


def note(item: pytest.Item, column: str, words: str) -> None:
    """Notes a cell of the item's row: it travels with the report."""
    item.user_properties.append((f"world:{column}", words))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the table."""
    rows = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            cells = dict(getattr(report, "user_properties", []))
            if getattr(report, "when", "") == "call" and f"world:{SITUATION}" in cells:
                row = [str(cells.get(f"world:{column}", "")) for column in COLUMNS]
                rows.append((report.nodeid, [*row, f"{outcome} in {report.duration:.0f} s"]))
    if not rows:
        return
    terminalreporter.section("situations")
    terminalreporter.line("| situation | plain TCP or the usual tool | Sumrate | result |")
    terminalreporter.line("|---|---|---|---|")
    for _, row in sorted(rows):
        shown = [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
        terminalreporter.line(f"| {' | '.join(shown)} |")
