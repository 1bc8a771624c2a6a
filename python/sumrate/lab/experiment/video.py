"""Progressive video as an experiment: the download, and what its pauses are compared with."""

import json
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sumrate.lab.endpoints import Scheme
from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.by_method import VideoCondition, VideoExperiment, expect
from sumrate.lab.experiment.media import CACHE, deliver, encoding
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import STEP_S, Bins, Run
from sumrate.lab.experiment.topology import seconds_of
from sumrate.lab.links import Link
from sumrate.lab.scene import Scene
from sumrate.lab.stream.driver import PROGRAM, reaching, timing
from sumrate.lab.stream_run import running_source
from sumrate.lab.video.player import document_of
from sumrate.qoe.video.clip import Clip
from sumrate.qoe.video.playback import Video, fluid, least_pause_share

SLICES = 10
"""In how many parts the 100 ms samples of the links alone are added up: a GOP does not end with
one of them."""
WATCHED = {
    "pause_share": "ratio",
    "failed_share": "ratio",
    "shown_mbps": "Mbit/s",
    "stock_s": "s",
    "psnr_db": "dB",
    "measured_psnr_db": "dB",
    "startup_s": "s",
    "longest_pause_s": "s",
    "pauses": "",
}


@lru_cache
def clip_of(clips: tuple[str, ...]) -> Clip:
    """The encode, made now or before.

    Raises Unavailable: the encoder or a clip is not installed, or failed.
    """
    with encoding():
        from sumrate.qoe.video.encode import encoded  # noqa: PLC0415 (an optional extra)

        return encoded(clips, CACHE)


def _played(condition: ConditionSetting) -> VideoCondition:
    return expect(condition, VideoCondition)


def video_of(
    experiment: Experiment, condition: ConditionSetting, seed: int
) -> tuple[Clip, Video, int]:
    """The clip, the video that is played in a condition, and the buffer's bytes.

    It is longer than the run, so that it never ends before; the buffer holds two of the largest
    GOPs in any case.
    """
    setting, video_mbps = expect(experiment, VideoExperiment).video, _played(condition).video_mbps
    clip = clip_of(setting.clips)
    gops = math.ceil((seconds_of(experiment, condition) + setting.buffer_s) / setting.gop_s) + 2
    video = clip.video(video_mbps, setting.gop_s, gops, seed)
    buffer_bytes = max(round(video_mbps * 125e3 * setting.buffer_s), 2 * max(video.gop_bytes))
    return clip, video, buffer_bytes


def play_video(
    run: Run,
    scheme: Scheme,
    built: Scene,
    experiment: Experiment,
    condition: ConditionSetting,
    *,
    on_first_byte: Callable[[], object],
) -> None:
    """Downloads the condition's video over the scheme and notes what a viewer had."""
    clip, video, buffer_bytes = video_of(experiment, condition, run.seed)
    seconds = seconds_of(experiment, condition)
    described = built.folder / "video.json"
    described.write_text(json.dumps(document_of(video, buffer_bytes)), encoding="utf-8")
    output = built.folder / "playback.json"
    delivery = deliver(
        run,
        scheme,
        built,
        server=("source", lambda reach: running_source(built, reach, None)),
        client=lambda reach: player_command(reach, condition, seconds, described, output),
        output=output,
        measured_s=seconds,
        on_first_byte=on_first_byte,
    )
    _note(run, delivery.document, condition, seconds)
    delivery.detail["cpu_seconds"]["player"] = delivery.document["cpu_s"]
    run.detail |= {
        **delivery.detail,
        "video": {
            "mean_mbps": round(video.mbps, 2),
            "largest_gop_over_mean": round(
                max(video.gop_bytes) * 8e-6 / video.gop_s / video.mbps, 3
            ),
            "scale_of_encoded_sizes": round(
                clip.scale(_played(condition).video_mbps, video.gop_s), 3
            ),
            "clip": clip.sources,
            "clip_sha256": clip.sha256,
            "encoder": clip.encoder,
            "encoder_arguments": " ".join(clip.arguments),
            "buffer_bytes": buffer_bytes,
        },
    }


