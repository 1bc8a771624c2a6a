"""Lines over the size that a family of schemes differs in."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sumrate.report.lab import read_run
from sumrate.report.lab.read import Scheme
from sumrate.report.lab.summary import summarise
from sumrate.report.lab.sweeps import families, sweep_figures
from tests.report.made_up import write_run

SIZES = ("1M", "16K", "256K")


def test_three_sizes_are_a_line_in_their_order() -> None:
    schemes = [Scheme(f"thesis-{size}", f"one window of {size}") for size in SIZES]
    others = [Scheme("sumrate", "Sumrate"), Scheme("pair-1K", "1K"), Scheme("pair-2K", "2K")]
    (found,) = families([*others, *schemes])
    assert found.title == "one window of N"
    assert [found.names[size] for size in found.sizes] == ["16K", "256K", "1M"]
    assert list(found.sizes) == [16 << 10, 256 << 10, 1 << 20]


def test_a_run_without_families_has_no_such_figure(folder: Path) -> None:
    summary = summarise(read_run(folder))
    assert not list(sweep_figures(summary, summary.settings))


def test_the_line_has_the_medians(tmp_path: Path) -> None:
    own = write_run(tmp_path / "own")
    table = pq.read_table(own / "metrics.parquet")
    rows = [row for row in table.to_pylist() if row["metric"] == "sum_ratio"]
    for row in list(rows):
        if row["scheme"] == "sumrate":
            rows += [
                row | {"scheme": f"windows-{size}", "value": 0.1 * place}
                for place, size in enumerate(SIZES, start=1)
            ]
    pq.write_table(pa.Table.from_pylist(rows), own / "metrics.parquet")
    summary = summarise(read_run(own))
    _, settings = summary.variants()[0]
    ((figure, heading),) = sweep_figures(summary, settings)
    assert heading == "sum ratio"
    assert len(figure.axes) == len(settings)
    drawn = np.asarray(figure.axes[0].get_lines()[0].get_ydata())
    assert drawn.tolist() == pytest.approx([0.2, 0.3, 0.1])
