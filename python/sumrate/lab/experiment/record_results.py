"""`sumrate-lab results`: records what docs/results.md compares, and writes the page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sumrate.lab.experiment.execute import run
from sumrate.lab.experiment.headlines import read_headlines, write_page
from sumrate.lab.experiment.keeping import keep_problems, keep_table
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.store import OUTPUT
from sumrate.lab.refusal import RefusedError


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `results`."""
    sub = commands.add_parser(
        "results",
        help="record the comparisons of the results page again",
        description="Prints a plan, then runs the experiments of docs/headlines.toml one after the "
        "other, keeps each in results/, and writes docs/results.md and its pictures.",
        epilog="example: sumrate-lab results --plan",
    )
    sub.add_argument("--plan", action="store_true", help="print the plan only")
    sub.add_argument(
        "--write", action="store_true", help="write the page only, from the kept tables"
    )
    sub.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only this experiment (repeatable)",
    )
    sub.add_argument("--output", type=Path, default=OUTPUT, help="folder of the runs (out/lab)")
    sub.set_defaults(run=results)


def results(args: argparse.Namespace) -> int:
    """Records, keeps and writes; 1 if a run failed or must not be kept.

    Raises:
        RefusedError: the page compares nothing of an experiment that was asked for.

    """
    known = read_headlines().experiments()
    if unknown := set(args.only) - set(known):
        raise RefusedError(
            f"the page shows nothing of {', '.join(sorted(unknown))}; it has {', '.join(known)}"
        )
    names = args.only or known
    if args.write:
        write_page()
        return 0
    print("\n".join(plan_lines(names)), flush=True)
    if args.plan:
        return 0
    whole = argparse.Namespace(
        names=names, quick=False, repetitions=None, condition=[], scheme=[],
        output=args.output, json=False,
    )  # fmt: skip
    status = run(whole)
    if status > 1:  # stopped
        return status
    refused = []
    for name in names:
        problems = keep_problems(args.output / name, name)
        refused += problems
        if not problems:
            print(keep_table(args.output / name, name))
    write_page()
    if refused:
        print("\n".join(["not kept:", *refused]), file=sys.stderr)
    return 1 if refused or status else 0


def plan_lines(names: Sequence[str]) -> list[str]:
    """What is run, how often, and how long each and all of it takes."""
    total = 0.0
    lines = []
    for name in names:
        experiment = load(name)
        seconds = Plan(experiment, experiment.repetitions).seconds()
        total += seconds
        lines.append(
            f"{name:18} {seconds / 60:5.1f} min, repetitions: {experiment.repetitions:2}  "
            f"{experiment.title}"
        )
    return [*lines, f"{'in all':18} {total / 60:5.1f} min, more where runs are void"]
