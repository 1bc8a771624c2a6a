"""The ways to send: each scheme's own generator, one stream through every scheme, many at once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from sumrate.lab.endpoints import (
    KernelMptcp,
    Scheme,
    SinglePath,
    Sumrate,
    Unavailable,
)
from sumrate.lab.experiment.by_method import (
    BenchExperiment,
    CrowdCondition,
    StreamCondition,
    StreamExperiment,
    expect,
)
from sumrate.lab.experiment.calls import call
from sumrate.lab.experiment.captured import (
    add_round_trips,
    add_subflows,
    captured,
    connections_by_link,
)
from sumrate.lab.experiment.forward import add_forward
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.player import play
from sumrate.lab.experiment.record import Bins, Run, add_benchmark, add_blackouts, add_phases
from sumrate.lab.experiment.tcp_model import add_tcp_model, sampled_tcp
from sumrate.lab.experiment.tiles import play_tiles
from sumrate.lab.experiment.timetable import PhaseCounters, Timetable, plugging
from sumrate.lab.experiment.topology import seconds_of, warmup_of
from sumrate.lab.experiment.video import play_video
from sumrate.lab.links import Link
from sumrate.lab.results import rounded
from sumrate.lab.scene import Scene
from sumrate.lab.stream_run import Competitor, Pace, beside, run_stream
from sumrate.traces.events import read_event_log

BESIDE_PORT = 5300
"""Port of the first TCP that sends beside a scheme."""


@dataclass(frozen=True)
class Traffic:
    """What is sent in a condition of an experiment, and what happens meanwhile."""

    experiment: Experiment
    condition: ConditionSetting

    @property
    def seconds(self) -> float:
        """What counts of a run."""
        return seconds_of(self.experiment, self.condition)

    @property
    def warmup_s(self) -> float:
        """What is sent before that."""
        return warmup_of(self.experiment, self.condition)

    @property
    def unplugged(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """When the interface of which link is down."""
        return {n: c.unplugged for n, c in self.condition.links.items() if c.unplugged}


def benchmark(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """The scheme's own traffic generator; schedules start with it."""
    experiment = expect(traffic.experiment, BenchExperiment)
    with ExitStack() as stack:
        others = stack.enter_context(competitors(built, traffic))
        tcp = stack.enter_context(sampled_tcp(built)) if experiment.sample_tcp else None
        capture = stack.enter_context(captured(built)) if experiment.capture else None
        if scheduled(built.links):
            built.emulator.trigger()
        result = scheme.bench(built, traffic.seconds, traffic.warmup_s)
        ended = time.monotonic()
    run.add("goodput_mbps", result.goodput_mbps, "Mbit/s")
    details = {**result.details, "seconds": traffic.seconds}
    add_benchmark(run, details)
    rates = path_rates(details)
    if isinstance(scheme, SinglePath):
        rates = {scheme.link.name: result.goodput_mbps}
    if capture is not None:
        rates = add_subflows(run, built.links, capture, **counted(traffic))
        check_captured(capture, scheme, built, traffic)
    for name, rate in rates.items():
        run.add(f"path_{name}_mbps", rate, "Mbit/s")
        if len(rates) > 1 and (total := sum(rates.values())) > 0:
            run.add(f"path_{name}_share", rate / total, "ratio")
    for name, rate in sent_rates(details, rates).items():
        run.add(f"path_{name}_sent_mbps", rate, "Mbit/s")
    for name, size in details.get("windows", {}).items():
        run.add(name, size, "B")
    add_beside(run, others, counted_until(ended, details, traffic), traffic)
    if tcp is not None:
        add_tcp_model(run, built.links, tcp, rates)
        if capture is not None:
            add_round_trips(run, built.links, tcp)
    kept = ("intervals", "series_mbps")
    run.detail |= {
        "command": result.command,
        "said": {key: value for key, value in details.items() if key not in kept},
    }


def counted(traffic: Traffic) -> dict[str, Any]:
    """Which time of a capture counts, and which senders do not: TCPs beside."""
    beside = range(BESIDE_PORT, BESIDE_PORT + len(traffic.condition.beside))
    return {"warmup_s": traffic.warmup_s, "seconds": traffic.seconds, "without": beside}


def used_by_mptcp(scheme: Scheme, built: Scene, traffic: Traffic) -> list[Link]:
    """The links that kernel MPTCP has a subflow over throughout; none with another scheme.

    One to which something happens, or to its wire, is none: it may be dark for as long as counts.
    """
    if not isinstance(scheme, KernelMptcp):
        return []
    backup = scheme.backup_link(built)
    spared = {*traffic.unplugged, *([backup.name] if backup else [])}
    spared |= {link.name for link in built.links if link.is_scheduled}
    return [link for link in built.links if not spared & {link.name, link.wire}]


