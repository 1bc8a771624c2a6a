"""How metrics, numbers, links and conditions are said in tables, captions and axes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

CODE = re.compile(r"`([^`]+)`")
NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
GROUPS = {
    "Rates": {
        "goodput_mbps": "goodput",
        "sum_ratio": "sum ratio",
        "best_link_ratio": "the best link alone, over the sum",
        "shaped_ratio": "goodput over what the emulator lets through",
        "over_mptcp": "goodput over kernel MPTCP's",
        "start_up_s": "until 90 % of the links' sum arrive",
        "ideal_ratio": "share of what the links carry",
        "aggregation_benefit": "aggregation benefit",
        "aggregation_benefit_mean": "the same over mean capacities",
        "additive_run": "share of additive runs",
        "sample_p5_mbps": "100 ms samples, p5",
        "sample_p50_mbps": "100 ms samples, p50",
        "sample_p95_mbps": "100 ms samples, p95",
    },
    "Blackouts": {
        "blackout_goodput_mbps": "goodput in blackouts",
        "blackout_ratio": "the same over the healthy link",
        "p5_ratio": "samples' p5 over the healthy link",
        "blackout_stall_ms": "stall of a blackout",
        "recovery_ms": "recovery after a blackout",
    },
    "Stalls, delay and cost": {
        "longest_stall_ms": "longest stall",
        "delivery_delay_p50_ms": "delay of blocks, p50",
        "delivery_delay_p99_ms": "delay of blocks, p99",
        "delivery_delay_max_ms": "delay of the latest block",
        "delivery_delay_p99_excess_ms": "delay of blocks, p99 less the least",
        "in_order_delay_p50_ms": "in-order delay, p50",
        "in_order_delay_p99_ms": "in-order delay, p99",
        "reassembly_peak_bytes": "reassembly peak",
        "reassembly_bound_ratio": "reassembly peak over its bound",
        "reassembly_stall_ratio": "reassembly peak over what arrives in the longest stall",
        "redundant_share": "redundant share of bytes",
        "cpu_s_per_gb": "CPU time per GB, both ends",
        "kernel_cpu_s_per_gb": "CPU time per GB in the kernel",
    },
    "Pages and daily programs": {
        "onload_over_wifi": "load event over WiFi's",
        "onload_over_wigig": "load event over WiGig's",
        "onload_over_best": "load event over the better radio's",
        "onload_cold_over_best": "cold load event over the better radio's",
        "onload_warm_over_best": "warm load event over the better radio's",
        "onload_over_mptcp": "load event over kernel MPTCP's",
        "fcp_over_best": "first contentful paint over the better radio's",
        "lcp_over_best": "largest contentful paint over the better radio's",
        "git_clone_ms": "git clone",
        "packages_ms": "packages over one connection",
        "prompt_ms": "until a remote shell is there",
        "key_ms": "echo of a key",
        "key_p95_ms": "echo of a key, p95",
    },
    "Calls": {
        "message_p50_ms": "messages there and back, p50",
        "message_p99_ms": "messages there and back, p99",
        "pooled_message_p999_ms": "messages there and back, p99.9 of all repetitions",
        "pooled_message_p999_added_ms": "the same, above the better radio alone",
        "message_lost_share": "share of messages lost",
    },
    "Copies": {
        "chosen_interactive_share": "copies by choice of interactive bytes",
        "chosen_background_share": "copies by choice of background bytes",
        "chosen_streaming_share": "copies by choice of streaming bytes",
        "chosen_conversational_share": "copies by choice of a call's bytes",
        "sent_interactive_mbytes": "interactive bytes sent, MB",
        "sent_background_mbytes": "background bytes sent, MB",
        "sent_streaming_mbytes": "streaming bytes sent, MB",
        "sent_conversational_mbytes": "a call's bytes sent, MB",
        "unallowed_background_share": "copies of background bytes beyond each sender's 64 KiB",
    },
    "Video": {
        "pause_share": "share of the time paused",
        "pause_bound": "what the sum of the links makes it",
        "shown_mbps": "mean rate of the GOPs shown",
        "stock_s": "video in stock when counting began",
        "ideal_pause_share": "the links added up moment by moment",
        "pause_over_links": "pauses beyond what the links make",
        "failed_share": "share of checks without a GOP",
        "psnr_db": "average PSNR, by pauses",
        "measured_psnr_db": "the same of the encode and its frozen frames",
        "startup_s": "until the first GOP is shown",
        "longest_pause_s": "longest pause",
        "download_mbps": "downloaded",
    },
    "A real player": {
        "play_stalled_share": "share of the time stalled",
        "play_mbps": "bit rate played",
        "play_declared_mbps": "the same by the playlist",
        "play_stalls": "stalls",
        "play_startup_s": "until it plays",
        "play_switches": "changes of the bit rate",
        "play_dropped_share": "frames not drawn in time",
    },
    "Tiles": {
        "viewport_psnr_db": "viewport PSNR",
        "viewport_psnr_p5_db": "viewport PSNR, worst twentieth of GOPs",
        "gain_over_policy_db": "gain over tiles treated alike",
        "ideal_psnr_db": "viewport PSNR if nothing of the links were lacking",
        "ideal_gain_over_policy_db": "gain over tiles treated alike, in the same way",
        "viewport_missing_share": "share of the viewport not there in time",
        "missed_tiles_share": "share of tiles not there in time",
        "messages_dropped_share": "share of messages dropped as too late",
        "mean_level": "mean quality step, 0 is the best",
    },
    "Others, models, crowds": {
        "beside_mbps": "goodput of the competing TCP",
        "model_mbps": "sum of window / RTT",
        "model_ratio": "goodput over sum of window / RTT",
        "split_error": "error of the predicted split",
        "padhye_mbps": "TCP formula, square-root form",
        "padhye_ratio": "goodput over the TCP formula",
        "padhye_b1_ratio": "the same with b = 1",
        "padhye_full_ratio": "goodput over the formula with timeouts",
        "completed_share": "share of sessions that completed",
        "stream_jain_index": "Jain's index of streams, least of the sessions",
        "stream_jain_median": "Jain's index of streams, median of the sessions",
        "session_jain_index": "Jain's index of sessions",
        "percentiles_over_mptcp": "worst percentile over MPTCP's",
        "percentiles_over_aggligator": "worst percentile over aggligator's",
    },
}
"""Titles of the metrics, in the tables and in the order that they are shown in."""
METRICS = {metric: title for metrics in GROUPS.values() for metric, title in metrics.items()}
LOWER = re.compile(
    r".*(_ms|_stall_ratio|missing_share|lost_share|pause_share|stalled_share)|onload_over_.*"
)
HIGHER = re.compile(
    r"goodput_mbps|(sum|ideal|blackout)_ratio|aggregation_.*|play_mbps|.*psnr_db|over_mptcp"
)
UNITS = {"B": (1e-6, "MB")}
"""Units that are shown as another: factor and name."""
DARK = {"both": "dark", "a_to_b": "dark towards the server", "b_to_a": "dark towards the client"}
"""What a blackout's direction means; `a` is the client."""
SUFFIXES = {"_mbps": "Mbit/s", "_ms": "ms", "_s": "s", "_bytes": "B"}


