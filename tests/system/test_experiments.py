"""An experiment from its command to tables, verdicts and page; killed, it leaves nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.system.scenario import isolated, needs_emulator, needs_sumrate
from tests.system.test_demo import lab
from tests.system.test_isolation import descendants, wait_until_gone

pytestmark = [pytest.mark.system, needs_emulator, needs_sumrate]
ARGUMENTS = ("run", "uplink-cut", "--quick", "--condition", "normal", "--scheme", "sumrate")


def measured(repository: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs the experiment; skips where the machine is too busy for any run to count."""
    done = lab(repository, *ARGUMENTS, "--output", str(output), *more)
    if "no run counts" in done.stderr:
        pytest.skip("this machine is too busy: the emulator was late in every run")
    assert done.returncode == 0, done.stderr
    return done


def test_an_experiment_leaves_tables_verdicts_and_a_page(repository: Path, tmp_path: Path) -> None:
    done = measured(repository, tmp_path, "--json")
    folder = tmp_path / "uplink-cut"
    rows = pq.read_table(folder / "metrics.parquet").to_pylist()
    goodput = {r["scheme"]: r["value"] for r in rows if r["metric"] == "goodput_mbps"}
    assert goodput.keys() == {"wifi", "wigig", "sumrate"}
    assert all(value > 0 for value in goodput.values())
    (ratio,) = [r for r in rows if r["metric"] == "sum_ratio"]
    total = goodput["wifi"] + goodput["wigig"]
    assert ratio["value"] == pytest.approx(goodput["sumrate"] / total)
    series = pq.read_table(folder / "series.parquet").to_pylist()
    assert {s["scheme"] for s in series} == {r["scheme"] for r in rows if not r["void"]}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {r["scheme"] for r in manifest["runs"]} == set(goodput)
    assert all(r["settings"]["congestion control"] == "cubic" for r in manifest["runs"])
    text = (folder / "manifest.json").read_text()
    assert str(repository) not in text
    assert "target/release/sumrate bench" in text or "target/release/sumrate up" in text
    (verdict,) = json.loads(done.stdout)
    assert (verdict["goal"], verdict["verdict"]) == ("S4", "not-run"), "its condition was left out"
    page = lab(repository, "report", "--results", str(tmp_path))
    assert page.returncode == 0, page.stderr
    assert "Acknowledgements while one uplink is cut" in (tmp_path / "report.html").read_text()


def test_a_killed_experiment_leaves_nothing_and_the_next_one_runs(
    repository: Path, tmp_path: Path
) -> None:
    isolated(lambda _scratch: None)  # skips where namespaces are refused
    driver = subprocess.Popen(
        [sys.executable, "-m", "sumrate.lab", *ARGUMENTS, "--output", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(repository / "python")},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(started := descendants(driver.pid)) < 4:  # driver inside, emulator, both ends
        assert driver.poll() is None, "it ended before anything was started"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_until_gone(started)
    assert not (tmp_path / "uplink-cut").exists(), "half a result would look like a whole one"
    measured(repository, tmp_path)
    assert (tmp_path / "uplink-cut" / "metrics.parquet").exists()


def test_what_does_not_exist_is_refused_before_anything_starts(
    repository: Path, tmp_path: Path
) -> None:
    refused = lab(repository, "run", "uplink-cut", "--quick", "--condition", "nothing",
                  "--output", str(tmp_path))  # fmt: skip
    assert refused.returncode == 2
    assert "nothing" in refused.stderr


def test_ctrl_c_ends_everything_and_says_so(repository: Path, tmp_path: Path) -> None:
    isolated(lambda _scratch: None)  # skips where namespaces are refused
    driver = subprocess.Popen(
        [sys.executable, "-m", "sumrate.lab", *ARGUMENTS, "--output", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(repository / "python")},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(started := descendants(driver.pid)) < 4:  # driver inside, emulator, both ends
        assert driver.poll() is None, "it ended before anything was started"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "stopped" in said
    assert "Traceback" not in said
    wait_until_gone(started)
    assert not (tmp_path / "uplink-cut").exists(), "half a result would look like a whole one"


def test_the_table_of_goals_says_what_is_not_measured(repository: Path, tmp_path: Path) -> None:
    done = lab(repository, "bench", "--table", "--json", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "sumrate.lab.goals.v1"
    assert {row["verdict"] for row in found["goals"]} == {"not-run"}
    assert {"P1", "P5b", "P10"} <= {row["goal"] for row in found["goals"]}
    refused = lab(repository, "bench", "--only", "P99")
    assert refused.returncode == 2
    assert "no goal P99; there are P1, P2" in refused.stderr


def test_an_unknown_name_is_refused_before_anything_starts(repository: Path) -> None:
    done = lab(repository, "run", "uplink-cu")
    assert done.returncode == 2
    assert "did you mean uplink-cut" in done.stderr