def player_command(
    reach: Reach, condition: ConditionSetting, seconds: float, video: Path, output: Path
) -> list[str]:
    """The command of the player."""
    player = (*PROGRAM, "player", "--video", str(video))
    counted = ("--counted-from", f"{_played(condition).counted_from_s:g}")
    return [*player, *counted, *reaching(reach), *timing(seconds, 0.0, output)]


def _note(run: Run, document: dict[str, Any], condition: ConditionSetting, seconds: float) -> None:
    """The player's result as metrics."""
    watched = document["watched"]
    for name, unit in WATCHED.items():
        run.add(name, watched[name], unit)
    run.add("played_share", 1.0 - watched["pause_share"], "ratio")
    bins = Bins.of_totals(document["bins"]["step_s"], document["bins"]["bytes"])
    run.add("download_mbps", bins.mbps(_played(condition).counted_from_s, seconds), "Mbit/s")
    run.series = bins.series()


def add_pause_bounds(
    experiment: Experiment, condition: ConditionSetting, runs: Sequence[Run], links: Sequence[Link]
) -> None:
    """Sets pauses beside what the sum of the links alone allows, in the same repetition.

    `pause_bound` is max(0, 1 - sum/V) less what the run's own stock spares, V being the mean rate
    of the GOPs that this run showed: those that fall into a run are not the whole clip. A player
    that was stopped by a full buffer did not take all that its link carries: then that link alone
    is as fast as the video, and the bound is 0 as it should be. `ideal_pause_share` is the pause
    share of the same player fed by the links alone from the first byte on, moment by moment: what
    varying links cost whoever adds them up. `pause_over_links` is against the longer of the two.
    """
    alone = {run.scheme: run for run in runs}
    names = [link.name for link in links]
    if any(name not in alone or alone[name].void for name in names):
        return
    rates = [alone[name].value("download_mbps") for name in names]
    if any(rate is None for rate in rates):
        return
    total = sum(rate or 0.0 for rate in rates)
    ideal = _ideal(experiment, condition, [alone[name] for name in names])
    for run in runs:
        share, psnr = run.value("pause_share"), run.value("psnr_db")
        if share is None or psnr is None:
            continue
        for name, other in alone.items():
            theirs = None if other.void else other.value("psnr_db")
            if name != run.scheme and theirs is not None:
                run.add(f"psnr_over_{name}_db", psnr - theirs, "dB")
        if run.scheme in names:
            own = _bound(experiment, condition, run, run.value("download_mbps") or 0.0)
            run.add("pause_bound", own, "ratio")
            run.add("pause_excess", share - own, "ratio")
            continue
        bound = _bound(experiment, condition, run, total)
        run.add("pause_bound", bound, "ratio")
        run.add("pause_excess", share - bound, "ratio")
        run.add("ideal_pause_share", ideal, "ratio")
        if ideal is not None:
            run.add("pause_over_ideal", share - ideal, "ratio")
            run.add("pause_over_links", share - max(bound, ideal), "ratio")


def _bound(
    experiment: Experiment, condition: ConditionSetting, run: Run, rate_mbps: float
) -> float:
    """The least pause share of a run's player at a constant rate, with the stock that it had."""
    played = _played(condition)
    counted_from_s = max(played.counted_from_s, run.value("startup_s") or 0.0)
    return least_pause_share(
        rate_mbps,
        run.value("shown_mbps") or played.video_mbps,
        stock_s=run.value("stock_s") or 0.0,
        counted_s=seconds_of(experiment, condition) - counted_from_s,
        gop_s=expect(experiment, VideoExperiment).video.gop_s,
    )


def _ideal(
    experiment: Experiment, condition: ConditionSetting, alone: Sequence[Run]
) -> float | None:
    """Pause share of a player that gets what the links alone got, added up in time."""
    if not all(run.series for run in alone):
        return None
    _, video, buffer_bytes = video_of(experiment, condition, alone[0].seed)
    arrivals = [
        (index * STEP_S + (part + 1) * STEP_S / SLICES, sum(rates) * 125e3 * STEP_S / SLICES)
        for index, rates in enumerate(
            zip(*([mbps for _, mbps in run.series] for run in alone), strict=False)
        )
        for part in range(SLICES)
    ]
    seconds = seconds_of(experiment, condition)
    watched = fluid(video, buffer_bytes, arrivals, seconds, _played(condition).counted_from_s)
    return watched.pause_share if watched.watched_s > 0 else None
