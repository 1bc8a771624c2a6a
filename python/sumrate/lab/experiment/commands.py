"""`sumrate-lab list | run | bench | report | compare | keep | judge | verdicts`."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from sumrate.lab.calibration import off, words
from sumrate.lab.experiment import readme, store
from sumrate.lab.experiment.catalogue import Entry, entries
from sumrate.lab.experiment.demands import demands, read_verdicts
from sumrate.lab.experiment.derived import (
    SPREADS,
    add_shaped,
    add_spreads,
    add_stalled_bytes,
    add_unimpaired,
)
from sumrate.lab.experiment.execute import bench, quick, run
from sumrate.lab.experiment.goals import is_performance
from sumrate.lab.experiment.judge import Verdict, is_peer, judge
from sumrate.lab.experiment.listing import listing
from sumrate.lab.experiment.load import CATALOGUE, FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.metrics import POOLED_ABOVE
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.ratios import add_baseline_bounds, add_pooled_percentiles
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.topology import on_wires
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import USAGE, RefusedError
from sumrate.lab.results import ERASE_REST, write_json

OUTPUT = REPOSITORY / "out" / "lab"
KEPT_FILES = ("metrics.parquet", "series.parquet", "verdicts.json", "manifest.json")
KEPT = REPOSITORY / "docs" / "results" / "lab"
LEAST_REPETITIONS = 5
"""Of what is kept."""


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the subcommands."""
    sub = commands.add_parser("list", help="the experiments and what they ask")
    sub.add_argument("--json", action="store_true")
    sub.set_defaults(run=list_experiments)
    _add_run(commands)
    _add_bench(commands)
    _add_results(commands)


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser(
        "run",
        help="run experiments",
        epilog="example: sumrate-lab run five-conditions --quick",
    )
    sub.add_argument("names", nargs="+", metavar="NAME")
    sub.add_argument("--quick", action="store_true", help="one repetition")
    sub.add_argument("--repetitions", type=_positive, help="of every condition (the experiment's)")
    sub.add_argument("--condition", action="append", default=[], help="only this (repeatable)")
    sub.add_argument(
        "--scheme", action="append", default=[], help="only this and the links alone (repeatable)"
    )
    sub.add_argument("--output", type=Path, default=OUTPUT)
    sub.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    sub.set_defaults(run=run)


