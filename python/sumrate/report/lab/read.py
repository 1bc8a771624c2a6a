"""Reads a result: the folder that a run left, or the tidy table that is kept of it."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MANIFEST_SCHEMA = "sumrate.lab.run.v1"
KEPT_SCHEMA = "sumrate.lab.kept.v1"
KEPT_KEY = b"sumrate"
"""Of the provenance in the metadata of a kept table's schema."""
KEY_COLUMNS = ("scheme", "condition", "congestion_control", "buffers", "repetition")
METRIC_COLUMNS = (*KEY_COLUMNS, "void", "metric", "value", "unit")
SERIES_COLUMNS = (*KEY_COLUMNS, "t_s", "goodput_mbps")
VERDICTS = ("holds", "fails", "depends", "not-run", "reported")


class RunError(Exception):
    """A result folder cannot be used; the message says which file and why."""

    def __init__(self, path: Path, problem: str) -> None:
        """Takes the file or folder and what is wrong with it."""
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class MissingRunError(RunError):
    """The folder, or a file in it, does not exist."""


class BrokenRunError(RunError):
    """A file is there, but is not what a run writes."""


@dataclass(frozen=True, order=True)
class Setting:
    """What all schemes met alike: the condition, the congestion control and the buffers."""

    condition: str
    congestion_control: str
    buffers: str


@dataclass(frozen=True, order=True)
class RunKey:
    """One scheme once in one setting."""

    scheme: str
    setting: Setting
    repetition: int


@dataclass(frozen=True)
class Measured:
    """One value of one metric; a repetition can have several, such as one for each blackout."""

    key: RunKey
    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class Scheme:
    """A transport under test; `missing` is the reason why it did not run."""

    name: str
    title: str
    missing: str | None = None
    missing_in_part: tuple[str, ...] = ()
    """Why it did not run everywhere that it was to."""


@dataclass(frozen=True)
class Condition:
    """A named state of the links: the calibration of each, by its name, where that is kept."""

    name: str
    title: str
    links: Mapping[str, Mapping[str, Any]]
    stream_buffer_bytes: int = 0
    """The most that Sumrate's ends held of what they received of a stream; 0: their own limit."""


@dataclass(frozen=True)
class Verdict:
    """What a check said about a claim or a performance goal."""

    claim: str
    goal: str
    verdict: str
    measured: object
    expected: object
    statement: str
    cause: str
    findings: tuple[Mapping[str, Any], ...] = ()
    """Each condition by itself: condition, congestion_control, buffers, measured, holds."""


@dataclass(frozen=True)
class Run:
    """Everything in a result folder; void and failed runs are not in `metrics` and `series`."""

    folder: Path
    experiment: str
    title: str
    question: str
    manifest: Mapping[str, Any]
    """The whole manifest: commit, kernel, machine, links, command lines."""
    schemes: tuple[Scheme, ...]
    conditions: tuple[Condition, ...]
    metrics: tuple[Measured, ...]
    series: Mapping[RunKey, Sequence[tuple[float, float]]]
    """Middle of each 100 ms sample in seconds, and its goodput in Mbit/s."""
    subflows: Mapping[RunKey, Mapping[str, Sequence[tuple[float, float]]]]
    """The same by link, of runs with a capture."""
    verdicts: tuple[Verdict, ...]
    ran: Mapping[RunKey, Mapping[str, Any]]
    """All runs in the order of the manifest, void and failed ones too, and what it says of each;
    not those of missing schemes."""
    void: frozenset[RunKey]
    """Runs that do not count, because the link emulator was late."""
    failed: Mapping[RunKey, str]
    """Runs that ended with an error, and the error."""


Documents = Sequence[Mapping[str, Any]]
"""Verdicts as JSON has them."""


