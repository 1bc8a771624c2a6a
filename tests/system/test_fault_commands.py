"""`sumrate-lab faults` and `soak`: reports, refusals, and a Ctrl-C that leaves nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sumrate.lab.faults.load import MOST_IDLE
from tests.system.scenario import isolated, needs_sumrate
from tests.system.test_demo import lab
from tests.system.test_isolation import descendants, wait_until_gone

pytestmark = [pytest.mark.system, needs_sumrate]


def test_faults_are_reported(repository: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    chosen = ("--fault", "reset-injection", "--fault", "server-killed")
    done = lab(repository, "faults", "--rounds", "1", *chosen, "--output", str(output), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report == json.loads(done.stdout)
    assert report["schema"] == "sumrate.lab.faults.v1"
    assert report["bytes_lost"] == 0 < report["bytes"]
    assert {name: row["injected"] for name, row in report["faults"].items()} == {
        "reset-injection": 1,
        "server-killed": 1,
    }
    assert report["faults"]["server-killed"]["others_ratio"] is None, "it stops everybody"
    assert str(repository) not in output.read_text(encoding="utf-8")


def test_attacks_are_reported(repository: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    chosen = ("--attack", "wrong-proof", "--time", "1")
    done = lab(repository, "attacks", *chosen, "--output", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["schema"] == "sumrate.lab.attacks.v1"
    assert report["problems"] == []
    row = report["attacks"]["wrong-proof"]
    assert row["made"] >= row["closed"] >= 500
    assert row["answered"] >= 500, "each is refused in words"
    assert (row["sessions_harmed"], row["bytes_lost"]) == (0, 0)
    assert row["bytes"] > 0


def test_load_is_reported(repository: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    size = ("--sessions", "4", "--streams", "5", "--bytes", "1000000", "--time", "1")
    done = lab(repository, "load", *size, "--output", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["schema"] == "sumrate.lab.load.v1"
    assert (report["sessions"], report["streams"], report["completed_share"]) == (4, 20, 1.0)
    assert report["handshakes_per_s"] > 0 < report["server_cpu_ms_per_handshake"]
    assert 0 <= report["idle_share"] <= MOST_IDLE


@pytest.mark.parametrize(
    "arguments", [("faults", "--rounds", "0"), ("faults", "--fault", "x"), ("soak", "--time", "1")]
)
def test_bad_input_is_refused_before_anything_starts(
    repository: Path, arguments: tuple[str, ...]
) -> None:
    assert lab(repository, *arguments).returncode == 2


def test_ctrl_c_ends_a_soak_and_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    isolated(lambda _scratch: None)  # skips where namespaces are refused
    output = tmp_path / "report.json"
    driver = subprocess.Popen(
        [sys.executable, "-m", "sumrate.lab", "soak", "--time", "600", "--output", str(output)],
        env={**os.environ, "PYTHONPATH": str(repository / "python")},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(started := descendants(driver.pid)) < 9:  # inside, origin, server, 3 clients, 3 loads
        assert driver.poll() is None, "it ended before everything was started"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "everything that was started is gone" in said
    wait_until_gone(started)
    assert not output.exists(), "half a soak would look like a whole one"
