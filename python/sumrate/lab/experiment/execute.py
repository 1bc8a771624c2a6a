"""Runs experiments one after the other and keeps what they leave: `run` and `bench`."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from sumrate.lab.experiment.encodes import make_encodes
from sumrate.lab.experiment.judge import judge, measured_range
from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.model import Experiment, scheme_names
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.run import Plan, run_all
from sumrate.lab.experiment.simulated import simulate
from sumrate.lab.experiment.store import OUTPUT, write
from sumrate.lab.experiment.topology import links_of, on_wires
from sumrate.lab.host_pauses import PATIENCE_S
from sumrate.lab.machine_load import MOST, busy_before
from sumrate.lab.namespaces import INTERRUPTED, run_isolated
from sumrate.lab.options import Json, Quick, Repetitions, Runs
from sumrate.lab.priority import granted, raise_own
from sumrate.lab.programs import RUN_FOLDER, program, require
from sumrate.lab.refusal import RefusedError
from sumrate.lab.results import Progress, provenance
from sumrate.verdict.model import (
    DEPENDS,
    FAILS,
    HOLDS,
    NOT_RUN,
    REPORTED,
    Finding,
    Verdict,
    goal_order,
    is_peer,
    is_performance,
)

PARTIAL = ".partial"
"""Ends the name of the folder with the repetitions of a run that has not ended."""
SHOWN = {
    HOLDS: "holds",
    FAILS: "does not hold",
    DEPENDS: "holds in part",
    NOT_RUN: "not measured",
    REPORTED: "figures only",
}


@dataclass(frozen=True)
class Wanted:
    """A part of experiments, and where its results are kept."""

    quick: bool = False
    repetitions: int | None = None
    conditions: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    output: Path = OUTPUT


def run(
    names: list[str],
    /,
    *,
    quick: Quick = False,
    repetitions: Repetitions = None,
    condition: tuple[str, ...] = (),
    scheme: tuple[str, ...] = (),
    output: Runs = OUTPUT,
    as_json: Json = False,
) -> int:
    """Run experiments.

    Exit status 1 if a run failed, whatever the verdicts are.

    Example: sumrate-lab run five-conditions --quick

    Args:
        names: Experiments, as `list` names them.
        condition: Only this condition (repeatable).
        scheme: Only this scheme, and the links alone (repeatable).

    """
    documents: list[dict[str, Any]] = []
    wanted = Wanted(quick, repetitions, condition, scheme, output)

    def tell(plan: Plan, found: list[Verdict]) -> None:
        if as_json:
            documents.extend({"experiment": plan.experiment.name, **v.document()} for v in found)
            return
        whole = not (plan.only_conditions or plan.only_schemes)
        folder = output.resolve() / plan.experiment.name
        print("\n".join(summary(plan.experiment, found, folder, whole=whole)))

    def done() -> None:
        if as_json:
            print(json.dumps(documents, indent=1, ensure_ascii=False))

    return _carry_out(_checked(names, wanted), wanted, tell, done)


def bench(
    *,
    quick: Quick = False,
    repetitions: Repetitions = None,
    only: tuple[str, ...] = (),
    table: bool = False,
    output: Runs = OUTPUT,
    as_json: Json = False,
) -> int:
    """Measure the performance goals P1 to P10.

    Runs the experiments that measure the performance goals, then prints for each goal the values
    of Sumrate and of the other transports.

    Example: sumrate-lab bench --quick --only P1 --only P5

    Args:
        only: Only this goal (repeatable).
        table: Measure nothing: print the last results.

    """
    asked = {name: {check.goal for check in load(name).checks} for name in goals.measured_by()}
    performance = {goal for found in asked.values() for goal in found if is_performance(goal)}
    chosen = {goal.upper().replace("B", "b") for goal in only}
    if unknown := chosen - performance:
        known = ", ".join(sorted(performance, key=goal_order))
        raise RefusedError(f"no goal {', '.join(unknown)}; there are {known}")
    names = [name for name, found in asked.items() if found & (chosen or performance)]
    wanted = Wanted(quick, repetitions, output=output)
    status = 0 if table else _carry_out(_checked(names, wanted), wanted)
    if status > 1:  # stopped
        return status
    found = [r for r in goals.rows(output) if r.id in (chosen or performance)]
    if as_json:
        print(json.dumps(goals.document(found, output), indent=1, ensure_ascii=False))
    else:
        print(goals.table(found))
    if not any(row.measured for row in found):
        hint = "`sumrate-lab verdicts --goals` shows what is kept in results/"
        print(f"no goal is measured in {output} yet; {hint}", file=sys.stderr)
    return status


def _checked(names: Sequence[str], wanted: Wanted) -> list[Plan]:
    """The plans of experiments, once everything is there that they need.

    Raises RefusedError: an experiment does not exist or is wrong, or would replace a whole
    result. Raises MissingProgramError: a program is missing.
    """
    plans = [_plan(load(name), wanted) for name in names]
    for plan in plans:
        _spare_whole_result(plan, wanted.output)
    if any(not _is_simulation(plan) for plan in plans):
        require("ip", "ss", "nsenter", "sysctl", "iperf3")
        program("sumrate-link")
    try:
        wanted.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(str(error)) from error
    return plans


def _is_simulation(plan: Plan) -> bool:
    return isinstance(plan.experiment, SimulationExperiment)


def _carry_out(
    plans: Sequence[Plan],
    wanted: Wanted,
    tell: Callable[[Plan, list[Verdict]], object] = lambda *_: None,
    done: Callable[[], object] = lambda: None,
) -> int:
    """Computes simulations, then runs the others in private namespaces; 1 if a run failed.

    Args:
        plans: what is run.
        wanted: where results go.
        tell: shows the verdicts of an experiment.
        done: is called once all are there.

    """
    progress = Progress(sum(plan.seconds() for plan in plans))
    output = wanted.output.resolve()
    on_links = [plan for plan in plans if not _is_simulation(plan)]
    statuses = []

    def told(plan: Plan, runs: list[Run], found: list[Verdict]) -> int:
        tell(plan, found)
        return _complaints(plan.experiment, runs)

    def body() -> int:
        raise_own()
        status = max([told(plan, *execute(plan, output, progress)) for plan in on_links])
        done()
        return status

    try:
        for plan in filter(_is_simulation, plans):
            made = compute(plan, output, progress, quick=wanted.quick)
            statuses.append(told(plan, *made))
        if on_links:
            statuses.append(run_isolated(body))
        else:
            done()
        return max(statuses)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _plan(experiment: Experiment, wanted: Wanted) -> Plan:
    """What is run of an experiment; refuses conditions and schemes that it does not have."""
    for kind, asked, known in (
        ("condition", wanted.conditions, [c.name for c in experiment.conditions]),
        ("scheme", wanted.schemes, scheme_names(experiment)),
    ):
        for name in set(asked) - set(known):
            raise ExperimentError(
                f"{experiment.name} has no {kind} `{name}`; it has {', '.join(known)}"
            )
    whole = Plan(experiment, experiment.repetitions, patience_s=PATIENCE_S)
    plan = shortened(experiment) if wanted.quick else whole
    return replaced(
        plan,
        repetitions=wanted.repetitions or plan.repetitions,
        only_conditions=wanted.conditions or plan.only_conditions,
        only_schemes=wanted.schemes,
    )


def _spare_whole_result(plan: Plan, output: Path) -> None:
    """Keeps a part of an experiment from taking the place of the whole, which took its time.

    Raises RefusedError: a whole result is there.
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


def shortened(experiment: Experiment) -> Plan:
    """The plan of `--quick`."""
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

    Raises ModuleNotFoundError: what the model needs is not installed.
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
