"""The demo from its command to the page in a real browser, with a small file; nothing is timed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_results import dump_dom, validate
from tests.system.scenario import isolated, needs_emulator, needs_sumrate

pytestmark = [pytest.mark.system, needs_emulator, needs_sumrate]


def lab(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    isolated(lambda _scratch: None)  # skips where namespaces are refused
    return subprocess.run(
        [sys.executable, "-m", "sumrate.lab", *arguments],
        env={**os.environ, "PYTHONPATH": str(repository / "python")},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_demo_downloads_the_same_file_by_every_scheme(repository: Path, tmp_path: Path) -> None:
    done = lab(repository, "demo", "--size", "96M", "--output", str(tmp_path), "--json")
    result: dict[str, Any] = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert result == json.loads(done.stdout)
    validate(repository, "lab-demo.v1.json", result)
    finished = {name for name, entry in result["schemes"].items() if "goodput_mbps" in entry}
    assert finished >= {"wifi", "wigig", "sumrate"}
    for name in finished:
        entry = result["schemes"][name]
        assert entry["sha256_ok"], name
        algorithms = {c["congestion_control"] for c in entry["connections"]}
        assert algorithms <= {"cubic"}, name
    dom = dump_dom(tmp_path / "report.html", tmp_path / "profile")
    for name in finished:
        assert f'data-scheme="{name}"' in dom
