"""`sumrate-lab list | run | bench | report | compare`, and what keeps and shows results."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path

from sumrate.lab.experiment import keeping, record_results, values, verdicts
from sumrate.lab.experiment.demands import demands
from sumrate.lab.experiment.execute import bench, quick, run
from sumrate.lab.experiment.goals import is_performance
from sumrate.lab.experiment.kept import KEPT, path_of
from sumrate.lab.experiment.load import CATALOGUE, FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.sources import place_of, result_names, verdicts_of
from sumrate.lab.experiment.store import OUTPUT
from sumrate.lab.experiment.verdicts import complain
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import ERASE_REST


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the subcommands."""
    sub = commands.add_parser("list", help="list the experiments with their questions")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=list_experiments)
    _add_run(commands)
    _add_bench(commands)
    _add_results(commands)
    keeping.add_command(commands)
    verdicts.add_command(commands)
    values.add_command(commands)
    record_results.add_command(commands)


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser(
        "run",
        help="run experiments",
        epilog="example: sumrate-lab run five-conditions --quick",
    )
    sub.add_argument("names", nargs="+", metavar="NAME", help="experiment, as `list` names it")
    sub.add_argument("--quick", action="store_true", help="one repetition")
    sub.add_argument(
        "--repetitions",
        type=_positive,
        help="repetitions of every condition (default: from the file)",
    )
    sub.add_argument(
        "--condition", action="append", default=[], help="only this condition (repeatable)"
    )
    sub.add_argument(
        "--scheme",
        action="append",
        default=[],
        help="only this scheme, and the links alone (repeatable)",
    )
    sub.add_argument("--output", type=Path, default=OUTPUT, help="folder of results (out/lab)")
    sub.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    sub.set_defaults(run=run)


def _add_bench(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser(
        "bench",
        help="measure the performance goals P1 to P10",
        description="Runs the experiments that measure the performance goals, then prints for "
        "each goal the values of Sumrate and of the other transports.",
        epilog="example: sumrate-lab bench --quick --only P1 --only P5",
    )
    sub.add_argument("--quick", action="store_true", help="one repetition")
    sub.add_argument(
        "--repetitions",
        type=_positive,
        help="repetitions of every condition (default: from the file)",
    )
    sub.add_argument(
        "--only", action="append", default=[], metavar="GOAL", help="only this goal (repeatable)"
    )
    sub.add_argument("--table", action="store_true", help="measure nothing: print the last results")
    sub.add_argument("--output", type=Path, default=OUTPUT, help="folder of results (out/lab)")
    sub.add_argument("--json", action="store_true", help="print the table as JSON")
    sub.set_defaults(run=bench)


def _add_results(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser("report", help="draw all results: out/lab/report.html")
    sub.add_argument("--results", type=Path, default=OUTPUT, help="folder of results (out/lab)")
    sub.add_argument("--output", type=Path, help="first page (report.html in that folder)")
    sub.set_defaults(run=report)

    sub = commands.add_parser(
        "compare",
        help="compare two results",
        description="A and B are folders or tables of results, or names of experiments. A name "
        "means the last run for A, and the kept table in results/ for B. Without B, the last run "
        "of A is compared with its kept table.",
        epilog="example: sumrate-lab compare windows",
    )
    sub.add_argument("a", metavar="A", help="result or experiment")
    sub.add_argument("b", nargs="?", metavar="B", help="result or experiment (default: A)")
    sub.set_defaults(run=compare)


def _positive(text: str) -> int:
    """A number of repetitions.

    Raises:
        argparse.ArgumentTypeError: it is none.

    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of repetitions: 1 or more")
    return int(text)


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 1 else "1 min"


def list_experiments(args: argparse.Namespace) -> int:
    """Prints name, title and question of every experiment.

    Raises:
        RefusedError: there are none.

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
    if args.json:
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
    return Plan(experiment, experiment.repetitions).seconds() / 60, quick(experiment).seconds() / 60


def measures(experiment: Experiment) -> bool:
    """Whether it measures performance goals, so that `bench` runs it."""
    return any(is_performance(check.goal) for check in experiment.checks)


def report(args: argparse.Namespace) -> int:
    """Writes the page of all results that are there."""
    from sumrate.report.lab import RunError, write_report  # noqa: PLC0415 (plots load slowly)

    there = [name for name in result_names(args.results) if name in names()]
    if not there:
        print(
            f"error: no results in {args.results}: `sumrate-lab run NAME` writes them",
            file=sys.stderr,
        )
        return 1
    page = args.output or args.results / "report.html"
    partial = page.with_suffix(page.suffix + ".part")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()  # drawing takes long: what cannot be written is refused before it
        found = {place_of(args.results, name): verdicts_of(args.results, name) for name in there}
        write_report([*found], FOLDER / CATALOGUE, page, _drawing, _asked(), judged=found)
    except (RunError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        with suppress(OSError):
            partial.unlink()
    if sys.stderr.isatty():
        print(f"\r{ERASE_REST}", end="", file=sys.stderr, flush=True)
    print(page)
    return 0


def _asked() -> dict[str, list[str]]:
    """The experiments that check each claim and goal; those whose file is wrong aside."""
    found: dict[str, list[str]] = {}
    for demand in demands(OUTPUT, broken=[]):
        experiments = found.setdefault(demand.id, [])
        if demand.experiment not in experiments:
            experiments.append(demand.experiment)
    return found


def _drawing(what: str) -> None:
    """Says on a terminal what is drawn, which takes half a minute for all that is kept."""
    if sys.stderr.isatty():
        print(f"\rdrawing {what}{ERASE_REST}", end="", file=sys.stderr, flush=True)


def _result(name: str) -> Path:
    """A result as it is given, or the last run of an experiment of this name."""
    return OUTPUT / name if not Path(name).exists() and name in names() else Path(name)


def _kept(name: str) -> Path:
    """A result as it is given, or the kept table of an experiment of this name."""
    return path_of(KEPT, name) if not Path(name).exists() and name in names() else Path(name)


def compare(args: argparse.Namespace) -> int:
    """Prints the medians of two results side by side."""
    from sumrate.report.lab import RunError, compare_table  # noqa: PLC0415

    try:
        print(compare_table(_result(args.a), _kept(args.b or args.a)))
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
