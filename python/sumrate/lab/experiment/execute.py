"""Runs experiments one after the other and keeps what they leave: `run` and `bench`."""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace as replaced
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sumrate.lab.calibration import calibrate, words
from sumrate.lab.congestion import loaded
from sumrate.lab.experiment import goals
from sumrate.lab.experiment.attempts import FOREIGN
from sumrate.lab.experiment.by_method import SimulationExperiment, expect
from sumrate.lab.experiment.catalogue import goal_order
from sumrate.lab.experiment.encodes import make_encodes
from sumrate.lab.experiment.judge import (
    DEPENDS,
    FAILS,
    HOLDS,
    NOT_RUN,
    REPORTED,
    Finding,
    Verdict,
    is_peer,
    judge,
    measured_range,
)
from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.model import Experiment, scheme_names
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.run import Plan, run_all
from sumrate.lab.experiment.simulated import EXTRA, simulate
from sumrate.lab.experiment.store import write
from sumrate.lab.experiment.topology import links_of, on_wires
from sumrate.lab.host_pauses import PATIENCE_S
from sumrate.lab.machine_load import MOST, busy_before
from sumrate.lab.namespaces import INTERRUPTED, IsolationUnavailableError, run_isolated
from sumrate.lab.priority import granted, raise_own
from sumrate.lab.programs import RUN_FOLDER, MissingProgramError, program, require
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import Progress, provenance

PARTIAL = ".partial"
"""Ends the name of the folder with the repetitions of a run that has not ended."""
SHOWN = {
    HOLDS: "holds",
    FAILS: "does not hold",
    DEPENDS: "holds in part",
    NOT_RUN: "not measured",
    REPORTED: "figures only",
}


def run(args: argparse.Namespace) -> int:
    """Runs experiments in private namespaces; 1 if a run failed, whatever the verdicts are."""
    return _isolated(args.names, args, say=not args.json)


def bench(args: argparse.Namespace) -> int:
    """Measures the performance goals and prints their table.

    Raises:
        RefusedError: there is no such goal, or an experiment is wrong.

    """
    asked = {name: {check.goal for check in load(name).checks} for name in goals.measured_by()}
    performance = {goal for found in asked.values() for goal in found if goals.is_performance(goal)}
    args.only = [goal.upper().replace("B", "b") for goal in args.only]
    if unknown := set(args.only) - performance:
        known = ", ".join(sorted(performance, key=goal_order))
        raise RefusedError(f"no goal {', '.join(unknown)}; there are {known}")
    wanted = [name for name, found in asked.items() if found & set(args.only or performance)]
    args.condition, args.scheme = [], []
    status = 0 if args.table else _isolated(wanted, args, say=False)
    if status > 1:  # stopped
        return status
    found = [r for r in goals.rows(args.output) if r.id in (args.only or performance)]
    if args.json:
        print(json.dumps(goals.document(found, args.output), indent=1, ensure_ascii=False))
    else:
        print(goals.table(found))
    if not any(row.measured for row in found):
        hint = "`sumrate-lab verdicts --goals` shows what is kept in results/"
        print(f"no goal is measured in {args.output} yet; {hint}", file=sys.stderr)
    return status


