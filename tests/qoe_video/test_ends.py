"""The ends as real processes over the loopback, which is far faster than what they play."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sumrate.lab.programs import REPOSITORY, MissingProgramError, example
from sumrate.lab.tiles.task import Task
from sumrate.lab.tiles.viewer import Arrivals
from sumrate.lab.tiles.wire import Chunk
from sumrate.lab.video.player import document_of
from sumrate.qoe.tiles.ladder import GRID
from sumrate.qoe.tiles.shown import MISSING
from sumrate.qoe.video.playback import Video

ENVIRONMENT = {"PYTHONPATH": str(REPOSITORY / "python"), "PATH": "/usr/bin:/bin"}
PORT = 15_202
READY_S = 60


@contextmanager
def running(ready: Path, *argv: str) -> Iterator[None]:
    """A program that says with a file when it listens."""
    with subprocess.Popen(
        [sys.executable, "-m", "sumrate.lab.ends", *argv], env=ENVIRONMENT
    ) as process:
        try:
            deadline = time.monotonic() + READY_S
            while not ready.exists():
                assert process.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it does not listen"
                time.sleep(0.02)
            yield
        finally:
            process.kill()


def result(path: Path, *argv: str) -> dict[str, Any]:
    """What the other end writes."""
    done = subprocess.run(
        [sys.executable, "-m", "sumrate.lab.ends", *argv, "--output", str(path)],
        env=ENVIRONMENT, check=False, capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "first-byte" in done.stdout
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_download_stops_at_a_full_buffer(tmp_path: Path) -> None:
    """What was received is what was shown and what the buffer holds, however fast the link."""
    video = Video((500_000,) * 40, 0.5, (40.0,) * 40, (20.0,) * 40)
    described, ready = tmp_path / "video.json", tmp_path / "ready"
    described.write_text(json.dumps(document_of(video, 2_000_000)), encoding="utf-8")
    with running(ready, "source", "--port", str(PORT), "--ready", str(ready)):
        found = result(
            tmp_path / "result.json", "player", "--address", "127.0.0.1",
            "--port", str(PORT), "--video", str(described), "--time", "2",
        )  # fmt: skip
    watched = found["watched"]
    assert found["total_bytes"] <= 500_000 * watched["shown"] + 2_000_000
    assert watched["shown"] >= 2
    assert 0.0 <= watched["pause_share"] <= 1.0
    assert 0.5 <= watched["stock_s"] <= 2.0 + 0.5, "at least the first GOP, at most a buffer more"
    assert len(found["complete_at_s"]) == found["total_bytes"] // 500_000


@pytest.mark.parametrize("policy", ["fix", "viewport"])
def test_tiles_arrive_with_the_level_that_was_planned(tmp_path: Path, policy: str) -> None:
    """Two levels; the best fits into what a loopback carries, once a rate is known."""
    sizes = np.repeat(np.array([[[20_000], [5_000]]]), GRID.tiles, axis=2)
    errors = np.repeat(np.array([[[1.0], [9.0]]]), GRID.tiles, axis=2)
    task, ready = tmp_path / "task.npz", tmp_path / "ready"
    Task(policy, 1, 5, 0.9, sizes, errors).write(task)
    with running(
        ready, "sender", "--port", str(PORT + 1), "--task", str(task),
        "--ready", str(ready), "--listen", "127.0.0.1",
    ):  # fmt: skip
        found = result(
            tmp_path / "result.json", "viewer", "--address", "127.0.0.1",
            "--port", str(PORT + 1), "--task", str(task),
        )  # fmt: skip
    assert len(found["levels"]) == 5
    assert {level for row in found["levels"] for level in row} <= {-1, 0, 1}
    came = [level for row in found["levels"] for level in row if level >= 0]
    assert came, "no tile came in time"


@contextmanager
def relayed(folder: Path, port: int) -> Iterator[int]:
    """Both ends of the relay of messages over two paths, for a sender at `port`; the near port."""
    try:
        program = str(example("message_relay", package="fbdt"))
    except MissingProgramError as error:
        pytest.skip(str(error))
    link, near = folder / "link", port + 2
    served = f"127.0.0.1:{port + 1}"
    serve = [program, "serve", "cubic", str(folder / "state"), str(link), f"127.0.0.1:{port}"]
    dial = [program, "dial", "cubic", str(link), f"127.0.0.1:{near}"]
    paths = [f"127.0.0.{number}@{served}" for number in (1, 2)]
    with subprocess.Popen([*serve, served]) as server:
        try:
            wait_for(link.exists)
            with subprocess.Popen([*dial, *paths]) as client:
                try:
                    wait_for(lambda: accepts(near))
                    yield near
                finally:
                    client.kill()
        finally:
            server.kill()


def wait_for(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def accepts(port: int) -> bool:
    listening = Path("/proc/net/tcp").read_text(encoding="ascii")
    return f"0100007F:{port:04X} 00000000:0000 0A" in listening


def test_tiles_as_messages_arrive_whole(tmp_path: Path) -> None:
    """Tiles of several messages each: whole in whatever order these come."""
    sizes = np.repeat(np.array([[[150_000], [5_000]]]), GRID.tiles, axis=2)
    errors = np.repeat(np.array([[[1.0], [9.0]]]), GRID.tiles, axis=2)
    task, ready = tmp_path / "task.npz", tmp_path / "ready"
    Task("viewport", 1, 5, 0.9, sizes, errors).write(task)
    port = PORT + 10
    with running(
        ready, "sender", "--port", str(port), "--task", str(task),
        "--ready", str(ready), "--listen", "127.0.0.1", "--messages",
    ), relayed(tmp_path, port) as near:  # fmt: skip
        found = result(
            tmp_path / "result.json", "viewer", "--address", "127.0.0.1",
            "--port", str(near), "--task", str(task),
        )  # fmt: skip
    came = [level for row in found["levels"] for level in row if level >= 0]
    assert came, "no tile came in time"


def test_chunks_of_a_tile_come_in_any_order() -> None:
    sizes = np.array([[[100, 30]]])
    arrivals = Arrivals(sizes, 2)
    parts = [Chunk(0, 0, 0, False, 60), Chunk(0, 0, 0, True, 40), Chunk(0, 1, 0, True, 30)]
    arrivals.add(parts[1], 0.1)
    assert arrivals.levels[0] == [MISSING, MISSING], "its last chunk is not all of it"
    arrivals.add(parts[2], 0.2)
    arrivals.add(parts[0], 0.3)
    assert arrivals.levels[0] == [0, 0]
    arrivals.add(Chunk(1, 1, 0, True, 30), 2.5)
    assert (arrivals.late, arrivals.levels[1]) == (1, [MISSING, MISSING])


def test_a_player_without_a_server_says_so(tmp_path: Path) -> None:
    described = tmp_path / "video.json"
    described.write_text(json.dumps(document_of(Video((10, 10), 1.0), 100)), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sumrate.lab.ends", "player", "--address", "127.0.0.1"),
            *("--port", "1", "--video", str(described), "--time", "1"),
            *("--output", str(tmp_path / "x.json")),
        ],
        env=ENVIRONMENT, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