def read_run(folder: Path, verdicts: Documents | None = None) -> Run:
    """Reads a result folder, or a kept table, which has no series.

    Args:
        folder: the folder or the table.
        verdicts: of the result; without them those in the folder, and none of a kept table.

    Raises:
        MissingRunError: the folder or one of its files does not exist.
        BrokenRunError: a file is not what a run writes.

    """
    if folder.suffix == ".parquet":
        return _read_kept(folder, verdicts or ())
    if not folder.is_dir():
        raise MissingRunError(
            folder, "there is no such result folder; `sumrate-lab run NAME` makes one"
        )
    path = folder / "manifest.json"
    manifest = _json(path)
    if not isinstance(manifest, dict) or manifest.get("schema") != MANIFEST_SCHEMA:
        raise BrokenRunError(path, f"is no manifest of schema {MANIFEST_SCHEMA}")
    ran = _manifest_runs(path, manifest)
    metrics = _columns(folder / "metrics.parquet", METRIC_COLUMNS)
    void = {key for key, entry in ran.items() if entry.get("void")}
    void |= {key for key, is_void in zip(_keys(metrics), metrics["void"], strict=True) if is_void}
    failed = {key: str(entry["error"]) for key, entry in ran.items() if entry.get("error")}
    out = void | failed.keys()
    series = _series(folder / "series.parquet", out)
    return Run(
        folder=folder,
        experiment=_text(path, manifest, "experiment"),
        title=_text(path, manifest, "title"),
        question=_text(path, manifest, "question"),
        manifest=manifest,
        schemes=_schemes(path, manifest),
        conditions=_conditions(path, manifest),
        metrics=tuple(value for value in _metrics(metrics) if value.key not in out),
        series={key: of[""] for key, of in series.items() if "" in of},
        subflows={key: _links(of) for key, of in series.items() if _links(of)},
        verdicts=_verdicts(folder, _documents(folder) if verdicts is None else verdicts),
        ran=ran,
        void=frozenset(void),
        failed=failed,
    )


def _read_kept(path: Path, verdicts: Documents) -> Run:
    """A run without series: a run of which the table has no value is not in it."""
    columns = _columns(path, METRIC_COLUMNS)
    text = (pq.read_schema(path).metadata or {}).get(KEPT_KEY, b"{}")
    origin = json.loads(text)
    if origin.get("schema") != KEPT_SCHEMA:
        raise BrokenRunError(path, f"has no provenance of schema {KEPT_SCHEMA}")
    void = {key for key, out in zip(_keys(columns), columns["void"], strict=True) if out}
    return Run(
        folder=path,
        experiment=_text(path, origin, "experiment"),
        title=_text(path, origin, "title"),
        question=_text(path, origin, "question"),
        manifest={**origin, "runs": []},
        schemes=_schemes(path, origin),
        conditions=_conditions(path, origin),
        metrics=tuple(value for value in _metrics(columns) if value.key not in void),
        series={},
        subflows={},
        verdicts=_verdicts(path, verdicts),
        ran={key: {"void": key in void} for key in _keys(columns)},
        void=frozenset(void),
        failed={},
    )


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingRunError(path, "there is no such file") from error
    except (OSError, ValueError) as error:
        raise BrokenRunError(path, f"cannot be read as JSON: {error}") from error


def _columns(path: Path, wanted: Sequence[str]) -> dict[str, list[Any]]:
    if not path.is_file():
        raise MissingRunError(path, "there is no such file")
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise BrokenRunError(path, f"cannot be read as Parquet: {error}") from error
    lacking = [name for name in wanted if name not in table.column_names]
    if lacking:
        raise BrokenRunError(path, f"has no column {', '.join(lacking)}")
    return {name: table.column(name).to_pylist() for name in wanted}


