"""Reads a result: the folder that a run left, or the table that is kept of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from sumrate.verdict.metrics import Metric, find, registry
from sumrate.verdict.model import JUDGED

SCHEMAS = ("sumrate.lab.run.v1", "sumrate.lab.kept.v1")
KEPT_KEY = "sumrate"
"""Of the provenance in the metadata of a kept table."""
RUN = ("scheme", "condition", "congestion_control", "buffers", "repetition")
SETTLE_S = 0.5
"""Samples this close to the start or the end of a run are left out of distributions."""
Points = Sequence[tuple[float, float]]


class RunError(Exception):
    """A result cannot be used; the arguments are the file or folder, and what is wrong with it."""

    def __str__(self) -> str:
        """The file and the problem."""
        return ": ".join(map(str, self.args))


class Scheme(msgspec.Struct, frozen=True):
    """A transport under test."""

    name: str
    title: str = ""
    missing: str = ""
    """Why it did not run."""
    missing_in_part: tuple[str, ...] = ()
    """Why it did not run everywhere that it was to."""


class Condition(msgspec.Struct, frozen=True):
    """A named state of the links."""

    name: str
    title: str = ""
    stream_buffer_bytes: int = 0
    why_not: dict[str, str] = {}
    """Why a scheme is not in this condition."""


class Manifest(msgspec.Struct, frozen=True):
    """The parts of a manifest, or of a kept table's provenance, that reports show."""

    schema: str
    experiment: str
    title: str
    question: str
    schemes: list[Scheme]
    conditions: list[Condition]
    links: list[dict[str, Any]]
    """One for each link and condition."""
    method: str = ""
    commit: str = "unknown"
    kernel: str = ""
    machine: Any = None
    busy_before: float | None = None
    started: str = "unknown"
    finished: str = ""
    seeds: Any = None
    argv: list[str] = []
    command: str = ""
    why_not: dict[str, str] = {}
    runs: list[dict[str, Any]] | int = 0
    """Of a kept table only their number."""


class Setting(NamedTuple):
    """A condition with a congestion control and buffers; all schemes of it can be compared."""

    condition: str
    congestion_control: str
    buffers: str


class Spread(NamedTuple):
    """Median, least and largest of a metric, and how many values there were."""

    median: float
    low: float
    high: float
    values: int

    def apart(self, other: "Spread") -> bool:
        """True if the two ranges have no value in common."""
        return self.high < other.low or other.high < self.low


