"""Metrics that are expressions over the values of one repetition, computed for all runs at once.

A point is a condition with a congestion control, buffers and a repetition: there all schemes have
the same seed and traces.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from sumrate.lab.experiment.model import Change, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import links_of

POINT = ("condition", "congestion_control", "buffers", "repetition")
MEASURED = ("goodput_mbps", "sum_ratio", "reassembly_peak_bytes", "longest_stall_ms",
            "delivery_delay_max_ms")  # fmt: skip
"""The metrics that the expressions read."""
MEMORY_FACTOR = 1.5
"""Of the sum of rates times the largest difference of delays: the memory that reassembly needs."""

RATE, PEAK, STALL = (pl.col(name) for name in (MEASURED[0], *MEASURED[2:4]))
LATEST = pl.col("delivery_delay_max_ms")
ALONE, SOUND, BASELINE, VOID, LINKS, SPREAD_MS, TOTAL = (
    pl.col(name) for name in ("alone", "sound", "baseline", "void", "links", "spread_ms", "total")
)


def _at_point(values: pl.Expr) -> pl.Expr:
    """The sum of values that the links alone have at a point, if every link has one."""
    complete = values.count().over(POINT) == LINKS
    return pl.when(complete).then(values.sum().over(POINT))


def _where(condition: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(value)


OTHER = ~ALONE & RATE.is_not_null()
KERNEL = RATE.filter((pl.col("scheme") == "mptcp") & ~VOID).first().over(POINT)
CARRIES = ALONE & ~VOID & (RATE != 0)
BOUND = MEMORY_FACTOR * 125.0 * SPREAD_MS * pl.coalesce("total", "baseline_total")
USUAL = LATEST.filter(BASELINE & ~VOID).first().over("scheme", *POINT[1:])
RATIOS: Mapping[str, pl.Expr] = {
    "sum_ratio": _where(OTHER, RATE / TOTAL),
    # A scheme that leaves the impaired link out has as much as the best link alone.
    "best_link_ratio": _where(OTHER & (LINKS > 1), RATE.filter(ALONE).max().over(POINT) / TOTAL),
    "over_mptcp": _where(OTHER & (pl.col("scheme") != "mptcp") & (KERNEL != 0), RATE / KERNEL),
    "reassembly_bound_ratio": _where(BOUND > 0, PEAK / BOUND),
    # About 1 where the other links fill the buffer while one missing range is repaired.
    "reassembly_stall_ratio": _where(PEAK != 0, PEAK / (RATE * 125.0 * STALL)),
    # Only where some links are impaired and others are not: the share of the latter.
    "unimpaired_ratio": _where(
        pl.col("mixed") & (pl.col("sum_ratio").is_not_null() | (OTHER & TOTAL.is_not_null())),
        RATE.filter(CARRIES & SOUND).sum().over(POINT) / _at_point(RATE.filter(CARRIES)),
    ),
}  # fmt: skip
"""By the metric's name; all without a unit."""
ADDED_MS = _where(~BASELINE, (LATEST - USUAL).clip(lower_bound=0.0))
"""How much later the latest block is than in the baseline; 0 where it is sooner."""


def void_sums(experiment: Experiment, runs: Sequence[Run]) -> None:
    """Voids the runs that are compared with a sum in which a link alone is void."""
    table = _table(experiment, runs)
    late = OTHER & TOTAL.is_not_null() & (ALONE & VOID).any().over(POINT)
    for run, is_late in zip(runs, table.select(late).to_series(), strict=True):
        run.void |= is_late


def add_comparisons(experiment: Experiment, runs: Sequence[Run]) -> None:
    """Adds RATIOS and the added delay, each where a run does not have it yet."""
    table = _table(experiment, runs)
    table = table.join(_baseline_totals(experiment, table), POINT, "left", maintain_order="left")
    found = table.select(**RATIOS, delivery_delay_max_added_ms=ADDED_MS)
    for run, values in zip(runs, found.iter_rows(named=True), strict=True):
        known = {metric.name for metric in run.metrics}
        for name, value in values.items():
            if name not in known:
                run.add(name, value, "ms" if name.endswith("_ms") else "ratio")


def _table(experiment: Experiment, runs: Sequence[Run]) -> pl.DataFrame:
    """A row for each run with its place, the state of its links and the first values of metrics."""
    links = {c.name: links_of(experiment, c) for c in experiment.conditions}
    changes = {c.name: c.links for c in experiment.conditions}
    rows = []
    for run in runs:
        here = links.get(run.condition, ())
        change = changes.get(run.condition, {})
        sound = {link.name for link in here if not _impaired(change.get(link.name, Change()))}
        queues = run.detail.get("full_queues_ms", {})
        delays = [(link.down.delay_ms, queues.get(link.name, link.down.queue_ms)) for link in here]
        shortest = min((delay for delay, _ in delays), default=0.0)
        longest = max((delay + queue for delay, queue in delays), default=0.0)
        rows.append(
            {
                "scheme": run.scheme,
                **{key: getattr(run, key) for key in POINT},
                "void": run.void,
                "alone": run.scheme in {link.name for link in here},
                "sound": run.scheme in sound,
                "mixed": 0 < len(sound) < len(here),
                "links": len(here),
                "baseline": run.condition == experiment.baseline,
                "spread_ms": longest - shortest,
                **{name: run.value(name) for name in MEASURED},
            }
        )
    table = pl.DataFrame(rows, schema_overrides=dict.fromkeys(MEASURED, pl.Float64))
    total = _at_point(RATE.filter(ALONE))
    return table.with_columns(total=_where(total != 0, total))


def _impaired(change: Change) -> bool:
    return bool(change.loss or change.loss_up or change.extra_rtt_ms)


def _baseline_totals(experiment: Experiment, table: pl.DataFrame) -> pl.DataFrame:
    """By point: what its links carried alone in the baseline, where they were measured only there.

    Without a value where a link has none.
    """
    pairs = [(c.name, link.name) for c in experiment.conditions for link in links_of(experiment, c)]
    links = pl.DataFrame(pairs, ["condition", "scheme"], orient="row")
    alone = table.filter(BASELINE & ~VOID).select("scheme", *POINT[1:], rate=RATE)
    points = table.select(POINT).unique().join(links, "condition")
    rates = points.join(alone, ["scheme", *POINT[1:]], "left").group_by(POINT)
    total = _where(pl.col("rate").null_count() == 0, pl.col("rate").sum())
    return rates.agg(baseline_total=total)