def check_captured(capture: Path, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """Refuses a run of kernel MPTCP that has fewer subflows than links; see `check_subflows`."""
    if used := used_by_mptcp(scheme, built, traffic):
        check_subflows(connections_by_link(built.links, capture, **counted(traffic)), used)


class MissingSubflowError(RuntimeError):
    """Kernel MPTCP had fewer subflows than links; the message names those without."""


def check_subflows(connections: Mapping[str, int], links: Sequence[Link]) -> None:
    """Refuses a run of kernel MPTCP in which no connection brought data over one of the links.

    A congestion control that moves load off a path leaves it a segment or two per round trip. One
    whose first packets are lost in a full queue is reset by Linux when the next ones come, and no
    other is made in its place.

    Raises MissingSubflowError: no data came over a link.
    """
    silent = [link.name for link in links if not connections.get(link.name)]
    if silent:
        raise MissingSubflowError(
            f"kernel MPTCP sent nothing over {', '.join(silent)}: the subflow was never made, or "
            "reset at once; see `ip mptcp endpoint` and `ss -M` in the namespaces of such a run"
        )


def path_rates(details: Mapping[str, Any]) -> dict[str, float]:
    """Goodput by path, where the scheme tells it."""
    if "path_mbps" in details:
        return dict(details["path_mbps"])
    return {path["name"]: path["goodput_mbps"] for path in details.get("paths", ())}


def sent_rates(details: Mapping[str, Any], rates: Mapping[str, float]) -> dict[str, float]:
    """Goodput by path with the copies that were sent over it, which take their part of a link too.

    Schemes that make none send what arrives.
    """
    seconds = float(details.get("duration_s") or 0.0)
    copies = {
        path["name"]: path.get("redundant_bytes", 0) * 8e-6 / seconds if seconds else 0.0
        for path in details.get("paths", ())
    }
    return {name: rate + copies.get(name, 0.0) for name, rate in rates.items()}


def stream(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """The same sender and receiver through every scheme; schedules start at the first byte."""
    experiment = expect(traffic.experiment, StreamExperiment)
    condition = expect(traffic.condition, StreamCondition)
    mbps = experiment.pace_mbps
    with ExitStack() as stack:
        reach = stack.enter_context(scheme.stream(built))
        others = stack.enter_context(competitors(built, traffic))
        plugs = stack.enter_context(plugging(built, scheme, traffic.unplugged))
        phases = condition.phases if experiment.carried else ()
        counters = stack.enter_context(PhaseCounters(built.emulator.stats, phases))
        result = run_stream(
            built,
            reach,
            seconds=traffic.seconds,
            warmup_s=traffic.warmup_s,
            pace=Pace(mbps, experiment.pace_block_bytes) if mbps else None,
            on_first_byte=lambda: begin(built, plugs, counters),
        )
        ended = time.monotonic()
        for name, (value, unit) in reach.counters().items():
            run.add(name, value, unit)
    said = result.document
    delay = said.get("delay") or {}
    for name in ("p50", "p99", "p99_excess", "max"):
        run.add(f"delivery_delay_{name}_ms", delay.get(f"{name}_ms"), "ms")
    bins = Bins.of_totals(said["bins"]["step_s"], said["bins"]["bytes"])
    run.add("goodput_mbps", result.goodput_mbps, "Mbit/s")
    run.add("longest_stall_ms", said["longest_stall_ms"], "ms")
    run.add("cpu_s_per_gb", result.cpu_s_per_gb, "s/GB")
    run.series = bins.series()
    add_phases(run, bins, condition.phases)
    counters.add(run)
    dark = {link.name: [b for b in link.blackouts if b.direction == "both"] for link in built.links}
    every = {blackout for blackouts in dark.values() for blackout in blackouts}
    silences = [(at, ms) for at, ms in said["silences"]]
    add_blackouts(run, bins, sorted(every, key=lambda b: b.start_s), silences)
    if sum(map(bool, dark.values())) > 1:
        for name, blackouts in dark.items():
            add_blackouts(run, bins, blackouts, silences, of=name)
    add_beside(run, others, ended, traffic)
    if reach.event_log is not None and condition.forward_wanted:
        add_forward(
            run,
            read_event_log(reach.event_log),
            condition.forward_wanted,
            first_byte_s=said["first_byte_at_s"] + time.time() - time.monotonic(),
            end_s=traffic.warmup_s + traffic.seconds,
        )
    run.detail |= {
        "command": result.commands[-1],
        "other_commands": result.commands[:-1],
        "cpu_seconds": result.cpu_seconds,
    }


def begin(built: Scene, plugs: Timetable, counters: PhaseCounters) -> None:
    """The first byte is here: all schedules start."""
    if scheduled(built.links):
        built.emulator.trigger()
    plugs.start()
    counters.start()


CROWDED = ("stream_jain", "stream_mbps", "session_mbps")
"""What a crowd says of each session: too long for the manifest."""


def crowd(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """Many sessions and streams at once, each with the same number of bytes."""
    if not isinstance(scheme, Sumrate):
        raise Unavailable("only Sumrate has sessions and streams")
    condition = expect(traffic.condition, CrowdCondition)
    result = scheme.crowd(
        built, condition.sessions, condition.streams, round(condition.megabytes * 1e6)
    )
    said = result.details
    run.add("goodput_mbps", result.goodput_mbps, "Mbit/s")
    run.add("completed_share", said["completed_share"], "ratio")
    if said["stream_jain"] and condition.streams > 1:
        run.add("stream_jain_index", min(said["stream_jain"]), "ratio")
        run.add("stream_jain_median", median(said["stream_jain"]), "ratio")
        spreads = [spread for spread in said["stream_mbps"] if spread["median"] > 0]
        least = min((s["min"] / s["median"] for s in spreads), default=0.0)
        most = max((s["max"] / s["median"] for s in spreads), default=0.0)
        run.add("stream_least_over_median", least, "ratio")
        run.add("stream_most_over_median", most, "ratio")
    if condition.sessions > 1 and said["session_mbps"]:
        run.add("session_jain_index", jain(said["session_mbps"]), "ratio")
    if condition.sessions > 1:
        run.add("transfers_at_once", said["transfers_at_once"], "sessions")
    kept = {k: v for k, v in said.items() if k not in CROWDED}
    run.detail |= {"command": result.command, "said": kept}


def jain(rates: Sequence[float]) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else 0.0


def scheduled(links: Sequence[Link]) -> bool:
    """Whether something happens to the links while they run."""
    return any(link.is_scheduled for link in links)


@contextmanager
def competitors(built: Scene, traffic: Traffic) -> Iterator[list[Competitor]]:
    """One plain TCP on each link that the condition names, sending already."""
    length = traffic.seconds + traffic.warmup_s
    links = {link.name: link for link in built.links}
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                beside(
                    built,
                    links[name],
                    BESIDE_PORT + number,
                    at_most_s=length + 30.0,
                    congestion_control=traffic.experiment.beside_congestion_control,
                )
            )
            for number, name in enumerate(traffic.condition.beside)
        ]


def counted_until(ended_s: float, details: Mapping[str, Any], traffic: Traffic) -> float:
    """When the counted time was over: some go on until what is under way has arrived."""
    tail_s = details.get("elapsed_s", 0.0) - traffic.warmup_s - traffic.seconds
    return ended_s - max(0.0, float(tail_s))


def add_beside(run: Run, others: Sequence[Competitor], ended_s: float, traffic: Traffic) -> None:
    """What the others had in the last nine tenths of the time that was counted, on average."""
    start = ended_s - 0.9 * traffic.seconds
    rates = [other.goodput_mbps(start, ended_s) for other in others]
    if rates:
        run.add("beside_mbps", sum(rates) / len(rates), "Mbit/s")
        goodput = run.value("goodput_mbps") or 0.0
        run.add("bottleneck_share", goodput / max(goodput + sum(rates), 1e-9), "ratio")
        run.detail["beside_mbps"] = [rounded(rate) for rate in rates]


class Play(Protocol):
    """Plays something over a scheme and notes what a viewer, or listener, had."""

    def __call__(
        self,
        run: Run,
        scheme: Scheme,
        built: Scene,
        experiment: Experiment,
        condition: ConditionSetting,
        *,
        on_first_byte: Callable[[], object],
    ) -> None:
        """`on_first_byte` is called with the first byte, or fragment."""


def played(play: Play) -> Callable[[Run, Scheme, Scene, Traffic], None]:
    """The method that plays; schedules start at the first byte."""

    def method(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
        start = built.emulator.trigger if scheduled(built.links) else lambda: None
        play(run, scheme, built, traffic.experiment, traffic.condition, on_first_byte=start)

    return method


METHODS: Mapping[str, Callable[[Run, Scheme, Scene, Traffic], None]] = {
    "bench": benchmark,
    "stream": stream,
    "crowd": crowd,
    "video": played(play_video),
    "tiles": played(play_tiles),
    "player": played(play),
    "calls": played(call),
}
