"""The event log: what the daemon writes is what its schema says, and can be drawn."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sumrate.lab.events_command import summarise
from sumrate.traces.events import EventLogError, read_event_log
from tests.watch.running import PATIENCE_S, needs_sumrate, running

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "event-log.v1.json"
HEADER = {
    "schema": "sumrate.event-log.v1",
    "version": "0",
    "role": "client",
    "pid": 1,
    "reference_time_s": 1e9,
}


def metrics(time_s: float, **values: float) -> dict[str, Any]:
    data = {
        "session": "0" * 32,
        "path": "wifi",
        "sent_mbps": 0.0,
        "received_mbps": 0.0,
        "redundant_mbps": 0.0,
        "rate_mbps": 100.0,
        "rtt_ms": 10.0,
        "commit_bytes": 0,
        "commit_limit_bytes": 1,
        "why": "commit-limit",
    }
    return {"time_s": time_s, "name": "path:metrics", "data": data | values}


def health(time_s: float, health: str) -> dict[str, Any]:
    data = {"session": "0" * 32, "path": "wifi", "health": health, "before": None}
    return {"time_s": time_s, "name": "path:health", "data": data}


def written(path: Path, lines: list[dict[str, Any]], rest: str = "") -> Path:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for line in lines:
        validator.validate(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + rest, encoding="utf-8")
    return path


def test_a_log_is_read_and_summed_up(tmp_path: Path) -> None:
    steps = [metrics(1 + n / 10, sent_mbps=80.0, rtt_ms=10.0 + n) for n in range(10)]
    lines = [HEADER, health(0.5, "active"), *steps, health(2.0, "suspect"), health(2.5, "active")]
    file = written(tmp_path / "log", lines, rest='{"time_s":3,"na')
    log = read_event_log(file)
    assert log.counts == {"path:health": 3, "path:metrics": 10}, "the cut line is left out"
    summary = summarise(log)
    (path,) = summary["paths"]
    assert path["sent_mb"] == pytest.approx(10.0)
    assert (path["rtt_ms_min"], path["rtt_ms_max"]) == (10.0, 19.0)
    assert path["unwell_s"] == pytest.approx(0.5)


def test_another_file_is_refused_with_its_line(tmp_path: Path) -> None:
    for text, words in [
        ("", "line 1"),
        ("[]\n", "line 1"),
        ('{"schema":"x"}\n', "line 1"),
        (json.dumps(HEADER) + "\nnonsense\n", "line 2"),
        (json.dumps(HEADER) + '\n{"time_s":1}\n', "line 2"),
    ]:
        file = tmp_path / "log"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(EventLogError, match=words):
            read_event_log(file)


def test_the_command_draws_and_refuses(tmp_path: Path) -> None:
    lines = [HEADER, health(0.5, "active"), metrics(1.0), metrics(1.1), health(2.0, "dead")]
    file = written(tmp_path / "log", lines)

    def command(*argv: str) -> subprocess.CompletedProcess[str]:
        lab = [sys.executable, "-m", "sumrate.lab", "events", *argv]
        return subprocess.run(lab, capture_output=True, text=True, check=False)

    plot = tmp_path / "log.svg"
    drawn = command(str(file), "--plot", str(plot), "--json")
    assert drawn.returncode == 0, drawn.stderr
    assert json.loads(drawn.stdout)["paths"][0]["name"] == "wifi"
    assert "<svg" in plot.read_text(encoding="utf-8")
    assert command(str(file), "--plot", str(tmp_path / "log.xyz")).returncode == 2
    assert command(str(tmp_path / "none")).returncode == 2


@pytest.mark.system
@needs_sumrate
def test_both_ends_write_what_happens_to_them(tmp_path: Path) -> None:
    logs = {end: tmp_path / f"{end}.log" for end in ("serve", "up")}
    with running(
        tmp_path,
        serve=["--event-log", str(logs["serve"])],
        up=["--event-log", str(logs["up"]), "--path", "wifi=127.0.0.1", "--path", "lte=127.0.0.2"],
    ) as both:
        assert both.fetch(50_000_000).wait(PATIENCE_S) == 0
        end = time.monotonic() + PATIENCE_S
        while not all("path:metrics" in read_event_log(file).counts for file in logs.values()):
            assert time.monotonic() < end, "no metrics although bytes have moved"
            time.sleep(0.1)
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for file in logs.values():
        for line in file.read_text(encoding="utf-8").splitlines():
            validator.validate(json.loads(line))
        log = read_event_log(file)
        assert {"session:opened", "path:health", "path:metrics"} <= log.counts.keys()
        assert {path.name for path in log.paths.values()} == {"wifi", "lte"}
