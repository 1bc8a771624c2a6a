"""`sumrate-lab list | report | compare`."""

import json
import sys
from contextlib import suppress
from pathlib import Path

from sumrate.lab.experiment.catalogue import entries
from sumrate.lab.experiment.execute import shortened
from sumrate.lab.experiment.kept import KEPT, path_of
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.sources import place_of, result_names
from sumrate.lab.experiment.store import OUTPUT
from sumrate.lab.experiment.verdicts import complain
from sumrate.lab.options import Json, Runs
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import bar
from sumrate.verdict.model import is_performance


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 1 else "1 min"


def list_experiments(*, as_json: Json = False) -> int:
    """List the experiments with their questions.

    Raises RefusedError: there are none.
    """
    found, broken = [], []
    if not names():
        raise RefusedError(
            f"there are no experiments in {FOLDER}: the laboratory runs from its repository "
            "(`make .venv/installed`, or `pip install --editable '.[lab]'` in it)"
        )
    for name in names():
        try:
            found.append(load(name))
        except ExperimentError as error:
            broken.append(error)
    status = complain(broken)
    if as_json:
        print(json.dumps([{"name": e.name, "title": e.title, "question": e.question,
                           "method": e.method, "seconds": round(Plan(e, e.repetitions).seconds())}
                          for e in found], indent=1))  # fmt: skip
        return status
    for e in found:
        minutes, short = durations(e)
        print(f"{e.name:24} {e.title} (about {_minutes(minutes)}, --quick {_minutes(short)})")
        print(f"{'':24} {e.question}")
    performance = [e for e in found if measures(e)]
    for what, some in (("all experiments", found), ("`sumrate-lab bench`", performance)):
        if not some:
            continue
        whole, short = (sum(minutes) for minutes in zip(*map(durations, some), strict=True))
        print(f"{what:24} about {whole:.0f} min, --quick {short:.0f} min")
    print(f"{'':24} void runs are repeated, which takes longer")
    return status


def durations(experiment: Experiment) -> tuple[float, float]:
    """About how many minutes it takes, and with `--quick`."""
    return Plan(experiment, experiment.repetitions).seconds() / 60, shortened(
        experiment
    ).seconds() / 60


def measures(experiment: Experiment) -> bool:
    """Whether it measures performance goals, so that `bench` runs it."""
    return any(is_performance(check.goal) for check in experiment.checks)


def report(*, results: Runs = OUTPUT, output: Path | None = None) -> int:
    """Draw all results: out/lab/report.html.

    Args:
        output: First page (report.html in that folder).

    """
    from sumrate.report.lab import RunError, write_report  # noqa: PLC0415 (plots load slowly)

    there = [name for name in result_names(results) if name in names()]
    if not there:
        print(
            f"error: no results in {results}: `sumrate-lab run NAME` writes them",
            file=sys.stderr,
        )
        return 1
    page = output or results / "report.html"
    partial = page.with_suffix(page.suffix + ".part")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()  # drawing takes long: what cannot be written is refused before it
        found = [place_of(results, name) for name in there]
        with bar("drawing {task.description}") as shown:
            task = shown.add_task("", total=len(found))

            def drawing(what: str) -> None:
                shown.update(task, advance=1, description=what, refresh=sys.stderr.isatty())

            write_report(found, entries(results, broken=[]), page, drawing)
    except (RunError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        with suppress(OSError):
            partial.unlink()
    print(page)
    return 0


def _result(name: str) -> Path:
    """A result as it is given, or the last run of an experiment of this name."""
    return OUTPUT / name if not Path(name).exists() and name in names() else Path(name)


def _kept(name: str) -> Path:
    """A result as it is given, or the kept table of an experiment of this name."""
    return path_of(KEPT, name) if not Path(name).exists() and name in names() else Path(name)


def compare(a: str, b: str | None = None, /) -> int:
    """Compare two results.

    A and B are folders or tables of results, or names of experiments. A name means the last run
    for A, and the kept table in results/ for B. Without B, the last run of A is compared with its
    kept table.

    Example: sumrate-lab compare windows

    Args:
        a: Result or experiment.
        b: Result or experiment.

    """
    from sumrate.report.lab import RunError, compare_table  # noqa: PLC0415

    try:
        print(compare_table(_result(a), _kept(b or a)))
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