def _text(path: Path, entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise BrokenRunError(path, f"`{key}` is missing or no text")
    return value


def _entries(path: Path, manifest: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = manifest.get(key)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BrokenRunError(path, f"`{key}` is missing or no list of objects")
    return entries


def _schemes(path: Path, manifest: Mapping[str, Any]) -> tuple[Scheme, ...]:
    found = []
    for entry in _entries(path, manifest, "schemes"):
        name, missing = _text(path, entry, "name"), entry.get("missing")
        reason = None if missing is None or missing is False else str(missing)
        in_part = tuple(map(str, entry.get("missing_in_part") or ()))
        found.append(Scheme(name, str(entry.get("title") or name), reason, in_part))
    return tuple(found)


def _conditions(path: Path, manifest: Mapping[str, Any]) -> tuple[Condition, ...]:
    links = _entries(path, manifest, "links")
    found = []
    for entry in _entries(path, manifest, "conditions"):
        name = _text(path, entry, "name")
        own = {
            _text(path, link, "name"): {k: v for k, v in link.items() if k != "condition"}
            for link in links
            if link.get("condition", name) == name
        }
        size = int(entry.get("stream_buffer_bytes") or 0)
        found.append(Condition(name, str(entry.get("title") or name), own, size))
    return tuple(found)


def _manifest_runs(path: Path, manifest: Mapping[str, Any]) -> dict[RunKey, Mapping[str, Any]]:
    found: dict[RunKey, Mapping[str, Any]] = {}
    for entry in _entries(path, manifest, "runs"):
        if entry.get("missing"):
            continue
        names = [_text(path, entry, name) for name in KEY_COLUMNS[:-1]]
        repetition = entry.get("repetition")
        if not isinstance(repetition, int):
            raise BrokenRunError(path, "`repetition` of a run is missing or no whole number")
        found[RunKey(names[0], Setting(*names[1:]), repetition)] = entry
    return found


def _keys(columns: Mapping[str, list[Any]]) -> Iterator[RunKey]:
    for scheme, condition, control, buffers, repetition in zip(
        *(columns[name] for name in KEY_COLUMNS), strict=True
    ):
        yield RunKey(scheme, Setting(condition, control, buffers), repetition)


def _metrics(columns: Mapping[str, list[Any]]) -> Iterator[Measured]:
    rows = zip(_keys(columns), columns["metric"], columns["value"], columns["unit"], strict=True)
    for key, metric, value, unit in rows:
        if value is not None and math.isfinite(value):
            yield Measured(key, metric, float(value), unit or "")


Series = list[tuple[float, float]]


def _series(path: Path, out: set[RunKey]) -> dict[RunKey, dict[str, Series]]:
    """By run and link, the sum of all links under an empty name; older files have that only."""
    columns = _columns(path, SERIES_COLUMNS)
    paths = _columns(path, ("path",))["path"] if _has(path, "path") else None
    found: dict[RunKey, dict[str, Series]] = defaultdict(lambda: defaultdict(list))
    names = paths or [""] * len(columns["t_s"])
    rows = zip(_keys(columns), names, columns["t_s"], columns["goodput_mbps"], strict=True)
    for key, name, at, goodput in rows:
        if key not in out and at is not None and goodput is not None:
            found[key][name or ""].append((at, goodput))
    return {key: {name: sorted(p) for name, p in of.items()} for key, of in found.items()}


def _links(series: Mapping[str, Series]) -> dict[str, Series]:
    return {name: points for name, points in series.items() if name}


def _has(path: Path, column: str) -> bool:
    return column in pq.read_schema(path).names


def _documents(folder: Path) -> Documents:
    path = folder / "verdicts.json"
    entries = _json(path)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BrokenRunError(path, "is no list of verdicts")
    return entries


def _verdicts(path: Path, entries: Documents) -> tuple[Verdict, ...]:
    found = []
    for entry in entries:
        claim, goal = str(entry.get("claim") or ""), str(entry.get("goal") or "")
        if not (claim or goal):
            raise BrokenRunError(path, "a verdict names neither a claim nor a goal")
        if entry.get("verdict") not in VERDICTS:
            raise BrokenRunError(path, f"verdict {entry.get('verdict')!r} is none of {VERDICTS}")
        found.append(
            Verdict(
                claim,
                goal,
                entry["verdict"],
                entry.get("measured"),
                entry.get("expected"),
                str(entry.get("statement") or ""),
                str(entry.get("cause") or ""),
                tuple(entry.get("findings") or ()),
            )
        )
    return tuple(found)