def _add_bench(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser(
        "bench",
        help="the performance goals, measured",
        description="Runs the experiments that measure the performance goals, then prints each "
        "goal with what Sumrate and the others have of it.",
        epilog="example: sumrate-lab bench --quick --only P1 --only P5",
    )
    sub.add_argument("--quick", action="store_true", help="one repetition")
    sub.add_argument("--repetitions", type=_positive, help="of every condition (the experiment's)")
    sub.add_argument(
        "--only", action="append", default=[], metavar="GOAL", help="only this (repeatable)"
    )
    sub.add_argument("--table", action="store_true", help="only print what was measured last")
    sub.add_argument("--output", type=Path, default=OUTPUT)
    sub.add_argument("--json", action="store_true", help="print the table as JSON")
    sub.set_defaults(run=bench)


def _add_results(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser("report", help="one page with all results: out/lab/report.html")
    sub.add_argument("--results", type=Path, default=OUTPUT, help="folder of results (out/lab)")
    sub.add_argument("--output", type=Path, help="the page (report.html in that folder)")
    sub.set_defaults(run=report)

    sub = commands.add_parser(
        "compare",
        help="two results side by side",
        description="A and B are folders of results, or names of experiments: of A the last run, "
        "of B what is kept in docs/results/lab. Without B, the last run of A beside what is kept.",
        epilog="example: sumrate-lab compare windows",
    )
    sub.add_argument("a", metavar="A")
    sub.add_argument("b", nargs="?", metavar="B")
    sub.set_defaults(run=compare)

    sub = commands.add_parser("keep", help="take results over into docs/results/lab")
    sub.add_argument("names", nargs="+", metavar="NAME")
    sub.add_argument("--results", type=Path, default=OUTPUT, help="folder of results (out/lab)")
    sub.set_defaults(run=keep)

    sub = commands.add_parser(
        "judge",
        help="judge kept results anew",
        description="Writes verdicts.json of results again, from their values and the checks that "
        "the experiment has now; nothing is measured.",
        epilog="example: sumrate-lab judge access-fairness",
    )
    sub.add_argument("names", nargs="*", metavar="NAME", help="all of them if none is given")
    sub.add_argument("--results", type=Path, default=KEPT, help="results (docs/results/lab)")
    sub.add_argument("--check", action="store_true", help="write nothing; 1 if one would change")
    sub.set_defaults(run=judge_anew)

    sub = commands.add_parser(
        "verdicts",
        help="every claim of the papers and what was found",
        description="Each claim and goal with its verdict, what its checks measured, the cause "
        "where it does not hold, the command that measures it, and where its results are.",
        epilog="example: sumrate-lab verdicts T-4.5 P1",
    )
    sub.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="only those that begin with it, or of the experiment of that name",
    )
    sub.add_argument("--json", action="store_true")
    sub.add_argument("--results", type=Path, default=KEPT, help="results (docs/results/lab)")
    sub.add_argument(
        "--readme",
        action="store_true",
        help="into README.md, docs/verdicts.md and docs/shortfalls.md",
    )
    sub.add_argument("--goals", action="store_true", help="only the performance goals")
    sub.set_defaults(run=verdicts)


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
    status = _complain(broken)
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
    for what, some in (("all of them", found), ("what `bench` runs", performance)):
        if not some:
            continue
        whole, short = (sum(minutes) for minutes in zip(*map(durations, some), strict=True))
        print(f"{what:24} about {whole:.0f} min, --quick {short:.0f} min")
    print(f"{'':24} void runs are made again, which takes longer")
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

    folders = sorted(p.parent for p in args.results.glob("*/manifest.json"))
    if not folders:
        print(f"error: no results in {args.results}: `sumrate-lab run NAME` first", file=sys.stderr)
        return 1
    page = args.output or args.results / "report.html"
    partial = page.with_suffix(page.suffix + ".part")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()  # drawing takes long: what cannot be written is refused before it
        write_report(folders, FOLDER / CATALOGUE, page, _drawing, _asked())
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


def _result(name: str, folder: Path) -> Path:
    """A folder as it is given, or that of an experiment of this name."""
    return folder / name if not Path(name).is_dir() and name in names() else Path(name)


def compare(args: argparse.Namespace) -> int:
    """Prints the medians of two result folders side by side."""
    from sumrate.report.lab import RunError, compare_table  # noqa: PLC0415

    try:
        print(compare_table(_result(args.a, OUTPUT), _result(args.b or args.a, KEPT)))
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def objections(folder: Path) -> list[str]:
    """Why a result must not be kept; empty if it may."""
    path = folder / "manifest.json"
    if not path.is_file():
        return [f"{folder} has no manifest: run it first"]
    manifest = json.loads(path.read_text(encoding="utf-8"))
    found = []
    commit = str(manifest["commit"])
    if commit.endswith("-dirty") or commit == "unknown":
        found.append(f"{folder.name}: made from uncommitted files ({commit})")
    found += [f"{folder.name}: {said}" for said in manifest.get("programs_behind", ())]
    own = [r for r in manifest["runs"] if not is_peer(r["scheme"])]
    found += [f"{folder.name}: {r['condition']}, {r['scheme']} failed: {r['error']}"
              for r in own if "error" in r]  # fmt: skip
    # A repetition of a simulation is hundreds of realisations.
    few = manifest["repetitions"] < LEAST_REPETITIONS and manifest["method"] != "simulation"
    if few:
        found.append(f"{folder.name}: {manifest['repetitions']} repetitions, "
                     f"{LEAST_REPETITIONS} at least are wanted")  # fmt: skip
    found += [
        f"{folder.name}: a link was off: {words(row)}"
        for row in off(manifest.get("calibration", []))
    ]
    void = sum(bool(r.get("void")) for r in own)
    if void * 5 > len(own):
        found.append(f"{folder.name}: {void} of {len(own)} are void")
    return found


def incomplete(folder: Path, wanted: Experiment) -> list[str]:
    """What a result lacks of its experiment as the file has it now; empty if it is whole.

    Results that are kept already are not asked this: the file may have grown since.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        return []
    manifest = json.loads(path.read_text(encoding="utf-8"))
    found = []
    if manifest["repetitions"] < wanted.repetitions:
        found.append(f"{folder.name}: {manifest['repetitions']} repetitions, the experiment has "
                     f"{wanted.repetitions}")  # fmt: skip
    emulated = [c for c in wanted.conditions if not on_wires(wanted, c)]
    if wanted.simulation is None and emulated and not manifest.get("calibration"):
        found.append(f"{folder.name}: its links were not measured before it")
    lacking = list(_lacking(manifest["runs"], wanted))
    found += [f"{folder.name}: {said}" for said in lacking[:3]]
    if len(lacking) > 3:
        found.append(f"{folder.name}: {len(lacking) - 3} more of its points are not whole")
    return found


POINT = ("condition", "scheme", "congestion_control", "buffers")
"""What runs that differ in their repetition only have in common."""


def _lacking(runs: Sequence[Mapping[str, Any]], wanted: Experiment) -> Iterator[str]:
    """Points of which not every repetition was run, whether it counts or not.

    A peer may be missing, with the reason; what is measured may not, nor what it is measured by.
    """
    made: dict[tuple[str, ...], set[int]] = {}
    reasons: dict[tuple[str, ...], str] = {}
    for entry in runs:
        point = tuple(str(entry[key]) for key in POINT)
        if "missing" in entry:
            reasons[point] = str(entry["missing"])
        else:
            made.setdefault(point, set()).add(int(entry["repetition"]))
    for point, whole in sorted(combinations(wanted).items()):
        ran = len(made.get(point, ()))
        where = ", ".join(point)
        if point in reasons and is_peer(point[1]):
            continue
        if point in reasons:
            yield f"{where} is missing: {reasons[point]}"
        elif not ran:
            yield f"{where} was not run"
        elif ran < whole:
            yield f"{where}: {ran} of {whole} repetitions were run"


def keep_problems(folder: Path, name: str) -> list[str]:
    """Why a new result is not taken over; empty if it is.

    Raises:
        ExperimentError: there is no such experiment, or its file is wrong.

    """
    experiment = load(name)
    return [*incomplete(folder, experiment), *objections(folder), *uncounted(folder, experiment)]


def uncounted(folder: Path, experiment: Experiment) -> list[str]:
    """Points of a result at which most runs are void; asked of new results only.

    Not those of which the condition says why (`few_runs`), nor of peers, which the manifest names.
    """
    expected = {(c.name, scheme) for c in experiment.conditions for scheme in c.few_runs}
    path = folder / "manifest.json"
    if not path.is_file():
        return []
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return [
        f"{folder.name}: {', '.join(where)}: {left} of {made} runs count"
        for where, left, made in too_few(runs)
        if where[:2] not in expected and not is_peer(where[1])
    ]


def combinations(experiment: Experiment) -> dict[tuple[str, ...], int]:
    """The points of a whole result (POINT), each with how many repetitions it has."""
    if experiment.simulation is not None:
        return {}  # its tables say which curves a panel has
    whole = Plan(experiment, experiment.repetitions)
    return {
        (point.condition.name, scheme.name, point.congestion_control, point.buffers):
            whole.repetitions_of(point.condition)
        for point in whole.points()
        for scheme in whole.schemes(point)
    }  # fmt: skip


def too_few(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Points at which most runs of a scheme do not count: the point, how many do, and were made."""
    points: dict[tuple[str, ...], list[bool]] = {}
    for entry in runs:
        if "missing" not in entry:
            counts = not entry["void"] and "error" not in entry
            points.setdefault(tuple(str(entry[k]) for k in POINT), []).append(not counts)
    for where, void in points.items():
        left = void.count(False)
        if left * 2 <= len(void):
            yield where, left, len(void)


def keep(args: argparse.Namespace) -> int:
    """Copies results, pictures too, into the repository; refuses what must not count."""
    refused = [w for name in args.names for w in keep_problems(args.results / name, name)]
    if refused:
        print("\n".join(["not kept:", *refused]), file=sys.stderr)
        return 1
    for name in args.names:
        target = KEPT / name
        target.mkdir(parents=True, exist_ok=True)
        pictures = [path.name for path in sorted((args.results / name).glob("*.svg"))]
        for stale in target.glob("*.svg"):
            stale.unlink()
        for file in (*KEPT_FILES, *pictures):
            shutil.copyfile(args.results / name / file, target / file)
        print(target)
    return 0


def judge_anew(args: argparse.Namespace) -> int:
    """Writes the verdicts of results again; 1 if one of them is off.

    Raises:
        RefusedError: there are no such results, or their experiment is wrong.

    """
    kept = sorted(path.parent.name for path in args.results.glob("*/metrics.parquet"))
    if unknown := [name for name in args.names if name not in kept]:
        there = ", ".join(kept) or "none"
        raise RefusedError(
            f"no results of {', '.join(unknown)} in {args.results}; there are {there}"
        )
    changed = []
    for name in args.names or kept:
        folder = args.results / name
        found = [v.document() for v in _judged(load(name), folder)]
        if json.loads(json.dumps(found)) != read_verdicts(folder):
            changed.append(name)
            if not args.check:
                write_json(folder / "verdicts.json", found)
    print("\n".join(f"{name}: {'is off' if args.check else 'judged anew'}" for name in changed)
          or "every verdict is what its values and checks say")  # fmt: skip
    return 1 if args.check and changed else 0


def _judged(experiment: Experiment, folder: Path) -> list[Verdict]:
    """Verdicts of a kept result, which may be older than what its checks ask for now."""
    spreads = (*(name for name, *_ in SPREADS), POOLED_ABOVE)
    samples = any(check.value.metric.startswith(spreads) for check in experiment.checks)
    runs = store.read_runs(folder, series=samples)
    add_baseline_bounds(experiment, runs)
    add_unimpaired(experiment, runs)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    add_shaped(manifest["links"], runs)  # as they were: the file may have other rates by now
    add_stalled_bytes(runs)
    if samples:
        add_pooled_percentiles(experiment, runs)
        add_spreads(runs)
    return judge(experiment, runs)


def _named(found: Sequence[Entry], start: str) -> list[Entry]:
    """Those whose id begins so; if none does, those with a check of the experiment of that name."""
    begin = [e for e in found if e.id.casefold().startswith(start.casefold())]
    return begin or [e for e in found if any(c.experiment == start for c in e.checks)]


def _chosen(found: Sequence[Entry], args: argparse.Namespace) -> list[Entry]:
    """Those that were asked for, all if none was.

    Raises:
        RefusedError: something names none of them.

    """
    chosen = [*found] if not args.ids else []
    for start in args.ids:
        named = _named(found, start)
        if not named:
            raise RefusedError(
                f"no claim or goal begins with `{start}`, and no experiment with verdicts has that "
                "name; `sumrate-lab verdicts` shows them all"
            )
        chosen += [e for e in named if e not in chosen]
    return [e for e in chosen if not args.goals or e.document == "goal"]


def verdicts(args: argparse.Namespace) -> int:
    """Prints claims and goals with their verdicts; says which experiments are wrong.

    Raises:
        RefusedError: there are no such results or claims.

    """
    results = args.results
    if not results.is_dir():
        raise RefusedError(f"no folder of results {results}")
    shown = results.relative_to(REPOSITORY) if results.is_relative_to(REPOSITORY) else results
    broken: list[ExperimentError] = []
    found = [
        replaced(e, results=e.results.replace(str(results), str(shown)))
        for e in _chosen(entries(results, broken=broken), args)
    ]
    status = _complain(broken)
    if args.readme and not broken:
        readme.write(REPOSITORY, results)
    if args.json:
        print(json.dumps([e.as_dict() for e in found], indent=1, ensure_ascii=False))
        return status
    print(listing(found))
    return status


def _complain(broken: Sequence[ExperimentError]) -> int:
    """Says what is wrong with experiments; the exit status."""
    for complaint in broken:
        print(f"error: {complaint}", file=sys.stderr)
    return USAGE if broken else 0
