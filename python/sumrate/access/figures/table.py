"""Figures, and rows of their tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from sumrate.access.errors import whole
from sumrate.access.simulation import confidence
from sumrate.access.tasks import Row, Task
from sumrate.phy.parameters import Floats

Kind = Literal["lines", "dots", "heatmap"]


class Effort(NamedTuple):
    """Size of a computation."""

    realisations: int = 400
    pool: int = 2000
    """Clients of a scene, from which each realisation draws its own."""

    def checked(self) -> "Effort":
        """Returns the effort itself, with its numbers checked.

        Raises:
            AccessError: less than two realisations, or too few clients for them.

        """
        whole("realisations", self.realisations, 2, 1_000_000)
        whole("clients of a pool", self.pool, 64, 1_000_000)
        return self


QUICK = Effort(40, 400)


@dataclass(frozen=True)
class Figure:
    """A figure: its computation and its drawing."""

    name: str
    title: str
    kind: Kind
    x_label: str
    y_label: str
    tasks: Callable[[Effort, int], list[Task]]
    """Makes the tasks from effort and seed."""
    metrics: tuple[str, ...]
    """Metrics of the table that are drawn."""
    claims: tuple[str, ...] = ()
    """Ids in the catalogue of published claims."""
    log_y: bool = False
    limits: tuple[float, float] | None = None
    """Limits of the y axis."""
    log_x: bool = False
    note: str = ""
    """Text above the drawing: common conditions of the curves, meaning of dotted lines."""
    statistic: Literal["mean", "median"] = "mean"
    """Statistic of the realisations that is drawn."""
    columns: int = 2
    """Panels side by side."""
    curves: tuple[str, ...] = ()
    """Curves that are drawn; all if empty."""
    absent: str = ""
    """Written into a panel in which a curve has no value."""
    steps: bool = False
    """Draw steps, because x has no order, as numbers of beams."""
    signed: tuple[str, ...] = ("snr_db",)
    """Metrics that can be negative; intervals of others are cut at 0."""
    seconds: float = 20.0
    """Approximate time of the table on one core with the default effort."""
    summary: Callable[[list[Row]], list[Row]] | None = None
    """Computes further rows from the rows of all tasks."""

    def table(
        self, effort: Effort, seed: int, evaluate: Callable[[list[Task]], list[Row]]
    ) -> list[Row]:
        """All rows, with the figure's name.

        Args:
            effort: size of the computation.
            seed: of all random numbers.
            evaluate: runs the tasks.

        """
        rows = evaluate(self.tasks(effort.checked(), seed))
        rows += self.summary(rows) if self.summary else []
        return [{"figure": self.name, **row} for row in rows]


def row(
    panel: str,
    curve: str,
    metric: str,
    values: Floats,
    *,
    x: float | None = None,
    y: float | None = None,
) -> Row:
    """A row with the mean of values of any shape and its confidence interval."""
    mean, low, high = confidence(np.asarray(values, dtype=np.float64).ravel())
    known = int(np.isfinite(values).sum())
    return {"panel": panel, "curve": curve, "metric": metric, "x": x, "y": y, "mean": mean,
            "low": low, "high": high, "n": known}  # fmt: skip


def median_row(
    panel: str,
    curve: str,
    metric: str,
    values: Floats,
    *,
    x: float | None = None,
    y: float | None = None,
) -> Row:
    """A row with the median and its confidence interval from ranks (binomial, normal).

    Infinite values count, NaN does not.
    """
    known = np.sort(values[~np.isnan(values)])
    if not known.size:
        return row(panel, curve, metric, np.array([np.nan]), x=x, y=y)
    half = 0.98 * np.sqrt(known.size)
    low = known[max(0, int(np.floor(known.size / 2 - half)))]
    high = known[min(known.size - 1, int(np.ceil(known.size / 2 + half)))]
    return {"panel": panel, "curve": curve, "metric": metric, "x": x, "y": y,
            "mean": float(np.median(known)), "low": float(low), "high": float(high),
            "n": int(known.size)}  # fmt: skip