@dataclass(frozen=True)
class Column:
    """A metric as it is shown: title, factor from the measured value, unit."""

    metric: str
    title: str
    factor: float
    unit: str

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit != "ratio" else self.title

    @property
    def better(self) -> int:
        """1 where more is better, -1 where less is, 0 where neither is."""
        return bool(HIGHER.fullmatch(self.metric)) - bool(LOWER.fullmatch(self.metric))

    @property
    def ratio_to_another(self) -> bool:
        """Whether it is a value over another scheme's, of which 1 is as good."""
        return "_over_" in self.metric

    def number(self, value: float) -> str:
        """A measured value as it is shown."""
        return number(value * self.factor, self.unit)


def column(metric: str, unit: str) -> Column:
    """How a metric is shown; one that has no title here by its name."""
    factor, shown = UNITS.get(unit, (1.0, unit))
    title = METRICS.get(metric)
    if title is None:
        title = metric
        for suffix in SUFFIXES:
            title = title.removesuffix(suffix)
        title = title.replace("_", " ")
    return Column(metric, title, factor, shown)


def number(value: float, unit: str = "") -> str:
    """A number with the digits that mean something; ratios with three decimals."""
    if unit == "ratio":
        return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.4f}"
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def plain(value: object) -> str:
    """A value of a result file for a reader: numbers short, nothing as a dash."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, "ratio" if abs(value) < 10 else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(part) for part in value)
    return str(value)


def quantity(key: str, value: object) -> str:
    """A key such as `rtt_ms` and its value as words: `rtt 8 ms`."""
    if key == "blackouts":
        return "; ".join(_blackouts(value))
    if key == "unplugged":
        spans = (f"{start:g} to {end:g} s" for start, end, _ in intervals(value))
        return f"interface down {', '.join(spans)}"
    if isinstance(value, Mapping):
        return f"{_words(key)} ({quantities(value)})"
    for suffix, unit in SUFFIXES.items():
        if key.endswith(suffix) and isinstance(value, int | float):
            return f"{_words(key.removesuffix(suffix))} {value:g} {unit}"
    shown = f"{value:g}" if isinstance(value, float) else plain(value)
    return f"{_words(key)} {shown}"


def _words(key: str) -> str:
    words = key.replace("_", " ").replace("rtt", "RTT").replace("cpu", "CPU")
    return words.replace("mtu", "MTU").replace("ack delay", "ACKs held")


def quantities(entry: Mapping[str, Any]) -> str:
    """Everything in an entry but its name; what is zero or empty is left out."""
    return ", ".join(
        quantity(key, value)
        for key, value in entry.items()
        if key not in ("name", "title") and value
    )


def _blackouts(value: object) -> Iterator[str]:
    """The intervals of each kind; of many only the first and the last."""
    found: dict[str, list[str]] = {}
    for start, end, where in intervals(value):
        found.setdefault(where, []).append(f"{start:g} to {end:g} s")
    for where, spans in found.items():
        if len(spans) > 4:
            yield f"{where} {spans[0]}, {spans[1]} … {spans[-1]} ({len(spans)} times)"
        else:
            yield f"{where} {', '.join(spans)}"


def intervals(value: object) -> Iterator[tuple[float, float, str]]:
    """Blackouts as `[start, end]` or `[start, end, direction]`: when, and what is dark in words."""
    for part in value if isinstance(value, list | tuple) else ():
        start, end, direction = (*part, "both")[:3]
        yield float(start), float(end), DARK.get(direction, f"dark {direction}")


def prose(text: str) -> str:
    """A sentence of an experiment file, in which names of commands and files stand apart."""
    return CODE.sub(r"<code>\1</code>", escape(text))
