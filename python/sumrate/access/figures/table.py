"""What a figure is, and rows of its table."""

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
    """How much is computed."""

    realisations: int = 400
    pool: int = 2000
    """Clients of a scene from which realisations are drawn."""

    def checked(self) -> "Effort":
        """The same.

        Raises:
            AccessError: less than two realisations, or too few clients for them.

        """
        whole("realisations", self.realisations, 2, 1_000_000)
        whole("clients of a pool", self.pool, 64, 1_000_000)
        return self


QUICK = Effort(40, 400)


@dataclass(frozen=True)
class Figure:
    """A figure: how it is computed, and how it is drawn."""

    name: str
    title: str
    kind: Kind
    x_label: str
    y_label: str
    tasks: Callable[[Effort, int], list[Task]]
    """Of effort and seed."""
    metrics: tuple[str, ...]
    """What is drawn; a table may have more."""
    claims: tuple[str, ...] = ()
    """Ids in the catalogue of published claims."""
    log_y: bool = False
    limits: tuple[float, float] | None = None
    """Of the y axis."""
    log_x: bool = False
    note: str = ""
    """Drawn below it: what its curves have in common, and what dotted lines mean."""
    statistic: Literal["mean", "median"] = "mean"
    """What is drawn of the realisations."""
    columns: int = 2
    """Panels side by side."""
    curves: tuple[str, ...] = ()
    """Those that are drawn; all if there are none."""
    steps: bool = False
    """Whether x are names without an order, such as numbers of beams."""
    signed: tuple[str, ...] = ("snr_db",)
    """Metrics that can be below 0: intervals of others end there."""
    seconds: float = 20.0
    """About what its table takes on one core in the usual effort."""
    summary: Callable[[list[Row]], list[Row]] | None = None
    """Further rows from all of the tasks'."""

    def table(
        self, effort: Effort, seed: int, evaluate: Callable[[list[Task]], list[Row]]
    ) -> list[Row]:
        """All rows, with the figure's name.

        Args:
            effort: how much is computed.
            seed: of everything random.
            evaluate: does the tasks.

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
    """The mean of values of any shape with its confidence interval."""
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
    """The median of values with its confidence interval from the ranks (binomial, normal).

    Infinite values count, those that are no number do not.
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
