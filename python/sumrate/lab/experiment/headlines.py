"""The comparisons and misses of docs/results.md, with values from the kept tables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from sumrate.lab.experiment.demands import demands
from sumrate.lab.experiment.kept import KEPT, path_of, read_provenance
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.run import Plan
from sumrate.lab.programs import REPOSITORY
from sumrate.report.headline_bars import Bar as Drawn
from sumrate.report.headline_bars import picture
from sumrate.verdict.model import JUDGED, Demand

HEADLINES = REPOSITORY / "docs" / "headlines.toml"
PAGE = REPOSITORY / "docs" / "results.md"
PICTURES = REPOSITORY / "docs" / "img" / "results"
OWN = ("sumrate", "jpoc")
"""Schemes whose bars stand out."""


class Bar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a comparison."""

    name: str
    label: str
    scheme: str = ""
    """The name, unless it is said."""
    condition: str = ""
    """The comparison's, unless it is said."""


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence with its picture."""

    id: str
    title: str
    experiment: str
    condition: str
    metric: str
    unit: str
    sentence: str
    bars: tuple[Bar, ...]
    scale: float = 1.0
    less_is_better: bool = False

    def values(self, results: Path = KEPT) -> dict[str, float]:
        """The value of each bar by its name.

        Raises:
            ValueError: the table has no such value.

        """
        return {bar.name: self._value(bar, results) for bar in self.bars}

    def _value(self, bar: Bar, results: Path) -> float:
        place = (bar.scheme or bar.name, bar.condition or self.condition, self.metric)
        table = path_of(results, self.experiment)
        found = _medians(table, table.stat().st_mtime_ns).get(place)
        if found is None:
            raise ValueError(f"{self.experiment} has no value of {', '.join(place)}")
        return found * self.scale

    def said(self, results: Path = KEPT) -> str:
        """The sentence with its values."""
        return _filled(self.sentence, self.values(results))

    def minutes(self) -> int:
        """About how long its experiment takes."""
        experiment = load(self.experiment)
        return max(1, round(Plan(experiment, experiment.repetitions).seconds() / 60))

    def svg(self, results: Path = KEPT) -> str:
        """The picture."""
        values = self.values(results)
        top = max(values.values())
        digits = 0 if top >= 100 else 1 if top >= 10 else 2
        bars = [
            Drawn(bar.label, values[bar.name], f"{values[bar.name]:.{digits}f}", bar.name in OWN)
            for bar in self.bars
        ]
        better = "less" if self.less_is_better else "more"
        return picture(self.said(results), f"{self.unit} ({better} is better)", bars)


class Missed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line on what is not reached."""

    experiment: str
    statement: str
    """How the statement of the check begins."""
    sentence: str

    def said(self, found: Iterable[Demand]) -> str:
        """The sentence with the least and the largest value of the check.

        Raises:
            ValueError: not exactly one check is meant, or nothing is missed in it.

        """
        meant = [
            row
            for row in found
            if row.experiment == self.experiment and row.statement.startswith(self.statement)
        ]
        if len(meant) != 1 or not meant[0].missed_in:
            raise ValueError(
                f"{self.experiment}: {len(meant)} checks begin with `{self.statement}`; one that "
                "is missed somewhere is wanted"
            )
        low, high = meant[0].measured[JUDGED]
        return f"{_filled(self.sentence, {'low': low, 'high': high})} `{meant[0].id}`"


class Headlines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    comparisons: tuple[Comparison, ...]
    missed: tuple[Missed, ...]

    def experiments(self) -> list[str]:
        """Experiments that record the values of the comparisons."""
        return list(dict.fromkeys(c.experiment for c in self.comparisons))


def read_headlines(path: Path = HEADLINES) -> Headlines:
    """The file of comparisons and misses."""
    return msgspec.toml.decode(path.read_bytes(), type=Headlines)


def _filled(sentence: str, values: Mapping[str, float]) -> str:
    """The sentence with `{NAME:FORMAT}` replaced; names may contain `-`."""

    def value(place: re.Match[str]) -> str:
        return format(values[place[1]], place[2]).replace("%", " %")

    return re.sub(r"\{([\w-]+):([^}]*)\}", value, sentence)


@cache
def _medians(table: Path, _: int) -> Mapping[tuple[str, str, str], float]:
    """By scheme, condition and metric, of the runs that count."""
    import polars as pl  # noqa: PLC0415 (loads slowly)

    keys = ("scheme", "condition", "metric")
    rows = pl.read_parquet(table).filter(~pl.col("void")).group_by(keys)
    return {row[:3]: row[3] for row in rows.agg(pl.col("value").median()).iter_rows()}


@dataclass(frozen=True)
class Block:
    """A generated part of the page, between its markers."""

    name: str
    lines: tuple[str, ...]

    def inserted(self, text: str) -> str:
        """The page with the block replaced.

        Raises:
            ValueError: the page lacks the markers.

        """
        begin, end = f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"
        if begin not in text or end not in text:
            raise ValueError(f"the page has no block from `{begin}` to `{end}`")
        head, rest = text.split(begin, 1)
        return "\n".join([f"{head}{begin}", *self.lines, end + rest.split(end, 1)[1]])


def blocks(results: Path = KEPT) -> list[Block]:
    """The generated parts of the page."""
    page = read_headlines()
    found = demands(results)
    return [
        Block(
            "comparisons",
            (*(line for c in page.comparisons for line in _shown(c, results)), ""),
        ),
        Block("missed", ("", *(f"- {miss.said(found)}" for miss in page.missed), "")),
    ]


def _shown(comparison: Comparison, results: Path) -> Iterator[str]:
    origin = read_provenance(path_of(results, comparison.experiment))
    minutes = comparison.minutes()
    yield from ("", f"### {comparison.title}", "", comparison.said(results), "")
    yield f"![{comparison.title}](img/results/{comparison.id}.svg)"
    yield ""
    yield (
        f"`sumrate-lab run {comparison.experiment}`, {minutes} min. Recorded "
        f"{origin['started'][:10]} at commit `{origin['commit'][:10]}`."
    )


def write_page(results: Path = KEPT) -> None:
    """Writes the generated parts of the page and the pictures."""
    text = PAGE.read_text(encoding="utf-8")
    for block in blocks(results):
        text = block.inserted(text)
    PAGE.write_text(text, encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    comparisons = read_headlines().comparisons
    for stale in {*PICTURES.glob("*.svg")} - {PICTURES / f"{c.id}.svg" for c in comparisons}:
        stale.unlink()
    for comparison in comparisons:
        (PICTURES / f"{comparison.id}.svg").write_text(comparison.svg(results), encoding="utf-8")
