"""The throughput model of the thesis against the kernel: sum of window / RTT, and its split.

Equation 4.2: throughput = gamma * sum(W / RTT) over the paths; equation 4.1: a path's share of a
window is its W / RTT over that sum. W and RTT are each subflow's congestion window and smoothed RTT
as the sender's kernel has them, sampled while the benchmark runs. The same with the segments that
are really in flight instead of the window tells how much of a difference is the window that TCP
does not fill, and how much the RTT.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.experiment.record import Run
from sumrate.lab.links import Link
from sumrate.lab.process import Process
from sumrate.lab.scene import Scene

STEP_S = 0.1
SETTLE_SAMPLES = 5
"""Samples left out at the start, while windows open."""
MARK = "sample"


@contextmanager
def sampled_tcp(built: Scene) -> Iterator[Path]:
    """Notes every TCP connection of the server ten times a second, in a file."""
    path = built.folder / "ss.txt"
    script = f"while :; do echo {MARK}; ss -tniH state established; sleep {STEP_S}; done"
    argv = ["sh", "-c", script]
    with Process(argv, log=built.folder / "ss.log", host=built.server, stdout=path):
        yield path


@dataclass(frozen=True)
class WindowRate:
    """What a window would carry, in Mbit/s: all of it, and the part that is in flight."""

    window: float
    in_flight: float


def rates_of(text: str) -> dict[str, list[WindowRate]]:
    """Window / RTT of the busiest connection of each local address, sample by sample."""
    found: dict[str, list[WindowRate]] = defaultdict(list)
    for sample in text.split(f"{MARK}\n")[1:]:
        busiest: dict[str, tuple[int, WindowRate]] = {}
        address = ""
        for line in sample.splitlines():
            if line[:1].strip():
                address = line.split()[2].rpartition(":")[0].strip("[]").removeprefix("::ffff:")
                continue
            values = {key: float(value) for key, value in _NUMBERS.findall(line)}
            if not {"cwnd", "mss", "rtt", "bytes_acked"} <= values.keys() or not values["rtt"]:
                continue
            segment = values["mss"] * 8e-3 / values["rtt"]
            rate = WindowRate(values["cwnd"] * segment, values.get("unacked", 0.0) * segment)
            acked = int(values["bytes_acked"])
            if address not in busiest or acked > busiest[address][0]:
                busiest[address] = (acked, rate)
        for local, (_, rate) in busiest.items():
            found[local].append(rate)
    return found


_NUMBERS = re.compile(r"\b(cwnd|mss|rtt|bytes_acked|unacked):([\d.]+)")


def add_tcp_model(
    run: Run, links: Sequence[Link], samples: Path, measured: Mapping[str, float]
) -> None:
    """Adds what the model predicts, and how far measured rates and shares are from it."""
    rates = rates_of(samples.read_text(encoding="utf-8"))
    predicted, in_flight = {}, 0.0
    for link in links:
        steady = rates.get(link.server_ip, [])[SETTLE_SAMPLES:-1]
        if steady and link.name in measured:
            predicted[link.name] = statistics.fmean(rate.window for rate in steady)
            in_flight += statistics.fmean(rate.in_flight for rate in steady)
    total, got = sum(predicted.values()), sum(measured[name] for name in predicted)
    if len(predicted) != len(measured) or total <= 0 or got <= 0:
        return
    run.add("model_mbps", total, "Mbit/s")
    run.add("model_ratio", got / total, "ratio")
    if in_flight:
        run.add("in_flight_model_ratio", got / in_flight, "ratio")
    if len(predicted) > 1:
        errors = [
            abs(rate / total / (measured[name] / got) - 1) for name, rate in predicted.items()
        ]
        run.add("split_error", max(errors), "ratio")
    for name, rate in predicted.items():
        run.add(f"model_{name}_mbps", rate, "Mbit/s")
