"""The metrics are what promtool accepts, a real Prometheus scrapes and the dashboard asks for."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.watch.running import PATIENCE_S, Running, needs_sumrate, running

pytestmark = [pytest.mark.system, needs_sumrate]

DASHBOARD = Path(__file__).resolve().parents[2] / "packaging" / "grafana" / "sumrate.json"
PATHS = ["--path", "wifi=127.0.0.1", "--path", "lte=127.0.0.2"]
POLICIES = ["--policy", "wifi=weight=3", "--policy", "lte=weight=1,quota=1T,rate=1G"]


def program(name: str) -> str:
    """Path of `prometheus` or `promtool`; the Debian package prometheus has both."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:{os.environ.get('PROMETHEUS_DIR', '')}")
    if found is None:
        pytest.skip(f"{name} is missing: `apt install prometheus`, or PROMETHEUS_DIR=its folder")
    return found


@contextlib.contextmanager
def watched(scratch: Path) -> Iterator[Running]:
    """Both ends with metrics, during a transfer."""
    with running(
        scratch, serve=["--metrics", "0"], up=["--metrics", "0", *PATHS, *POLICIES]
    ) as both:
        assert both.fetch(20_000_000).wait(PATIENCE_S) == 0
        download = both.fetch(1 << 34)
        try:
            yield both
        finally:
            download.kill()
            download.wait(PATIENCE_S)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 (this test's own server)
        text: str = answer.read().decode()
    return text


def test_promtool_finds_nothing_to_say(tmp_path: Path) -> None:
    promtool = program("promtool")
    with watched(tmp_path) as both:
        for end in (both.client, both.server):
            exposition = fetch(end["metrics"])
            checked = subprocess.run(
                [promtool, "check", "metrics"],
                input=exposition,
                text=True,
                capture_output=True,
                check=False,
            )
            assert (checked.returncode, checked.stdout + checked.stderr) == (0, ""), exposition
    planted = exposition.replace("# HELP sumrate_path_rtt_seconds", "# HELP sumrate_other")
    checked = subprocess.run([promtool, "check", "metrics"], input=planted, text=True, check=False)
    assert checked.returncode != 0, "the check can fail"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextlib.contextmanager
def prometheus(scratch: Path, targets: dict[str, str]) -> Iterator[str]:
    """A Prometheus that scrapes the targets twice a second; its address."""
    jobs = [
        {"job_name": name, "static_configs": [{"targets": [urllib.parse.urlsplit(url).netloc]}]}
        for name, url in targets.items()
    ]
    settings = {"global": {"scrape_interval": "500ms"}, "scrape_configs": jobs}
    config = scratch / "prometheus.yml"
    config.write_text(json.dumps(settings), encoding="utf-8")  # YAML has JSON in it
    address = f"127.0.0.1:{free_port()}"
    argv = [
        *(program("prometheus"), f"--config.file={config}", f"--web.listen-address={address}"),
        f"--storage.tsdb.path={scratch / 'tsdb'}",
    ]
    with (scratch / "prometheus.log").open("w") as log:
        process = subprocess.Popen(argv, stderr=log, stdout=log)
    try:
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def query(address: str, expression: str) -> list[dict[str, Any]]:
    """What an instant query brings; nothing while Prometheus starts."""
    try:
        asked = urllib.parse.urlencode({"query": expression})
        answer = json.loads(fetch(f"http://{address}/api/v1/query?{asked}"))
    except OSError:
        return []
    assert answer["status"] == "success", answer
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def test_prometheus_scrapes_both_ends_and_the_dashboard_finds_its_metrics(tmp_path: Path) -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = [panel for panel in dashboard["panels"] if "targets" in panel]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    with watched(tmp_path) as both:
        targets = {"client": both.client["metrics"], "server": both.server["metrics"]}
        with prometheus(tmp_path, targets) as address:
            until = time.monotonic() + PATIENCE_S
            for expression in expressions:
                concrete = expression.replace("$__rate_interval", "5s")
                concrete = concrete.replace('"$job"', '".*"').replace('"$session"', '".*"')
                # Each metric by itself too: `or vector(0)` would hide a wrong name.
                for wanted in [concrete, *re.findall(r"sumrate_[a-z_]+", concrete)]:
                    while not query(address, wanted):
                        assert time.monotonic() < until, f"nothing for {wanted}"
                        time.sleep(0.2)
            sent = query(address, 'sumrate_path_sent_bytes_total{job="server"}')
            received = query(address, 'sumrate_path_received_bytes_total{job="client"}')
            assert {row["metric"]["path"] for row in sent} == {"wifi", "lte"}
            assert sum(float(row["value"][1]) for row in received) >= 20_000_000
            assert query(address, "up == 0") == []
