"""Verdicts and provenance of a folder of results: kept tables, or folders that runs left."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sumrate.lab.experiment.judge import KEPT_COLUMNS, Values, judge_values
from sumrate.lab.experiment.kept import kept_names, path_of, read_provenance
from sumrate.lab.experiment.load import FOLDER, load
from sumrate.verdict.model import Verdict


def result_names(results: Path) -> list[str]:
    """The experiments that have a result in the folder."""
    return sorted({*kept_names(results), *(p.parent.name for p in results.glob("*/manifest.json"))})


def verdicts_of(results: Path, name: str, folder: Path = FOLDER) -> list[Verdict]:
    """The verdicts of one experiment; none if it has no result there.

    A kept table is judged by the checks that the experiment's file has now.

    Raises ExperimentError: the experiment's file is wrong.
    """
    table = path_of(results, name)
    if table.is_file():
        return _judged(table, folder, table.stat().st_mtime_ns)
    path = results / name / "verdicts.json"
    if not path.is_file():
        return []
    return [Verdict.of_document(one) for one in json.loads(path.read_text(encoding="utf-8"))]


@cache
def _judged(table: Path, folder: Path, _: int) -> list[Verdict]:
    import polars as pl  # noqa: PLC0415 (loads slowly)

    words = pl.col(pl.Categorical).cast(pl.String)
    rows = pl.read_parquet(table, columns=[*KEPT_COLUMNS]).with_columns(words)
    return judge_values(load(table.stem, folder), Values.of_rows(rows.iter_rows()))


def origin_of(results: Path, name: str) -> Mapping[str, Any] | None:
    """Commit, kernel, machine and time of a result; None if there is none."""
    table, manifest = path_of(results, name), results / name / "manifest.json"
    if table.is_file():
        return read_provenance(table)
    if manifest.is_file():
        found: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
        return found
    return None


def place_of(results: Path, name: str) -> Path:
    """The file or folder that has a result of the experiment."""
    table = path_of(results, name)
    return table if table.is_file() else results / name