def _isolated(names: Sequence[str], args: argparse.Namespace, *, say: bool) -> int:
    """Checks everything, then runs.

    Raises:
        ExperimentError: something that was asked for does not exist or is wrong.

    """
    try:
        plans = [_plan(load(name), args) for name in names]
        for plan in plans:
            _spare_whole_result(plan, args.output)
        if any(not _is_simulation(plan) for plan in plans):
            require("ip", "ss", "nsenter", "sysctl", "iperf3")
            program("sumrate-link")
        args.output.mkdir(parents=True, exist_ok=True)
    except (MissingProgramError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return _carry_out(plans, args, say=say)


def _is_simulation(plan: Plan) -> bool:
    return isinstance(plan.experiment, SimulationExperiment)


def _carry_out(plans: Sequence[Plan], args: argparse.Namespace, *, say: bool) -> int:
    """Computes simulations, then runs the others in private namespaces; 1 if a run failed."""
    progress = Progress(sum(plan.seconds() for plan in plans))
    output = args.output.resolve()
    on_links = [plan for plan in plans if not _is_simulation(plan)]
    simulations = [plan for plan in plans if _is_simulation(plan)]
    documents: list[dict[str, Any]] = []

    def tell(plan: Plan, runs: list[Run], found: list[Verdict]) -> int:
        if say:
            whole = not (plan.only_conditions or plan.only_schemes)
            folder = output / plan.experiment.name
            print("\n".join(summary(plan.experiment, found, folder, whole=whole)))
        documents.extend({"experiment": plan.experiment.name, **v.document()} for v in found)
        return _complaints(plan.experiment, runs)

    def tell_all() -> None:
        """With `--json`, `run` prints one document."""
        if args.json and hasattr(args, "names"):
            print(json.dumps(documents, indent=1, ensure_ascii=False))

    def body() -> int:
        raise_own()
        status = max([tell(plan, *execute(plan, output, progress)) for plan in on_links])
        tell_all()
        return status

    try:
        quick = bool(args.quick)
        done = [tell(plan, *compute(plan, output, progress, quick=quick)) for plan in simulations]
        if on_links:
            done.append(run_isolated(body))
        else:
            tell_all()
        return max(done)
    except (IsolationUnavailableError, ModuleNotFoundError) as error:
        hint = f"{EXTRA}: " if isinstance(error, ModuleNotFoundError) else ""
        print(f"error: {hint}{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _plan(experiment: Experiment, args: argparse.Namespace) -> Plan:
    """What is run of an experiment; refuses conditions and schemes that it does not have."""
    for kind, wanted, known in (
        ("condition", args.condition, [c.name for c in experiment.conditions]),
        ("scheme", args.scheme, scheme_names(experiment)),
    ):
        for name in set(wanted) - set(known):
            raise ExperimentError(
                f"{experiment.name} has no {kind} `{name}`; it has {', '.join(known)}"
            )
    whole = Plan(experiment, experiment.repetitions, patience_s=PATIENCE_S)
    plan = quick(experiment) if args.quick else whole
    return replaced(
        plan,
        repetitions=args.repetitions or plan.repetitions,
        only_conditions=tuple(args.condition) or plan.only_conditions,
        only_schemes=tuple(args.scheme),
    )


def _spare_whole_result(plan: Plan, output: Path) -> None:
    """Keeps a part of an experiment from taking the place of the whole, which took its time.

    Raises:
        RefusedError: a whole result is there.

    """
    name = plan.experiment.name
    path = output / name / "manifest.json"
    whole = plan.experiment.repetitions
    part = plan.repetitions < whole or plan.only_conditions or plan.only_schemes
    if not part or not path.is_file():
        return
    there = json.loads(path.read_text(encoding="utf-8"))
    ran = {entry["condition"] for entry in there.get("runs", ())}
    if there.get("repetitions", 0) >= whole and ran >= {c.name for c in plan.experiment.conditions}:
        raise RefusedError(
            f"{path.parent} is a whole result of {name}, which a part of it would replace: "
            f"name another folder with --output, or remove that one"
        )


def quick(experiment: Experiment) -> Plan:
    """What `--quick` runs of it."""
    if experiment.quick_seconds:
        experiment = replace(experiment, seconds=experiment.quick_seconds)
    return Plan(experiment, 1, experiment.quick)


def execute(plan: Plan, output: Path, progress: Progress) -> tuple[list[Run], list[Verdict]]:
    """Runs, judges and keeps one experiment; needs private namespaces."""
    shutil.rmtree(RUN_FOLDER, ignore_errors=True)
    RUN_FOLDER.mkdir(parents=True)
    origin: dict[str, Any] = provenance(sys.argv) | {"sampler_real_time": granted()}
    origin["busy_before"] = busy_before()
    make_encodes(plan, progress)
    origin["calibration"] = _calibrated(plan, progress)

    name = plan.experiment.name
    partial = output / f"{name}{PARTIAL}"

    def keep(runs: list[Run]) -> None:
        write(partial, plan.experiment, runs, judge(plan.experiment, runs), origin)

    with loaded(plan.experiment.congestion_control) as missing:
        runs = run_all(plan, RUN_FOLDER, progress, missing, keep)
    origin["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    found = judge(plan.experiment, runs)
    write(output / name, plan.experiment, runs, found, origin)
    shutil.rmtree(partial, ignore_errors=True)
    return runs, found


def _calibrated(plan: Plan, progress: Progress) -> list[dict[str, Any]]:
    """What every emulated link of the plan does, beside what it was set to."""
    experiment = plan.experiment
    conditions = {point.condition.name: point.condition for point in plan.points()}.values()
    emulated = [links_of(experiment, c) for c in conditions if not on_wires(experiment, c)]
    progress.show(f"{experiment.name}, measuring its links")
    rows = calibrate(emulated, seed=experiment.seed, folder=RUN_FOLDER / "calibration")
    progress.clear()
    for row in rows:
        if not row["ok"]:
            print(f"{experiment.name}, a link is off: {words(row)}", file=sys.stderr)
    return rows


def compute(
    plan: Plan, output: Path, progress: Progress, *, quick: bool
) -> tuple[list[Run], list[Verdict]]:
    """Computes, judges and keeps figures of the 60 GHz model; no network is touched.

    Raises:
        ModuleNotFoundError: what the model needs is not installed.

    """
    origin: dict[str, Any] = provenance(sys.argv)
    folder = output / plan.experiment.name
    experiment = expect(plan.experiment, SimulationExperiment)
    runs = simulate(experiment, plan.repetitions, folder, quick=quick, progress=progress)
    origin["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    found = judge(plan.experiment, runs)
    write(folder, plan.experiment, runs, found, origin)
    return runs, found


def _complaints(experiment: Experiment, runs: Sequence[Run]) -> int:
    """Says what failed, is missing or is void; 1 if a run failed."""
    failed = [r for r in runs if "error" in r.detail]
    for bad in failed:
        where = f"{experiment.name}, {bad.condition}, {bad.scheme}"
        print(f"failed: {where}: {bad.detail['error']}", file=sys.stderr)
    missing = ((r.scheme, r.detail["missing"]) for r in runs if "missing" in r.detail)
    for scheme, reason in dict.fromkeys(missing):
        print(f"missing: {scheme}: {reason}", file=sys.stderr)
    if late := sum(r.void for r in runs):
        where = f"{experiment.name}: {late} of {len(runs)} runs are void"
        print(f"{where}: this machine was too busy to emulate their rates", file=sys.stderr)
    made = [r for r in runs if "measured_in" not in r.detail]
    if disturbed := [r for r in made if (r.detail.get(FOREIGN) or 0.0) > MOST]:
        where = f"{experiment.name}: in {len(disturbed)} of {len(made)} runs"
        print(f"{where} other programs used over {MOST:.0%} of the processors", file=sys.stderr)
    absent = [
        scheme
        for scheme in dict.fromkeys(r.scheme for r in runs)
        if not is_peer(scheme) and all("missing" in r.detail for r in runs if r.scheme == scheme)
    ]
    if absent:
        print(f"{experiment.name}: not measured: {', '.join(absent)}", file=sys.stderr)
        return 1
    measured = [r for r in runs if "missing" not in r.detail]
    if measured and all(r.void or "error" in r.detail for r in measured):
        print(
            f"{experiment.name}: no run counts: try again when the machine is idle", file=sys.stderr
        )
        return 1
    return 1 if failed else 0


def summary(
    experiment: Experiment, found: Sequence[Verdict], results: Path, *, whole: bool = True
) -> list[str]:
    """What a terminal shows of an experiment: each goal and claim, and each of its statements.

    Of a part of it only what was measured, and how much was not.
    """
    lines = [f"{experiment.title}: {experiment.question}"]
    left_out = 0
    for verdict in found:
        if not whole and not any(f.measured is not None for f in verdict.findings):
            left_out += 1
            continue
        in_part = verdict.verdict == NOT_RUN and verdict.measured
        shown = "not measured everywhere" if in_part else SHOWN[verdict.verdict]
        lines.append(f"  {verdict.id}: {shown}")
        lines += _statements(verdict.findings, whole=whole)
    if left_out:
        lines.append(f"  {left_out} more goals and claims need other conditions or schemes")
    return [*lines, f"results: {results}"]


def _statements(findings: Sequence[Finding], *, whole: bool) -> list[str]:
    """The statements of a goal or claim; of a part, how many it says nothing of."""
    lines = []
    left_out = 0
    for statement in dict.fromkeys(f.statement for f in findings):
        about = [f for f in findings if f.statement == statement]
        if not any(f.expected or f.measured is not None for f in about):
            continue  # a figure that is not there
        if not whole and not any(f.measured is not None for f in about):
            left_out += 1
            continue
        lines += _statement(about)
    if left_out:
        lines.append(f"    statements of which nothing was measured: {left_out}")
    return lines


def _statement(found: Sequence[Finding]) -> list[str]:
    """A statement with what was measured of it, and why it does not hold."""
    first = found[0]
    measured = measured_range(found) or "not measured"
    wanted = f" ({first.expected})" if first.expected else ""
    missed = any(f.holds is False for f in found)
    lines = [f"    {'missed: ' if missed else ''}{first.statement}: {measured}{wanted}"]
    causes = dict.fromkeys(f.cause for f in found if f.holds is False and f.cause)
    return [*lines, *(f"      because (of the kept result): {cause}" for cause in causes)]
