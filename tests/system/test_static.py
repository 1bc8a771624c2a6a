"""The static binary: it needs nothing of the system, and does what the other one does."""

import json
import os
import platform
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from sumrate.lab.endpoints.sumrate import link_file_of, path_options, serve
from sumrate.lab.faults.bench import bench, wire
from sumrate.lab.process import Process
from tests.system.debian import ROOT
from tests.system.scenario import isolated, needs_sumrate

TARGET = f"{platform.machine()}-unknown-linux-musl"


def static_binary() -> Path | None:
    """The static program, if `make dist` or `make static` has built it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET
    found = [target / kind / "sumrate" for kind in ("dist", "release", "debug")]
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
            argv += ["--reverse", "--bytes", "20Mi", "--json"]
            log = scratch / "static.log"
            with serve(built), Process(argv, log=log, host=built.client, stdout=answer) as client:
                assert client.wait(60) == 0, client.tail()
            said = json.loads(answer.read_text())
            assert said["bytes"] == 20 << 20
            assert {path["name"] for path in said["paths"]} == {"wifi", "wigig"}

    isolated(scenario)


def test_it_has_the_congestion_controls_in_ebpf() -> None:
    """A user without rights may load none; a build without them says another thing."""
    assert BINARY is not None
    unprivileged = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "sumrate"  # in reach of that user
        program.write_bytes(BINARY.read_bytes())
        program.chmod(0o755)
        Path(folder).chmod(0o755)
        argv = [*unprivileged, str(program), "cc", "load", "lia"]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "lia" in done.stderr
    assert "not in this build" not in done.stderr


def test_it_preloads_a_library_for_an_old_glibc() -> None:
    """`sumrate run` takes programs of systems as old as Rust supports."""

    def scenario(scratch: Path) -> None:
        runtime = scratch / "runtime"
        runtime.mkdir(mode=0o700)
        argv = [str(BINARY), "run", "--socks", "127.0.0.1:9", "--", "true"]
        subprocess.run(argv, check=True, env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)})
        (library,) = runtime.rglob("*.so")
        said = subprocess.run(
            ["objdump", "-T", str(library)], check=True, capture_output=True, text=True
        ).stdout
        found = {tuple(map(int, name.split("."))) for name in re.findall(r"GLIBC_([\d.]+)", said)}
        assert found
        assert max(found) <= (2, 17), sorted(found)

    isolated(scenario)
