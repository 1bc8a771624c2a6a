"""Encodes of an experiment, made before anything is measured: they take minutes."""

from collections.abc import Callable, Iterator
from functools import partial

from sumrate.lab.endpoints import Unavailable
from sumrate.lab.experiment import player, tiles, video
from sumrate.lab.experiment.by_method import PlayerExperiment, TilesExperiment, VideoExperiment
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.topology import seconds_of
from sumrate.lab.results import Progress


def make_encodes(plan: Plan, progress: Progress) -> None:
    """Makes what is not there from an earlier run, and shows what is being made.

    What cannot be made is said by the runs that need it.
    """
    for what, make in dict(wanted(plan)).items():
        progress.show(f"{plan.experiment.name}, {what} (once; minutes, if it was not yet)")
        try:
            make()
        except Unavailable:
            break
    progress.clear()


def wanted(plan: Plan) -> Iterator[tuple[str, Callable[[], object]]]:
    """What the points of a plan play, by what is said of it."""
    experiment = plan.experiment
    for point in plan.points():
        if isinstance(experiment, TilesExperiment):
            clips = experiment.tiles.clips
            clip = clips[point.repetition % len(clips)]
            yield f"encoding the tiles of {clip}", partial(tiles.encodes_of, clip)
        if isinstance(experiment, VideoExperiment):
            setting = experiment.video
            yield "encoding its clips", partial(video.clip_of, setting.clips)
        if isinstance(experiment, PlayerExperiment):
            seconds = int(seconds_of(experiment, point.condition)) + player.SPARE_S
            said = f"encoding {seconds} s of its stream"
            stream = experiment.player
            yield said, partial(player.stream_of, stream.clips, seconds)
