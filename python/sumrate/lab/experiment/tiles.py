"""Tiled 360-degree video as an experiment: what came in time, and what the viewport made of it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sumrate.lab.endpoints import Scheme
from sumrate.lab.endpoints.base import Reach
from sumrate.lab.experiment.by_method import (
    SETTLING_GOPS,
    TilesCondition,
    TilesExperiment,
    expect,
)
from sumrate.lab.experiment.media import CACHE, deliver, encoding
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Bins, Run, percentile
from sumrate.lab.experiment.topology import seconds_of
from sumrate.lab.links import Link
from sumrate.lab.process import Process
from sumrate.lab.scene import Scene
from sumrate.lab.stream.driver import PATIENCE_S, PROGRAM, reaching, serving

if TYPE_CHECKING:  # they need the optional extra
    from sumrate.lab.tiles.task import Task
    from sumrate.qoe.tiles.ladder import Ladder


def play_tiles(
    run: Run,
    scheme: Scheme,
    built: Scene,
    experiment: Experiment,
    condition: ConditionSetting,
    *,
    on_first_byte: Callable[[], object],
) -> None:
    """Sends the condition's tiles over the scheme and notes what the viewer saw.

    Raises Unavailable: the encoder or the clip is not installed, or failed.
    """
    clips = expect(experiment, TilesExperiment).tiles.clips
    encodes = encodes_of(clips[run.repetition % len(clips)])
    task = _task(experiment, condition, encodes, run.seed)
    file, output = built.folder / "tiles.npz", built.folder / "tiles.json"
    task.write(file)
    delivery = deliver(
        run,
        scheme,
        built,
        server=("sender", lambda reach: _sender(built, reach, file)),
        client=lambda reach: viewer_command(reach, file, output),
        output=output,
        measured_s=task.gops + 1.0,
        on_first_byte=on_first_byte,
    )
    _note(run, delivery.document, encodes)
    _note_ideal(run, task, encodes, built.links)
    factor = float(task.sizes.sum()) / float(encodes.sizes.sum())
    delivery.detail["cpu_seconds"]["viewer"] = delivery.document["cpu_s"]
    run.detail |= {
        **delivery.detail,
        "tiles": {
            **encodes.about,
            "policy": task.policy,
            "carried_by": _carried(messages=delivery.reach.messages),
            "scale_of_encoded_sizes": round(factor, 3),
            "rates_mbps": [
                round(float(row.sum(axis=1).mean()) / 125e3, 1)
                for row in task.sizes.transpose(1, 0, 2)
            ],
        },
    }


def _carried(*, messages: bool) -> str:
    if messages:
        return "messages with importance, dropped when a GOP is due"
    return "one ordered stream, abandoned when a GOP is due"


@lru_cache
def encodes_of(clip: str) -> "Ladder":
    """The tiles' encodes, made now or before.

    Raises Unavailable: the encoder or the clip is not installed, or failed.
    """
    with encoding():
        from sumrate.qoe.tiles.ladder import ladder  # noqa: PLC0415 (an optional extra)

        return ladder(clip, CACHE)


def _task(
    experiment: Experiment, condition: ConditionSetting, encodes: "Ladder", seed: int
) -> "Task":
    """What both ends of a run are given."""
    import numpy as np  # noqa: PLC0415 (an optional extra)

    from sumrate.lab.tiles.task import Task  # noqa: PLC0415

    setting = expect(experiment, TilesExperiment).tiles
    return Task(
        policy=expect(condition, TilesCondition).tiles,
        seed=seed,
        gops=int(seconds_of(experiment, condition)),
        margin=setting.margin,
        sizes=encodes.scaled(setting.best_mbps),
        errors=np.stack([encodes.tile_errors(gop) for gop in range(encodes.gops)]),
    )


def _sender(built: Scene, reach: Reach, file: Path) -> AbstractContextManager[Process]:
    """A sender that accepts connections."""
    argv = ["sender", "--task", str(file)]
    return serving(built, reach, "sender", [*argv, "--messages"] if reach.messages else argv)


def viewer_command(reach: Reach, file: Path, output: Path) -> list[str]:
    """The command of the viewer."""
    timing = ("--patience", f"{PATIENCE_S:g}", "--output", str(output))
    return [*PROGRAM, "viewer", "--task", str(file), *reaching(reach), *timing]


def _note(run: Run, document: dict[str, Any], encodes: "Ladder") -> None:
    """What the viewer saw, as metrics. GOP k is shown from k + 1 seconds on."""
    from sumrate.qoe.tiles.head import movement  # noqa: PLC0415
    from sumrate.qoe.tiles.shown import MISSING, mean_level, see  # noqa: PLC0415
    from sumrate.qoe.tiles.viewport import View  # noqa: PLC0415

    levels = document["levels"]
    head = movement(run.seed, len(levels) + 2.0)
    begins = [number + 1.0 for number in range(len(levels))]
    seen = see(encodes, View(), head, levels, begins)[SETTLING_GOPS:]
    counted = levels[SETTLING_GOPS:]
    run.add("viewport_psnr_db", sum(gop.psnr_db for gop in seen) / len(seen), "dB")
    run.add("viewport_psnr_p5_db", percentile([gop.psnr_db for gop in seen], 0.05), "dB")
    run.add("viewport_missing_share", sum(g.missing_share for g in seen) / len(seen), "ratio")
    missing = sum(level == MISSING for row in counted for level in row)
    run.add("missed_tiles_share", missing / sum(map(len, counted)), "ratio")
    run.add("mean_level", mean_level(counted), "")
    run.add("download_mbps", document["goodput_mbps"], "Mbit/s")
    run.series = Bins.of_totals(document["bins"]["step_s"], document["bins"]["bytes"]).series()


def _note_ideal(run: Run, task: "Task", encodes: "Ladder", links: Sequence[Link]) -> None:
    """What the viewer would have seen over a transport that lacks nothing; see `tiles_ideal`."""
    from sumrate.lab.experiment.tiles_ideal import IDEALS, sum_of_traces  # noqa: PLC0415

    rates_mbps = sum_of_traces(links, task.gops)
    run.add("ideal_psnr_db", IDEALS.psnr_db(task, encodes, rates_mbps, SETTLING_GOPS), "dB")


def add_tile_gains(experiment: Experiment, runs: Sequence[Run]) -> None:
    """Differences of viewport PSNR in the same repetition, of runs that are not void.

    `gain_over_SCHEME_db` over another scheme in the same condition; `gain_over_policy_db` over the
    same scheme in the condition that `tiles_over` names, and `ideal_gain_over_policy_db` what that
    is where nothing is lacking.
    """
    over = {c.name: expect(c, TilesCondition).tiles_over for c in experiment.conditions}
    found = {
        (r.condition, r.scheme, r.congestion_control, r.buffers, r.repetition): value
        for r in runs
        if not r.void and (value := r.value("viewport_psnr_db")) is not None
    }
    ideal = _ideals(runs)
    schemes = dict.fromkeys(run.scheme for run in runs)
    for run in runs:
        rest = (run.congestion_control, run.buffers, run.repetition)
        own = found.get((run.condition, run.scheme, *rest))
        if own is None:
            continue
        for scheme in schemes:
            other = found.get((run.condition, scheme, *rest))
            if other is not None and scheme != run.scheme:
                run.add(f"gain_over_{scheme}_db", own - other, "dB")
        other = found.get((over[run.condition], run.scheme, *rest))
        if other is not None:
            run.add("gain_over_policy_db", own - other, "dB")
        before = ideal.get((over[run.condition], run.seed))
        after = ideal.get((run.condition, run.seed))
        if before is not None and after is not None:
            run.add("ideal_gain_over_policy_db", after - before, "dB")


def _ideals(runs: Sequence[Run]) -> dict[tuple[str, int], float]:
    """By condition and seed. A link alone may stand for itself in a condition with other traces."""
    found: dict[tuple[str, int], float] = {}
    for run in runs:
        value = run.value("ideal_psnr_db")
        if value is not None and not run.void and "measured_in" not in run.detail:
            found.setdefault((run.condition, run.seed), value)
    return found