@dataclass(frozen=True)
class Result:
    """A result, without the values of void and failed runs."""

    path: Path
    manifest: Manifest
    runs: tuple[Mapping[str, Any], ...]
    """All runs, void and failed ones too; not those of missing schemes."""
    values: pl.DataFrame
    """Columns of RUN, metric, value, unit."""
    samples: pl.DataFrame
    """Columns of RUN, path (of a link, or empty), t_s, goodput_mbps; empty for kept tables."""

    @cached_property
    def conditions(self) -> dict[str, Condition]:
        """By name."""
        return {condition.name: condition for condition in self.manifest.conditions}

    @cached_property
    def schemes(self) -> list[Scheme]:
        """The links alone, in their order, then the others in the order in which they ran."""
        known = {scheme.name: scheme for scheme in self.manifest.schemes}
        for name in self._names("scheme"):
            known.setdefault(name, Scheme(name))
        links = list(dict.fromkeys(link["name"] for link in self.manifest.links))
        places = {name: place for place, name in enumerate(links)}
        found = [msgspec.structs.replace(s, title=s.title or s.name) for s in known.values()]
        return sorted(found, key=lambda scheme: places.get(scheme.name, len(places)))

    def _names(self, column: str) -> list[str]:
        ran = [str(run[column]) for run in self.runs]
        return list(dict.fromkeys([*ran, *self.values[column].unique(maintain_order=True)]))

    @cached_property
    def settings(self) -> list[Setting]:
        """By condition, congestion control and buffers, each in the order of the runs."""
        keys = Setting._fields
        found = {Setting(*(run[key] for key in keys)) for run in self.runs}
        found |= {Setting(*row) for row in self.values.select(keys).unique().iter_rows()}
        conditions = list(dict.fromkeys([*self.conditions, *self._names("condition")]))
        controls, buffers = self._names("congestion_control"), self._names("buffers")
        return sorted(
            found,
            key=lambda s: (
                conditions.index(s.condition),
                controls.index(s.congestion_control),
                buffers.index(s.buffers),
            ),
        )

    def variant(self, setting: Setting) -> str:
        """Congestion control and buffers, each only where the result has more than one."""
        parts = []
        if len({s.congestion_control for s in self.settings}) > 1:
            parts.append(setting.congestion_control)
        if len({s.buffers for s in self.settings}) > 1:
            parts.append(f"{setting.buffers} buffers")
        return ", ".join(parts)

    def condition_title(self, setting: Setting) -> str:
        """The condition's title, or its name."""
        known = self.conditions.get(setting.condition)
        return known.title if known and known.title else setting.condition

    def setting_title(self, setting: Setting) -> str:
        """The condition's title, with congestion control and buffers where those differ."""
        return ", ".join(filter(None, (self.condition_title(setting), self.variant(setting))))

    def links(self, condition: str) -> dict[str, dict[str, Any]]:
        """The calibration of each link of a condition, by its name."""
        return {
            link["name"]: {k: v for k, v in link.items() if k != "condition"}
            for link in self.manifest.links
            if link.get("condition", condition) == condition
        }

    def link_title(self, name: str) -> str:
        """A link's title, or its name."""
        titles = (link.get("title") for link in self.manifest.links if link["name"] == name)
        return next(filter(None, titles), name)

    @cached_property
    def metrics(self) -> list[Metric]:
        """The measured metrics in the order of the registry, then others by name."""
        units = dict(self.values.select("metric", "unit").unique(keep="first").iter_rows())
        order = [name for name in registry() if name in units]
        order += sorted(units.keys() - registry().keys())
        return [find(name)._replace(unit=units[name]) for name in order]

    @cached_property
    def spreads(self) -> dict[tuple[str, Setting, str], Spread]:
        """By metric, setting and scheme."""
        value = pl.col("value")
        table = self.values.group_by("metric", *RUN[1:4], "scheme").agg(
            value.median().alias("median"), value.min().alias("low"), value.max().alias("high"),
            pl.len(),
        )  # fmt: skip
        return {(row[0], Setting(*row[1:4]), row[4]): Spread(*row[5:]) for row in table.iter_rows()}

    @cached_property
    def _counts(self) -> dict[tuple[Setting, str], tuple[int, int]]:
        found: dict[tuple[Setting, str], tuple[int, int]] = {}
        for run in self.runs:
            place = (Setting(*(run[key] for key in Setting._fields)), run["scheme"])
            good, out = found.get(place, (0, 0))
            bad = bool(run.get("void") or run.get("error"))
            found[place] = (good + (not bad), out + bad)
        return found

    def counted(self, setting: Setting, scheme: str) -> tuple[int, int]:
        """How many repetitions count, and how many are left out as void or failed."""
        return self._counts.get((setting, scheme), (0, 0))

    def leads(self, metrics: Sequence[str]) -> str:
        """A sentence on how often Sumrate has the best median of these; empty without a rival.

        Its own variants are no rivals.
        """
        own = next((scheme for scheme in self.schemes if scheme.name == JUDGED), None)
        rivals = [s.name for s in self.schemes if not s.name.startswith(JUDGED)]
        best = total = 0
        for metric in self.metrics:
            for setting in self.settings if metric.name in metrics and metric.sign else ():
                mine = self.spreads.get((metric.name, setting, JUDGED))
                others = [self.spreads.get((metric.name, setting, name)) for name in rivals]
                medians = [spread.median * metric.sign for spread in others if spread]
                if mine and medians:
                    total += 1
                    best += mine.median * metric.sign >= max(medians)
        if own is None or not total:
            return ""
        cases = "case" if total == 1 else "cases"
        return f"{own.title} has the best median in {best} of {total} {cases}."

    @cached_property
    def distributions(self) -> dict[tuple[Setting, str], list[float]]:
        """Ranked 100 ms samples of all repetitions, without the first and the last half second."""
        end = pl.col("t_s").max().over(RUN) - SETTLE_S
        table = (
            self.samples.filter(pl.col("path") == "")
            .filter((pl.col("t_s") > SETTLE_S) & (pl.col("t_s") < end))
            .group_by(*RUN[1:4], "scheme")
            .agg(pl.col("goodput_mbps").sort())
        )
        return {(Setting(*row[:3]), row[3]): row[4] for row in table.iter_rows()}

    @cached_property
    def median_runs(self) -> dict[tuple[Setting, str], int]:
        """Which repetition of each scheme is drawn.

        It is the one of Sumrate's median goodput (the lower of two): in one repetition all have
        the same seed and traces. A scheme without that repetition has its own median.
        """
        rate = pl.col("goodput_mbps")
        means = self.samples.filter(pl.col("path") == "").group_by(RUN).agg(rate.mean())
        ranked: dict[tuple[Setting, str], list[int]] = {}
        for row in means.sort("goodput_mbps", *RUN).select(RUN).iter_rows():
            ranked.setdefault((Setting(*row[1:4]), row[0]), []).append(row[4])
        medians = {place: found[(len(found) - 1) // 2] for place, found in ranked.items()}
        for (setting, scheme), found in ranked.items():
            if (leading := medians.get((setting, JUDGED))) in found:
                medians[setting, scheme] = leading if leading is not None else found[0]
        return medians

    def curves(self, setting: Setting, scheme: str) -> dict[str, Points]:
        """Time in s and goodput in Mbit/s of the drawn repetition, by link; the sum under ``."""
        repetition = self.median_runs.get((setting, scheme))
        if repetition is None:
            return {}
        key = dict(zip(RUN, (scheme, *setting, repetition), strict=True))
        found = self.samples.filter(**key).sort("t_s")
        names = found["path"].unique(maintain_order=True).sort()
        columns = ("t_s", "goodput_mbps")
        return {name: found.filter(path=name).select(columns).rows() for name in names}


def read_result(path: Path) -> Result:
    """Reads a result folder, or a kept table, which has no samples.

    Raises:
        RunError: a file does not exist, or is not what a run writes.

    """
    if path.suffix == ".parquet":
        table = _table(path, ("void", "metric", "value", "unit"))
        text = pl.read_parquet_metadata(path).get(KEPT_KEY, "{}")
        manifest = _manifest(path, text)
        runs = table.select(*RUN, "void").unique(maintain_order=True).to_dicts()
        return Result(path, manifest, tuple(runs), _values(table, runs), _no_samples())
    if not path.is_dir():
        raise RunError(path, "there is no such result; `sumrate-lab run NAME` makes one")
    file = path / "manifest.json"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RunError(file, f"cannot be read: {error}") from error
    manifest = _manifest(file, text)
    entries = manifest.runs if isinstance(manifest.runs, list) else []
    runs = [run for run in entries if not run.get("missing")]
    if any(key not in run for run in runs for key in RUN):
        raise RunError(file, f"a run lacks one of {', '.join(RUN)}")
    table = _table(path / "metrics.parquet", ("void", "metric", "value", "unit"))
    void = {tuple(row) for row in table.filter("void").select(RUN).unique().iter_rows()}
    runs = [run | {"void": run.get("void") or tuple(run[k] for k in RUN) in void} for run in runs]
    samples = _counting(_table(path / "series.parquet", ("t_s", "goodput_mbps")), runs)
    if "path" not in samples.columns:
        samples = samples.with_columns(pl.lit("").alias("path"))
    samples = samples.with_columns(pl.col("path").fill_null("")).drop_nulls()
    return Result(path, manifest, tuple(runs), _values(table, runs), samples)


def _manifest(path: Path, text: str) -> Manifest:
    try:
        found = msgspec.json.decode(text.encode(), type=Manifest)
    except msgspec.MsgspecError as error:
        raise RunError(path, f"is no manifest of a run: {error}") from error
    if found.schema not in SCHEMAS:
        raise RunError(path, f"is of schema {found.schema}, not of {' or '.join(SCHEMAS)}")
    return found


def _table(path: Path, wanted: Sequence[str]) -> pl.DataFrame:
    if not path.is_file():
        raise RunError(path, "there is no such file")
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RunError(path, f"cannot be read as Parquet: {error}") from error
    if lacking := [name for name in (*RUN, *wanted) if name not in table.columns]:
        raise RunError(path, f"has no column {', '.join(lacking)}")
    words = [name for name, kind in table.schema.items() if kind == pl.Categorical]
    return table.with_columns(pl.col(words).cast(pl.String), pl.col("repetition").cast(pl.Int64))


def _no_samples() -> pl.DataFrame:
    words = dict.fromkeys((*RUN[:4], "path"), pl.String)
    return pl.DataFrame(
        schema={**words, "repetition": pl.Int64, "t_s": pl.Float64, "goodput_mbps": pl.Float64}
    )


def _counting(table: pl.DataFrame, runs: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The rows of runs that are neither void nor failed."""
    out = [{key: run[key] for key in RUN} for run in runs if run.get("void") or run.get("error")]
    if not out:
        return table
    return table.join(pl.DataFrame(out), on=RUN, how="anti", maintain_order="left")


def _values(table: pl.DataFrame, runs: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    counting = _counting(table, runs).filter(pl.col("value").is_finite())
    return counting.select(*RUN, "metric", "value", pl.col("unit").fill_null(""))


def excluded(result: Result) -> Iterator[str]:
    """Peers that the experiment leaves out on purpose, and why."""
    titles = {scheme.name: scheme.title for scheme in result.schemes}
    for name, reason in result.manifest.why_not.items():
        yield f"{titles.get(name, name)}: {reason}"
    places: dict[tuple[str, str], list[str]] = {}
    for condition in result.manifest.conditions:
        for name, reason in condition.why_not.items():
            where = condition.title or condition.name
            places.setdefault((titles.get(name, name), reason), []).append(where)
    for (title, reason), conditions in places.items():
        yield f"{title} ({'; '.join(conditions)}): {reason}"
