"""Kept results: one tidy table per experiment, `results/NAME.parquet`.

A row is one value of one metric of one run. Where the values are from (commit, kernel, machine,
time, command, seeds, links) stands once, as JSON in the schema's metadata.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sumrate.atomic import replacing
from sumrate.lab.experiment.record import Metric, Run
from sumrate.lab.programs import REPOSITORY

KEPT = REPOSITORY / "results"
SCHEMA = "sumrate.lab.kept.v1"
KEY = b"sumrate"
"""Of the provenance in the metadata of a table's schema."""
WORD = pa.dictionary(pa.int16(), pa.string())
TABLE = pa.schema(
    [
        *((name, WORD) for name in ("scheme", "condition", "congestion_control", "buffers")),
        *(("repetition", pa.int16()), ("seed", pa.int64()), ("void", pa.bool_())),
        *(("metric", WORD), ("value", pa.float64()), ("unit", WORD)),
    ]
)
RUN_COLUMNS = TABLE.names[:7]
"""The columns that say which run a value is of."""
COPIED = (
    "experiment", "title", "question", "method", "commit", "kernel", "machine", "started",
    "finished", "seeds", "repetitions", "void_runs", "schemes", "conditions", "why_not",
)  # fmt: skip
"""Keys that the provenance has from the manifest as they are."""
MEASURED, AS_SET, NONE = "measured", "as set", "none"
"""Whether the emulated links were measured before the runs; NONE if there are no links."""


def path_of(results: Path, name: str) -> Path:
    """Where the table of an experiment is."""
    return results / f"{name}.parquet"


def kept_names(results: Path) -> list[str]:
    """The experiments of which a table is in the folder."""
    return sorted(path.stem for path in results.glob("*.parquet"))


def provenance_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a table says once of where its values are from."""
    found = {key: manifest[key] for key in COPIED if manifest.get(key)}
    found["void_runs"] = manifest["void_runs"]
    links = [_short(link) for link in manifest["links"]]
    return {
        "schema": SCHEMA,
        **found,
        "command": " ".join(["sumrate-lab", *manifest["argv"][1:]]),
        "runs": len(manifest["runs"]),
        "links": links,
        "calibration": _calibrated(manifest),
    }


def _short(link: Mapping[str, Any]) -> dict[str, Any]:
    """A link's settings without those that are empty; rate, RTT and loss are always there."""
    always = ("rate_mbps", "rtt_ms", "loss")
    return {key: value for key, value in link.items() if value or key in always}


def _calibrated(manifest: Mapping[str, Any]) -> str:
    if manifest.get("method") == "simulation" or manifest.get("calibration") == []:
        return NONE
    return MEASURED if "calibration" in manifest else AS_SET


def write_kept(results: Path, provenance: Mapping[str, Any], runs: Sequence[Run]) -> Path:
    """Writes the table of one experiment, whole or not at all; returns its path."""
    results.mkdir(parents=True, exist_ok=True)
    path = path_of(results, provenance["experiment"])
    text = json.dumps(provenance, ensure_ascii=False)
    table = pa.Table.from_pylist(list(_rows(runs)), schema=TABLE).replace_schema_metadata(
        {KEY: text.encode()}
    )
    with replacing(path) as file:
        pq.write_table(
            table, file, compression="zstd", compression_level=19, store_schema=True,
            write_statistics=False, write_page_index=False,
        )  # fmt: skip
    return path


def _rows(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    for run in sorted(runs, key=lambda run: (run.condition, run.scheme, run.repetition)):
        of = {name: getattr(run, name) for name in RUN_COLUMNS}
        for metric in run.metrics:
            yield {**of, "metric": metric.name, "value": metric.value, "unit": metric.unit}


def read_provenance(path: Path) -> dict[str, Any]:
    """Where the values of a table are from.

    Raises ValueError: the file has no provenance of this schema.
    """
    return dict(_provenance(path, path.stat().st_mtime_ns))


@cache
def _provenance(path: Path, _: int) -> dict[str, Any]:
    text = (pq.read_schema(path).metadata or {}).get(KEY, b"{}")
    found: dict[str, Any] = json.loads(text)
    if found.get("schema") != SCHEMA:
        raise ValueError(f"{path} has no provenance of schema {SCHEMA}")
    return found


def read_kept_runs(path: Path) -> list[Run]:
    """The runs of a table with their metrics; a run without a value is not in it."""
    table = pq.read_table(path)
    columns = [table.column(name).to_pylist() for name in TABLE.names]
    of_run = len(RUN_COLUMNS)
    found: dict[tuple[Any, ...], Run] = {}
    for row in zip(*columns, strict=True):
        identity = row[:of_run]
        run = found.get(identity) or found.setdefault(identity, Run(*identity))
        run.metrics.append(Metric(*row[of_run:]))
    return list(found.values())
