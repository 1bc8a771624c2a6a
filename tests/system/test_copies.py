"""`sumrate cp` over two links: it takes both, and goes on where it was killed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.endpoints.sumrate import SERVER_PORT, path_options, serve
from sumrate.lab.faults.bench import Bench, bench, wire
from sumrate.lab.links import Link
from sumrate.lab.payload import make_payload
from sumrate.lab.process import Process
from sumrate.lab.programs import program
from tests.system.scenario import isolated, needs_sumrate

pytestmark = [pytest.mark.system, needs_sumrate]

WIFI = wire("wifi", 1, 100.0)
WIGIG = wire("wigig", 2, 200.0)
SIZE = 64 << 20


def credential(built: Bench) -> Path:
    """A file with a join link that may write files."""
    argv = [str(program("sumrate")), "credential", "add", "--files", "rw", "--name", "copies"]
    argv += ["--state", str(built.folder / "server-state")]
    for link in built.links:
        argv += ["--advertise", f"{link.server_ip}:{SERVER_PORT}"]
    file = built.folder / "copies.link"
    file.touch(mode=0o600)
    file.write_text(built.server.run(argv), encoding="utf-8")
    return file


def copy(built: Bench, source: Path, link_file: Path) -> list[str]:
    """The command that copies the file to the server's directory."""
    argv = [str(program("sumrate")), "cp", str(source), f"@{link_file}:copy", "--json"]
    return [*argv, "--config", "none", *path_options(built.links)]


def sent_bytes(built: Bench, link: Link) -> int:
    """What the client has sent on the link, headers included."""
    argv = ["ip", "-statistics", "-json", "link", "show", "dev", link.interface]
    (found,) = json.loads(built.client.run(argv))
    sent: int = found["stats64"]["tx"]["bytes"]
    return sent


def copied(built: Bench, argv: list[str]) -> dict[str, Any]:
    """Copies to the end; the last event."""
    done = subprocess.run(
        built.client.command(argv), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    event: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (event["event"], event["failed"]) == ("done", 0), event
    return event


def test_a_copy_takes_both_links_and_goes_on_where_it_was_killed() -> None:
    def scenario(scratch: Path) -> None:
        offered = scratch / "offered"
        offered.mkdir()
        source = make_payload(scratch / "source", SIZE, seed=5).path
        with (
            bench(scratch, WIFI, WIGIG) as built,
            serve(built, "--files", str(offered)) as server,
        ):
            argv = copy(built, source, credential(built))
            partial = offered / ".copy.sumrate-part"
            with Process(argv, log=scratch / "cp.log", host=built.client) as first:
                half = f"{SIZE // 2} bytes are there"
                first.wait_until(
                    lambda: partial.exists() and partial.stat().st_size > SIZE // 2, half
                )
                first.kill()
            assert not (offered / "copy").exists()
            by_link = {link.name: sent_bytes(built, link) for link in built.links}
            assert all(sent > SIZE // 20 for sent in by_link.values()), by_link
            event = copied(built, argv)
            assert 0 < event["sent_bytes"] <= SIZE // 2, event
            assert (offered / "copy").read_bytes() == source.read_bytes()
            assert server.poll() is None, server.tail()

    isolated(scenario)
