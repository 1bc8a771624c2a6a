"""Experiments of method `simulation`: figures of the 60 GHz model instead of traffic on links."""

import math
import shutil
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sumrate.lab.experiment.by_method import SimulationExperiment
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.record import Metric, Run
from sumrate.lab.results import Progress

QUICK_SHARE = 10
"""With --quick, a tenth of the realisations."""
EXTRA = "simulations need `pip install .[ghz]`"
FIGURES = ("sumrate.access.figures", "sumrate.lab.link_figures")
"""Modules with figures that a file can name, each in a table `FIGURES`; an optional extra."""


def figures() -> dict[str, Any]:
    """Every figure by its name.

    Raises ModuleNotFoundError: what the 60 GHz model needs is not installed.
    """
    return {k: v for name in FIGURES for k, v in import_module(name).FIGURES.items()}


def simulate(
    experiment: SimulationExperiment,
    repetitions: int,
    folder: Path,
    *,
    quick: bool,
    progress: Progress,
) -> list[Run]:
    """Computes every figure in every repetition, each with a seed of its own.

    Tables and pictures of the first repetition are written into `folder`. Runs are those of the
    schemes and conditions that the file declares.
    """
    from sumrate.access.actions import write_csv  # noqa: PLC0415 (an optional extra)
    from sumrate.access.figures import Effort  # noqa: PLC0415
    from sumrate.access.tasks import Row, Task, evaluate  # noqa: PLC0415
    from sumrate.report.access import draw  # noqa: PLC0415 (loads matplotlib)

    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f".{folder.name}-*"):  # by one that was killed
        shutil.rmtree(left, ignore_errors=True)
    realisations = experiment.simulation.realisations
    share = QUICK_SHARE if quick else 1
    effort = Effort(max(20, realisations // share), max(200, Effort().pool // share))
    titles = {scheme.name: scheme.title or scheme.name for scheme in experiment.schemes}
    titles |= {panel.name: panel.title or panel.name for panel in experiment.conditions}
    runs: list[Run] = []
    # Whoever is stopped half way leaves no new pictures beside an older result's values.
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as drawn:
        for repetition in range(repetitions):
            rows: list[Row] = []
            for name in experiment.simulation.figures:
                figure = figures()[name]
                progress.show(f"figure {name}, repetition {repetition + 1} of {repetitions}")
                compute: Callable[[list[Task]], list[Row]] = evaluate
                found = figure.table(effort, experiment.seed + repetition, compute)
                progress.left_s -= experiment.seconds / len(experiment.simulation.figures)
                if repetition == 0:
                    write_csv(found, Path(drawn) / f"{name}.csv")
                    draw(figure, found, Path(drawn), titles)
                rows += found
            runs += _runs(experiment, repetition, rows)
        progress.clear()
        folder.mkdir(exist_ok=True)
        for file in Path(drawn).iterdir():
            file.replace(folder / file.name)
    return runs


def _runs(experiment: Experiment, repetition: int, rows: Iterable[dict[str, object]]) -> list[Run]:
    """One run for each scheme in each condition, with the metrics that the tables have for it."""
    titles = {scheme.name: scheme.title or scheme.name for scheme in experiment.schemes}
    conditions = {condition.name for condition in experiment.conditions}
    found: dict[tuple[str, str], Run] = {}
    for row in rows:
        scheme = str(row["curve"])
        for condition in _conditions(row):
            if scheme not in titles or condition not in conditions:
                continue
            run = found.setdefault(
                (scheme, condition),
                Run(
                    scheme=scheme,
                    condition=condition,
                    congestion_control=experiment.congestion_control[0],
                    buffers=experiment.buffers[0],
                    repetition=repetition,
                    seed=experiment.seed + repetition,
                    detail={"title": titles[scheme]},
                ),
            )
            value = row["mean"]
            if isinstance(value, float) and math.isfinite(value):
                run.metrics.append(Metric(str(row["metric"]), value, ""))
    return list(found.values())


def _conditions(row: dict[str, object]) -> tuple[str, ...]:
    """How experiment files name conditions.

    The panel, with the x of values that have one; with the figure before it where several figures
    have the same panels.
    """
    panel, x = str(row["panel"]), row["x"]
    place = panel if x is None else f"{panel}@{x:g}"
    return (place, f"{row['figure']}/{place}")
