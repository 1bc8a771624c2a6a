"""The static binary: it needs nothing of the system, and does what the other one does."""

import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import link_file_of, path_options, serve
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.process import Process
from tests.system.debian import ROOT
from tests.system.scenario import isolated, needs_sumrate

TARGET = f"{platform.machine()}-unknown-linux-musl"


def static_binary() -> Path | None:
    """The static program, if `make static` or `tools/static.sh` has built it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET
    found = [target / kind / "sumrate" for kind in ("release", "debug")]
    return next((path for path in found if path.is_file()), None)


BINARY = static_binary()
pytestmark = [
    pytest.mark.system,
    needs_sumrate,
    pytest.mark.skipif(BINARY is None, reason="the static binary is not built: make static"),
]


def test_it_names_no_loader_and_no_library() -> None:
    assert BINARY is not None
    said = subprocess.run(
        ["readelf", "--program-headers", "--dynamic", str(BINARY)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "LOAD" in said
    assert "INTERP" not in said
    assert "NEEDED" not in said


def test_it_measures_against_the_other_one() -> None:
    def scenario(scratch: Path) -> None:
        with bench(scratch, wire("wifi", 1, 200.0), wire("wigig", 2, 400.0)) as built:
            answer = scratch / "bench.json"
            argv = [str(BINARY), "bench", f"@{link_file_of(built)}", *path_options(built.links)]
            argv += ["--reverse", "--bytes", "20M", "--json"]
            log = scratch / "static.log"
            with serve(built), Process(argv, log=log, host=built.client, stdout=answer) as client:
                assert client.wait(60) == 0, client.tail()
            said = json.loads(answer.read_text())
            assert said["bytes"] == 20 << 20
            assert {path["name"] for path in said["paths"]} == {"wifi", "wigig"}

    isolated(scenario)


def test_what_it_cannot_do_it_says() -> None:
    argv = [str(BINARY), "cc", "load", "lia"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "lia is not in this build" in done.stderr
