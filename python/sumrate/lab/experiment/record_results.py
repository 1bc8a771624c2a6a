"""`sumrate-lab results`: records what docs/results.md compares, and writes the page."""

import sys
from collections.abc import Sequence

from sumrate.lab.experiment.execute import run
from sumrate.lab.experiment.headlines import read_headlines, write_page
from sumrate.lab.experiment.keeping import keep_problems, keep_table
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.store import OUTPUT
from sumrate.lab.options import Runs
from sumrate.lab.refusal import RefusedError


def results(
    *,
    plan: bool = False,
    write: bool = False,
    only: tuple[str, ...] = (),
    output: Runs = OUTPUT,
) -> int:
    """Record the comparisons of the results page again.

    Prints a plan, then runs the experiments of docs/headlines.toml one after the other, keeps each
    in results/, and writes docs/results.md and its pictures. Exit status 1 if a run failed or must
    not be kept.

    Example: sumrate-lab results --plan

    Args:
        plan: Print the plan only.
        write: Write the page only, from the kept tables.
        only: Only this experiment (repeatable).

    """
    known = read_headlines().experiments()
    if unknown := set(only) - set(known):
        raise RefusedError(
            f"the page shows nothing of {', '.join(sorted(unknown))}; it has {', '.join(known)}"
        )
    names = only or known
    if write:
        write_page()
        return 0
    print("\n".join(plan_lines(names)), flush=True)
    if plan:
        return 0
    status = run(list(names), output=output)
    if status > 1:  # stopped
        return status
    refused = []
    for name in names:
        problems = keep_problems(output / name, name)
        refused += problems
        if not problems:
            print(keep_table(output / name, name))
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
