"""Namespaces: private, and gone with the driver, also when it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sumrate.lab.namespaces import Host
from sumrate.lab.process import Process, ProcessFailedError
from tests.system.scenario import isolated

pytestmark = pytest.mark.system

DRIVER = """
import sys, threading, time
from pathlib import Path
from sumrate.lab.namespaces import Host, IsolationUnavailableError, run_isolated
from sumrate.lab.process import Process

def main():
    log = Path("/run/log")
    hosts = [Host("client"), Host("server")]
    for host in hosts:
        Process(["sleep", "1000"], log=log, host=host)
    print("ready", flush=True)
    time.sleep(1000)
    return 0

if "threads" in sys.argv:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
try:
    sys.exit(run_isolated(main))
except IsolationUnavailableError as error:
    print("refused", error, flush=True)
"""


def start_driver(repository: Path, *prefix: str, threads: bool = False) -> subprocess.Popen[str]:
    driver = subprocess.Popen(
        [*prefix, sys.executable, "-c", DRIVER, *(["threads"] if threads else [])],
        env={**os.environ, "PYTHONPATH": str(repository / "python")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout
    line = driver.stdout.readline()
    if line.startswith("refused") and not threads:
        driver.wait()
        pytest.skip(line)
    assert line == "ready\n"
    return driver


def identity(pid: int) -> tuple[int, str] | None:
    """A process and its start time, so that a reused number is not taken for it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else (pid, fields[19])


def descendants(pid: int) -> set[tuple[int, str]]:
    """All living processes below this one."""
    found: set[tuple[int, str]] = set()
    task = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        children = task.read_text(encoding="ascii").split()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return found
    for child in children:
        if known := identity(int(child)):
            found |= {known} | descendants(int(child))
    return found


def wait_until_gone(processes: set[tuple[int, str]]) -> None:
    """The limit only ends a test that would hang."""
    deadline = time.monotonic() + 30
    while left := {p for p in processes if identity(p[0]) == p}:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_driver(repository: Path, number: signal.Signals) -> None:
    before = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    driver = start_driver(repository)
    started = descendants(driver.pid)
    assert len(started) >= 3  # the first process of the namespace and two programs
    driver.send_signal(number)
    driver.wait()
    wait_until_gone(started)
    after = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert after == before
    assert not Path("/run/netns/client").exists()


def test_killing_the_first_process_inside_ends_everything(repository: Path) -> None:
    driver = start_driver(repository)
    started = descendants(driver.pid)
    (first,) = (
        int(pid)
        for pid in Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split()
    )
    os.kill(first, signal.SIGKILL)
    assert driver.wait() != 0
    wait_until_gone(started)


@pytest.mark.skipif(os.getuid() != 0, reason="this run is without root already")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("threads", [False, True])
def test_works_without_root(
    repository: Path, tmp_path: Path, number: signal.Signals, *, threads: bool
) -> None:
    """Also in a process with several threads, to which no user namespace is given."""
    tmp_path.chmod(0o755)
    if not os.access(sys.executable, os.X_OK) or not _nobody_can_run(repository):
        pytest.skip("the user nobody cannot read this Python or this repository")
    driver = start_driver(repository, *NOBODY)  # skips where no namespaces are given
    if threads:
        driver.kill()
        driver.wait()
        driver = start_driver(repository, *NOBODY, threads=True)
    started = descendants(driver.pid)
    assert len(started) >= 3
    driver.send_signal(number)
    driver.wait()
    wait_until_gone(started)


NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


def _nobody_can_run(repository: Path) -> bool:
    probe = [*NOBODY, sys.executable, "-c", "import sumrate"]
    environment = {**os.environ, "PYTHONPATH": str(repository / "python")}
    return subprocess.run(probe, env=environment, capture_output=True, check=False).returncode == 0


def test_failure_inside_is_reported() -> None:
    def scenario(_scratch: Path) -> None:
        raise AssertionError("planted")

    with pytest.raises(AssertionError, match="the scenario failed"):
        isolated(scenario)


def test_readiness_names_what_went_wrong() -> None:
    def scenario(scratch: Path) -> None:
        host = Host("client")
        with (
            Process(
                ["sh", "-c", "echo no licence >&2; exit 3"], log=scratch / "log", host=host
            ) as p,
            pytest.raises(ProcessFailedError, match=r"ended with 3 before it listens: no licence"),
        ):
            p.wait_until(lambda: False, "it listens")

    isolated(scenario)
