"""`sumrate-lab keep`: takes results over into `results/`, and packs what they are made from."""

import json
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sumrate.atomic import replacing
from sumrate.lab.calibration import off, words
from sumrate.lab.experiment.by_method import SimulationExperiment
from sumrate.lab.experiment.comparisons import add_comparisons
from sumrate.lab.experiment.derived import (
    SPREADS,
    add_shaped,
    add_spreads,
)
from sumrate.lab.experiment.kept import KEPT, provenance_of, write_kept
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.ratios import add_pooled_percentiles
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.store import OUTPUT, read_runs
from sumrate.lab.experiment.topology import on_wires
from sumrate.lab.options import Runs
from sumrate.verdict.metrics import POOLED_ABOVE
from sumrate.verdict.model import is_peer


def add_derived(
    experiment: Experiment, links: Sequence[Mapping[str, Any]], runs: list[Run]
) -> None:
    """Adds every derived metric that the runs do not have yet.

    Args:
        experiment: of which the runs are.
        links: the links of each condition as they were during the runs.
        runs: with their 100 ms samples, from which pooled percentiles are computed.

    """
    add_comparisons(experiment, runs)
    add_shaped(links, runs)
    pooled = (*(name for name, *_ in SPREADS), POOLED_ABOVE)
    if any(check.value.metric.startswith(pooled) for check in experiment.checks):
        add_pooled_percentiles(experiment, runs)
        add_spreads(runs)


LEAST_REPETITIONS = 5
"""Of what is kept."""


def keep(names: list[str], /, *, results: Runs = OUTPUT, archive: Path | None = None) -> int:
    """Keep results in results/.

    Writes results/NAME.parquet: every value of every run, with commit, kernel, machine, time,
    command and seeds. Refuses results of uncommitted files, with too few repetitions, or with too
    many void runs.

    Example: sumrate-lab keep blackout --archive blackout.tar.xz

    Args:
        names: Experiments.
        archive: Pack the raw series and manifests into this .tar.xz file too.

    """
    refused = [w for name in names for w in keep_problems(results / name, name)]
    if refused:
        print("\n".join(["not kept:", *refused]), file=sys.stderr)
        return 1
    for name in names:
        print(keep_table(results / name, name))
    if archive:
        pack(archive, [results / name for name in names])
        print(archive)
    return 0


def keep_table(folder: Path, name: str) -> Path:
    """Writes the table of a result; returns its path."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    failed = {_identity(entry) for entry in manifest["runs"] if "error" in entry}
    runs = [run for run in read_runs(folder, series=True) if _identity(vars(run)) not in failed]
    add_derived(load(name), manifest["links"], runs)
    return write_kept(KEPT, provenance_of(manifest), runs)


def _identity(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[key] for key in (*POINT, "repetition"))


def pack(file: Path, folders: Sequence[Path]) -> None:
    """Packs the folders that runs left, with series, manifests and pictures."""
    with replacing(file) as partial, tarfile.open(partial, "w:xz") as packed:
        for folder in folders:
            packed.add(folder, arcname=folder.name)


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
    if (
        not isinstance(wanted, SimulationExperiment)
        and emulated
        and not manifest.get("calibration")
    ):
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

    Raises ExperimentError: there is no such experiment, or its file is wrong.
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
    if isinstance(experiment, SimulationExperiment):
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
