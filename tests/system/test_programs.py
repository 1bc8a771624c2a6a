"""Every program of docs/capture.md through every way: it works, or fails for the reason given."""

import atexit
import functools
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from sumrate.lab.namespaces import Host
from sumrate.lab.scene import SERVICE_IP
from tests.conftest import REPOSITORY
from tests.system.capture_scene import ONLY_TO, captured, fetch
from tests.system.programs import (
    MARK,
    NAME,
    PROGRAMS,
    WAYS,
    Place,
    Row,
    Way,
    attempt,
    build,
    run_prefix,
    table,
)
from tests.system.scenario import isolated, needs_sumrate

EVERY_PROGRAM = "SUMRATE_EVERY_PROGRAM"
"""A variable of the environment: set, a program that is missing fails the tests."""
SOCKS, HTTP, RUN, REDIRECT, TPROXY, TUN = WAYS
OPTIONS = {
    SOCKS: (),
    HTTP: (),
    RUN: (),
    REDIRECT: ("--redirect", *ONLY_TO),
    TPROXY: ("--tproxy", *ONLY_TO),
    TUN: ("--tun", *ONLY_TO),
}


def way_of(name: str, folder: Path) -> Way:
    prefix = run_prefix(folder) if name == RUN else ()
    return Way(name, prefix, socks=name == SOCKS, http=name == HTTP)


@functools.cache
def built_programs() -> Path:
    """Compiled once, outside the namespaces, where the compilers' caches are."""
    folder = Path(tempfile.mkdtemp(prefix="sumrate-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build(folder)
    return folder


def try_all(way: Way, place: Place) -> dict[str, str]:
    """What became of each program: works, no, or skipped and why."""
    found = {}
    for row in PROGRAMS:
        if missing := row.missing(place.folder):
            found[row.title] = f"skipped: {missing}"
            continue
        reached, said = attempt(row, place)
        found[row.title] = "works" if reached else f"no: {said}"
    return found


def every_program() -> bool:
    """Whether a missing program is a failure: docs/capture.md says that each was tried."""
    return bool(os.environ.get(EVERY_PROGRAM))


def judge(way: str, found: dict[str, str], *, every: bool) -> list[str]:
    """Cells of the table that are not so; with `every`, also those that were not tried."""
    wrong = []
    for row in PROGRAMS:
        outcome, _, said = found[row.title].partition(":")
        no = row.refused.get(way)
        expected = "no" if no else "works"
        if outcome == "skipped":
            if every:
                wrong.append(f"{row.title}: {found[row.title]}; {EVERY_PROGRAM} asks for all")
        elif outcome != expected:
            wrong.append(f"{row.title}: {expected} expected, {found[row.title]}")
        elif no and not re.search(no.said, said):
            wrong.append(f"{row.title}: {no.reason}; what it said shows no {no.said}:{said}")
    return wrong


@pytest.mark.system
@needs_sumrate
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", WAYS)
def test_programs(name: str) -> None:
    programs = built_programs()

    def scenario(scratch: Path) -> None:
        shutil.copytree(programs, scratch, dirs_exist_ok=True)
        with captured(scratch, *OPTIONS[name]) as (built, daemon):
            way = way_of(name, scratch)
            place = Place(built.client, scratch, way, NAME if way.by_name else SERVICE_IP)
            found = try_all(way, place)
            print(json.dumps({name: found}, indent=1))
            wrong = judge(name, found, every=every_program())
            assert not wrong, "\n".join([*wrong, daemon.tail()])

    isolated(scenario)


@pytest.mark.system
@pytest.mark.parametrize("row", PROGRAMS, ids=lambda row: row.title)
def test_the_row_is_tried_on_this_machine(row: Row) -> None:
    folder = built_programs()
    if missing := row.missing(folder):
        assert not every_program(), f"{row.title}: {missing}; {EVERY_PROGRAM} asks for all"
        pytest.skip(f"{row.title}: {missing}")
    place = Place(Host.__new__(Host), folder, Way(REDIRECT), SERVICE_IP)
    argv, _environment = row.command(place)
    assert shutil.which(argv[0]), f"{argv[0]} is to be run"


@pytest.mark.system
@needs_sumrate
def test_without_sumrate_nothing_is_reached() -> None:
    def scenario(scratch: Path) -> None:
        with captured(scratch) as (built, _daemon):
            assert fetch(built) == ""
            assert MARK in fetch(built, "--noproxy", "", "--proxy", "socks5h://127.0.0.1:1080")

    isolated(scenario)


def test_the_page_has_the_table() -> None:
    text = (REPOSITORY / "docs/capture.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- programs: begin -->\n(.*?)<!-- programs: end -->", text, re.DOTALL)
    assert found, "the markers are gone"
    assert table() in found[1], f"the table of docs/capture.md is stale; it should be:\n{table()}"


def test_a_wrong_cell_is_found() -> None:
    right = {row.title: "works" for row in PROGRAMS}
    right["Go, static"] = "no: ./fetch-go is static: the preload library cannot reach it. Start"

    def wrong(*, every: bool = True, **planted: str) -> int:
        found = {**right, **{title.replace("_", ", "): said for title, said in planted.items()}}
        return len(judge(RUN, found, every=every))

    assert wrong() == 0
    assert wrong(curl="no: planted") == 1
    assert wrong(Go_static="works") == 1
    assert wrong(Go_static="no: Segmentation fault") == 1, "for another reason than the table's"
    assert wrong(curl="skipped: not installed") == 1
    assert wrong(curl="skipped: not installed", every=False) == 0
