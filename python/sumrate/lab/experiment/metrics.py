"""The names that measured values have, so that a check that asks for another is refused."""

import difflib
from collections.abc import Iterable

from sumrate.lab.experiment.by_method import StreamCondition
from sumrate.lab.experiment.model import Experiment

PLAIN = frozenset(
    {
        "additive_run",
        "aggregation_benefit",
        "aggregation_benefit_mean",
        "beside_mbps",
        "best_link_ratio",
        "blackout_goodput_mbps",
        "blackout_ratio",
        "blackout_stall_ms",
        "bottleneck_share",
        "completed_share",
        "coupled_share",
        "cpu_s_per_gb",
        "cwnd_bytes",
        "delivery_delay_max_added_ms",
        "delivery_delay_max_ms",
        "delivery_delay_p50_ms",
        "delivery_delay_p99_excess_ms",
        "delivery_delay_p99_ms",
        "forward_follows_s",
        "forward_swaps",
        "goodput_mbps",
        "ideal_ratio",
        "in_flight_model_ratio",
        "in_order_delay_p50_ms",
        "in_order_delay_p99_ms",
        "in_order_rank",
        "kernel_cpu_s_per_gb",
        "longest_stall_ms",
        "model_mbps",
        "model_ratio",
        "over_best_link",
        "over_mptcp",
        "p5_ratio",
        "padhye_b1_ratio",
        "padhye_full_ratio",
        "padhye_mbps",
        "padhye_ratio",
        "percentiles_over_aggligator",
        "percentiles_over_mptcp",
        "pooled_percentiles_above_aggligator",
        "pooled_percentiles_above_mptcp",
        "pooled_percentiles_over_aggligator",
        "pooled_percentiles_over_mptcp",
        "pooled_sample_p5_over_p50",
        "pooled_sample_p5_over_p95",
        "pooled_second_p20_over_p95",
        "pooled_second_p5_over_p95",
        "reassembly_bound_ratio",
        "reassembly_peak_bytes",
        "reassembly_stall_ratio",
        "recovery_ms",
        "redundant_share",
        "sample_p50_mbps",
        "sample_p5_mbps",
        "sample_p95_mbps",
        "sample_spread",
        "session_jain_index",
        "shaped_ratio",
        "split_error",
        "stall_rank",
        "start_up_s",
        "stream_jain_index",
        "stream_jain_median",
        "stream_least_over_median",
        "stream_most_over_median",
        "sum_ratio",
        "transfers_at_once",
        "under_way_bytes",
        "unimpaired_ratio",
    }
)
OF_A_LINK = (
    "blackout_goodput_{}_mbps",
    "blackout_ratio_{}",
    "blackout_stall_{}_ms",
    "carried_{}_mbytes",
    "model_{}_mbps",
    "path_{}_after_others_mbps",
    "path_{}_first_mbps",
    "path_{}_full_rate_after_s",
    "path_{}_kbytes_per_ack",
    "path_{}_mbps",
    "path_{}_ratio",
    "path_{}_redials",
    "path_{}_repeated_share",
    "path_{}_sack_share",
    "path_{}_sent_mbps",
    "path_{}_shaped_ratio",
    "path_{}_share",
    "path_{}_variation",
    "recovery_{}_ms",
    "rtt_{}_p50_ms",
    "rtt_{}_p95_ms",
)
"""With a link's name in them."""


POOLED = "pooled_percentiles_over_"
POOLED_ABOVE = "pooled_percentiles_above_"
"""How the names of values begin that are of all repetitions together; a peer's name follows."""
POOLED_MESSAGES = "pooled_message_"
"""The same of values that are of the repetitions that count for every scheme of a condition."""
PUBLISHED_BIN = (0.72, 0.84)
"""The bin of a link's share that figure 4.6b of the thesis found to be the fullest."""
IN_BIN = "_share_in_72_84"
"""How the name of the share of downloads in it ends."""


def is_pooled(metric: str) -> bool:
    """Whether a value of this name is of all repetitions and stands at one of them."""
    return metric.startswith("pooled_") or "_share_mode_" in metric or metric.endswith(IN_BIN)


def pooled_with(metric: str, schemes: Iterable[str]) -> list[str]:
    """The schemes of whose repetitions a pooled value is, too; those of them that have none aside.

    Args:
        metric: its name.
        schemes: those that were measured.

    """
    for start in (POOLED, POOLED_ABOVE):
        if metric.startswith(start):
            return [metric.removeprefix(start)]
    return list(schemes) if metric.startswith(POOLED_MESSAGES) else []


def hardly_any(repetitions: int, most: int) -> bool:
    """Whether so few of a scheme's repetitions count that others are not cut down to them."""
    return 2 * repetitions < most


CLOSED = ("bench", "stream", "crowd")
"""Methods whose names are known; those of others follow from what they load or compute."""


def known(experiment: Experiment) -> set[str]:
    """Every name that a value of this experiment can have."""
    streams = [c for c in experiment.conditions if isinstance(c, StreamCondition)]
    phases = max((len(condition.phases) for condition in streams), default=0)
    return {
        *PLAIN,
        *(pattern.format(link.name) for link in experiment.links for pattern in OF_A_LINK),
        *(f"phase_{number}_mbps" for number in range(1, phases + 1)),
        *(
            f"carried_{link.name}_phase_{number}_mbps"
            for link in experiment.links
            for number in range(1, phases + 1)
        ),
        *(f"phase_{number}_sum_ratio" for number in range(1, phases + 1)),
    }


def problems(experiment: Experiment) -> Iterable[tuple[str, str]]:
    """Checks that ask for a value that nothing measures: the name, and a sentence about it."""
    if experiment.method not in CLOSED:
        return
    names = known(experiment)
    for check in experiment.checks:
        for selection in (check.value, check.over):
            if selection is not None and selection.metric not in names:
                near = difflib.get_close_matches(selection.metric, names, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield selection.metric, f"nothing measures `{selection.metric}`{hint}"
