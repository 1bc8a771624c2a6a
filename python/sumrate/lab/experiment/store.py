"""Writes what a run of an experiment left: tables as Parquet, manifest and verdicts as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sumrate.atomic import replacing
from sumrate.lab.experiment.model import Check, Experiment
from sumrate.lab.experiment.record import Metric, Run
from sumrate.lab.experiment.topology import links_shown
from sumrate.lab.programs import REPOSITORY, without_machine_paths
from sumrate.lab.results import write_json
from sumrate.verdict.model import Verdict

OUTPUT = REPOSITORY / "out" / "lab"
"""Where runs leave their results."""
SCHEMA = "sumrate.lab.run.v1"
POINT = ("scheme", "condition", "congestion_control", "buffers")
METRICS = pa.schema(
    [
        *((name, pa.string()) for name in ("experiment", "claims", *POINT)),
        *(("repetition", pa.int32()), ("seed", pa.int64()), ("void", pa.bool_())),
        *(("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())),
    ]
)
SERIES = pa.schema(
    [
        *((name, pa.string()) for name in ("experiment", *POINT)),
        *(("repetition", pa.int32()), ("path", pa.string())),
        *(("t_s", pa.float32()), ("goodput_mbps", pa.float32())),
    ]
)
LEFT_OUT = ("title", "emulator", "traces")
"""Of what a run noted: it stands elsewhere in the manifest, or nowhere."""


def write(
    folder: Path,
    experiment: Experiment,
    runs: Sequence[Run],
    verdicts: Sequence[Verdict],
    origin: dict[str, Any],
) -> None:
    """Writes the four files of a run into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(folder, experiment, runs)
    whole = manifest(experiment, runs, origin)
    write_json(folder / "manifest.json", without_machine_paths(whole))
    write_json(folder / "verdicts.json", [v.document() for v in verdicts])


def write_tables(folder: Path, experiment: Experiment, runs: Sequence[Run]) -> None:
    """Writes the values and the samples of the runs."""
    _table(folder / "metrics.parquet", METRICS, _metric_rows(experiment, runs))
    _table(folder / "series.parquet", SERIES, _series_rows(experiment, runs))


def read_runs(folder: Path, *, series: bool = False) -> list[Run]:
    """The runs of a kept result with their metrics, as far as judging needs them.

    With `series` their 100 ms samples as well.
    """
    key = (*POINT, "repetition", "seed", "void")
    found: dict[tuple[Any, ...], Run] = {}
    for row in pq.read_table(folder / "metrics.parquet", schema=METRICS).to_pylist():
        identity = tuple(row[name] for name in key)
        run = found.setdefault(identity, Run(*identity))
        run.metrics.append(Metric(row["metric"], row["value"], row["unit"]))
    if series:
        _read_series(folder, {identity[:5]: run for identity, run in found.items()})
    return list(found.values())


def _read_series(folder: Path, runs: Mapping[tuple[Any, ...], Run]) -> None:
    """Gives the runs the samples of what the application received."""
    key = (*POINT, "repetition")
    for row in pq.read_table(folder / "series.parquet", schema=SERIES).to_pylist():
        run = runs.get(tuple(row[name] for name in key))
        if run is not None and not row["path"]:
            run.series.append((row["t_s"], row["goodput_mbps"]))


def manifest(experiment: Experiment, runs: Sequence[Run], origin: dict[str, Any]) -> dict[str, Any]:
    """What makes the run reproducible and what happened in it."""
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "method": experiment.method,
        **origin,
        "seeds": sorted({run.seed for run in runs}),
        "links": links_shown(experiment),
        "traces": list(_traces(runs)),
        "schemes": list(_schemes(runs)),
        "conditions": list(_conditions(experiment, runs)),
        "why_not": experiment.why_not,
        "repetitions": 1 + max((run.repetition for run in runs), default=-1),
        "void_runs": sum(run.void for run in runs),
        "runs": [_shown(run) for run in runs],
    }


def _conditions(experiment: Experiment, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Those that were run, and which schemes are not in them for which reason."""
    ran = {run.condition for run in runs}
    for condition in experiment.conditions:
        if condition.name in ran:
            entry: dict[str, Any] = {"name": condition.name, "title": condition.title}
            entry |= {"why_not": condition.why_not} if condition.why_not else {}
            size = condition.stream_buffer_bytes
            yield entry | ({"stream_buffer_bytes": size} if size else {})


def _traces(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """What the traces of each condition and seed allow, the same for every scheme."""
    seen: set[tuple[str, int, str]] = set()
    for run in runs:
        for link, values in run.detail.get("traces", {}).items():
            key = (run.condition, run.seed, link)
            if key not in seen and "measured_in" not in run.detail:
                seen.add(key)
                yield {"condition": run.condition, "seed": run.seed, "link": link} | values


def _schemes(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Each scheme, and why it did not run at all, or not everywhere."""
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.scheme, []).append(run)
    for name, found in by_name.items():
        entry: dict[str, Any] = {"name": name, "title": found[0].detail["title"]}
        reasons = list(dict.fromkeys(r.detail["missing"] for r in found if "missing" in r.detail))
        if all("missing" in run.detail for run in found):
            entry["missing"] = "; ".join(reasons)
        elif reasons := [*reasons, *_uncounted(found)]:
            entry["missing_in_part"] = reasons
        yield entry


def _uncounted(runs: Sequence[Run]) -> Iterator[str]:
    """The conditions in which most runs of a scheme do not count, and why they do not."""
    places: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        if "missing" not in run.detail:
            key = (run.condition, run.congestion_control, run.buffers)
            places.setdefault(key, []).append(run)
    for (condition, *_), found in places.items():
        out = [run for run in found if run.void or "error" in run.detail]
        if len(out) * 2 >= len(found):
            whys = (run.detail.get("error", "the emulator was late beside it") for run in out)
            said = "; ".join(dict.fromkeys(map(str, whys)))
            yield f"{condition}: {len(found) - len(out)} of {len(found)} runs count: {said}"


def _shown(run: Run) -> dict[str, Any]:
    keys = (*POINT, "repetition", "seed", "void")
    detail = {key: value for key, value in run.detail.items() if key not in LEFT_OUT}
    return {key: getattr(run, key) for key in keys} | detail


def _claims(experiment: Experiment, run: Run, metric: str) -> str:
    def uses(check: Check) -> bool:
        chosen = [s for s in (check.value, check.over) if s is not None]
        return any(s.metric == metric and s.scheme == run.scheme for s in chosen)

    found = [c.claim or c.goal for c in experiment.checks if uses(c)]
    return ",".join(dict.fromkeys(found))


def _metric_rows(experiment: Experiment, runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [
        {
            **_key(experiment, run),
            "claims": _claims(experiment, run, metric.name),
            "seed": run.seed,
            "void": run.void,
            "metric": metric.name,
            "value": metric.value,
            "unit": metric.unit,
        }
        for run in runs
        for metric in run.metrics
    ]


def _series_rows(experiment: Experiment, runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [
        {**_key(experiment, run), "path": path, "t_s": at, "goodput_mbps": value}
        for run in runs
        if not run.void
        for path, series in {"": run.series, **run.subflows}.items()
        for at, value in series
    ]


def _key(experiment: Experiment, run: Run) -> dict[str, Any]:
    keys = (*POINT, "repetition")
    return {"experiment": experiment.name, **{key: getattr(run, key) for key in keys}}


def _table(path: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    with replacing(path) as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd")
