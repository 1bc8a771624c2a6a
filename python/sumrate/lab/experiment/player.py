"""A real player as an experiment: hls.js in Chromium, at rates that this machine can decode."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path

from sumrate.lab.endpoints import Scheme, Unavailable
from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import seconds_of
from sumrate.lab.experiment.video import CACHE
from sumrate.lab.process import Process
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Scene
from sumrate.lab.stream.driver import ENVIRONMENT, cpu_now, run_sink

FOLDER = REPOSITORY / "python/sumrate/qoe/video/player"
STARTING_S = 30.0
"""Starting the browser takes a few seconds on a busy machine."""
PLAYED = {
    "stalled_share": "ratio",
    "stalls": "",
    "startup_s": "s",
    "mbps": "Mbit/s",
    "switches": "",
}
SPARE_S = 20
"""The stream is this much longer than a run: the player fetches ahead."""


def problems(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """What is wrong with the part of the file that is about the player."""
    if (experiment.method == "player") != (experiment.player is not None):
        yield "method", "method `player` and the table [player] go together"
    if experiment.player is not None and not experiment.player.clips:
        yield "clips", "[player] needs `clips`"


@lru_cache
def stream_of(clips: tuple[str, ...], seconds: int) -> Path:
    """The folder that is served, made now or before.

    Raises:
        Unavailable: the encoder or a clip is not installed, or failed.

    """
    try:
        from sumrate.qoe.video.ffmpeg import EncoderError  # noqa: PLC0415 (an optional extra)
        from sumrate.qoe.video.hls import stream  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error}: pip install 'sumrate[qoe]'") from error
    try:
        return stream(clips, seconds, CACHE)
    except EncoderError as error:
        raise Unavailable(str(error)) from error


def check() -> None:
    """Refuses to run without what plays.

    Raises:
        Unavailable: Chromium, Node.js or the player's packages are not installed.

    """
    for name in ("chromium", "node"):
        if shutil.which(name) is None:
            raise Unavailable(f"{name} is not installed: run `make player`")
    if not (FOLDER / "node_modules" / "hls.js").is_dir():
        raise Unavailable("the player's packages are not installed: run `make player`")


def play(
    run: Run,
    scheme: Scheme,
    built: Scene,
    experiment: Experiment,
    condition: ConditionSetting,
    *,
    on_first_byte: Callable[[], object],
) -> None:
    """Plays the stream over the scheme and notes stalls and bit rates.

    Raises:
        Unavailable: what plays or encodes is not installed.

    """
    setting = experiment.player
    assert setting is not None  # noqa: S101 (the method says so)
    check()
    seconds = seconds_of(experiment, condition)
    folder = stream_of(setting.clips, int(seconds) + SPARE_S)
    output = built.folder / "player.json"
    with ExitStack() as stack:
        reach = stack.enter_context(scheme.stream(built))
        server = stack.enter_context(_server(built, reach, folder))
        programs = {**reach.processes, "server": server}
        before = {name: cpu_now(process) for name, process in programs.items()}
        document, command = run_sink(
            built,
            player_command(reach, seconds, setting.buffer_s, output),
            output,
            measured_s=seconds + STARTING_S,
            on_first_byte=on_first_byte,
        )
        spent = {name: round(cpu_now(p) - before[name], 3) for name, p in programs.items()}
        for name, (value, unit) in reach.counters().items():
            run.add(name, value, unit)
    for name, unit in PLAYED.items():
        run.add(f"play_{name}", float(document[name]), unit)
    frames = max(1, document["frames"])
    run.add("play_dropped_share", document["dropped_frames"] / frames, "ratio")
    run.detail |= {
        "command": command,
        "other_commands": [*reach.commands, server.command_line],
        "cpu_seconds": spent,
        "player": {key: document[key] for key in ("browser", "levels_mbps", "frames")},
    }


@contextmanager
def _server(built: Scene, reach: Reach, folder: Path) -> Iterator[Process]:
    """An HTTP server that accepts connections."""
    ready = built.folder / "web.ready"
    ready.unlink(missing_ok=True)
    argv = [
        *(sys.executable, "-m", "sumrate.lab.video.web_server", "--folder", str(folder)),
        *("--listen", reach.listen_address, "--port", str(reach.listen_port)),
        *("--cc", built.congestion_control, "--ready", str(ready)),
    ]
    if reach.mptcp:
        argv.append("--mptcp")
    log = built.folder / "web.log"
    with Process(argv, log=log, host=built.server, env=ENVIRONMENT) as server:
        server.wait_until(ready.exists, "the web server accepts connections")
        yield server


def player_command(reach: Reach, seconds: float, buffer_s: float, output: Path) -> list[str]:
    """The command of the player; MPTCP sockets are the browser's by mptcpize."""
    argv = ["mptcpize", "run"] if reach.mptcp else []
    argv += ["node", str(FOLDER / "play.js"), "--url", f"http://{reach.address}:{reach.port}/"]
    argv += ["--seconds", f"{seconds:g}", "--buffer", f"{buffer_s:g}", "--output", str(output)]
    argv += ["--chromium", shutil.which("chromium") or "chromium"]
    if reach.socks:
        argv += ["--socks", f"{reach.socks[0]}:{reach.socks[1]}"]
    return argv
