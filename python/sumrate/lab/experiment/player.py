"""A real player as an experiment: hls.js in Chromium, at rates that this machine can decode."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path

from sumrate.lab.endpoints import Scheme, Unavailable
from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.by_method import PlayerExperiment, expect
from sumrate.lab.experiment.media import CACHE, deliver, encoding
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import seconds_of
from sumrate.lab.process import Process
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.scene import Scene
from sumrate.lab.stream.driver import serving

FOLDER = REPOSITORY / "python/sumrate/qoe/video/player"
STARTING_S = 30.0
"""Starting the browser takes a few seconds on a busy machine."""
PLAYED = {
    "stalled_share": "ratio",
    "stalls": "",
    "startup_s": "s",
    "mbps": "Mbit/s",
    "declared_mbps": "Mbit/s",
    "switches": "",
}
SPARE_S = 20
"""The stream is this much longer than a run: the player fetches ahead."""


@lru_cache
def stream_of(clips: tuple[str, ...], seconds: int) -> Path:
    """The folder that is served, made now or before.

    Raises Unavailable: the encoder or a clip is not installed, or failed.
    """
    with encoding():
        from sumrate.qoe.video.hls import stream  # noqa: PLC0415 (an optional extra)

        return stream(clips, seconds, CACHE)


def check() -> None:
    """Refuses to run without what plays.

    Raises Unavailable: Chromium, Node.js or the player's packages are not installed.
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

    Raises Unavailable: what plays or encodes is not installed.
    """
    setting = expect(experiment, PlayerExperiment).player
    check()
    run.detail["emulator_real_time"] = built.raise_emulator()
    seconds = seconds_of(experiment, condition)
    folder = stream_of(setting.clips, int(seconds) + SPARE_S)
    output = built.folder / "player.json"
    delivery = deliver(
        run,
        scheme,
        built,
        server=("server", lambda reach: _server(built, reach, folder)),
        client=lambda reach: player_command(reach, seconds, setting.buffer_s, output),
        output=output,
        measured_s=seconds + STARTING_S,
        on_first_byte=on_first_byte,
    )
    document = delivery.document
    for name, unit in PLAYED.items():
        run.add(f"play_{name}", float(document[name]), unit)
    frames = max(1, document["frames"])
    run.add("play_dropped_share", document["dropped_frames"] / frames, "ratio")
    run.detail |= {
        **delivery.detail,
        "player": {key: document[key] for key in ("browser", "levels_mbps", "frames")},
    }


def _server(built: Scene, reach: Reach, folder: Path) -> AbstractContextManager[Process]:
    """An HTTP server that accepts connections."""
    return serving(built, reach, "web-server", ["web-server", "--folder", str(folder)])


def player_command(reach: Reach, seconds: float, buffer_s: float, output: Path) -> list[str]:
    """The command of the player; MPTCP sockets are the browser's by mptcpize."""
    argv = ["mptcpize", "run"] if reach.mptcp else []
    argv += ["node", str(FOLDER / "play.js"), "--url", f"http://{reach.address}:{reach.port}/"]
    argv += ["--seconds", f"{seconds:g}", "--buffer", f"{buffer_s:g}", "--output", str(output)]
    argv += ["--chromium", shutil.which("chromium") or "chromium"]
    if reach.socks:
        argv += ["--socks", f"{reach.socks[0]}:{reach.socks[1]}"]
    return argv
