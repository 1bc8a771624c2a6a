"""Runs an experiment: every scheme in every condition, in alternating order, on fresh links."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sumrate.lab.endpoints import Scheme, SinglePath, Unavailable
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Bins, Run, add_benchmark, add_blackouts, add_samples
from sumrate.lab.experiment.topology import (
    BUFFER_SETTINGS,
    dark_share,
    links_of,
    schemes_of,
    seconds_of,
    traced_links,
)
from sumrate.lab.lateness import is_late, worst_lateness_ms
from sumrate.lab.links import Link
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.results import Progress
from sumrate.lab.scene import Scene, scene
from sumrate.lab.stream_run import Pace, run_stream

MAX_RETRIES = 2
"""How often a run whose emulator was late is made again."""
SET_UP_S = 2.0
"""Typical time around a run for making links and starting programs."""


@dataclass(frozen=True)
class Traffic:
    """What is sent: for how long, and how fast if not as fast as it is taken."""

    seconds: float
    warmup_s: float
    pace_mbps: float | None


@dataclass(frozen=True)
class Point:
    """Where in the experiment a repetition stands; all schemes are run at each point."""

    condition: ConditionSetting
    congestion_control: str
    buffers: str
    repetition: int


@dataclass(frozen=True)
class Plan:
    """What is run: an experiment, possibly shortened."""

    experiment: Experiment
    repetitions: int
    only_conditions: tuple[str, ...] = ()
    only_schemes: tuple[str, ...] = ()

    def points(self) -> Iterator[Point]:
        """All points; repetitions outermost, so that a drift of the machine meets all alike."""
        e = self.experiment
        for repetition in range(self.repetitions):
            for buffers in e.buffers:
                for congestion_control in e.congestion_control:
                    for condition in e.conditions:
                        if not self.only_conditions or condition.name in self.only_conditions:
                            yield Point(condition, congestion_control, buffers, repetition)

    def schemes(self, point: Point) -> list[Scheme]:
        """The schemes in their order at this point: it rotates from repetition to repetition."""
        found = schemes_of(self.experiment, links_of(self.experiment, point.condition))
        if self.only_schemes:
            found = [s for s in found if s.name in self.only_schemes or isinstance(s, SinglePath)]
        if point.condition.schemes:
            found = [s for s in found if s.name in point.condition.schemes]
        start = point.repetition % len(found)
        return [*found[start:], *found[:start]]

    def seconds(self) -> float:
        """About how long everything takes."""
        return sum(
            (seconds_of(self.experiment, p.condition) + self.experiment.warmup_s + SET_UP_S)
            * len(self.schemes(p))
            for p in self.points()
        )


def run_all(plan: Plan, work: Path, progress: Progress) -> list[Run]:
    """Runs the plan; what fails or is missing becomes an entry, never silence."""
    runs: list[Run] = []
    for point in plan.points():
        at_point = []
        for scheme in plan.schemes(point):
            seconds = seconds_of(plan.experiment, point.condition) + plan.experiment.warmup_s
            progress.left_s -= seconds + SET_UP_S
            progress.show(
                f"{point.condition.title}, {point.congestion_control}, repetition "
                f"{point.repetition + 1} of {plan.repetitions}, {scheme.title}",
                seconds,
            )
            at_point.append(on_time(plan.experiment, point, scheme, work))
            if at_point[-1].detail.get("missing"):
                progress.left_s += seconds
        add_sums(at_point, links_of(plan.experiment, point.condition))
        runs += at_point
    add_ideals(plan.experiment, runs)
    progress.clear()
    return runs


def on_time(experiment: Experiment, point: Point, scheme: Scheme, work: Path) -> Run:
    """One run; it is made again while the emulator was late."""
    late: list[float | None] = []
    run = measure(experiment, point, scheme, work)
    while run.void and len(late) < MAX_RETRIES:
        late.append(run.detail.get("worst_lateness_ms"))
        run = measure(experiment, point, scheme, work)
    if late:
        run.detail["void_before_ms"] = late
    return run


def measure(experiment: Experiment, point: Point, scheme: Scheme, work: Path) -> Run:
    """One scheme once, on fresh links."""
    seed = experiment.seed + point.repetition
    run = Run(
        scheme=scheme.name,
        condition=point.condition.name,
        congestion_control=point.congestion_control,
        buffers=point.buffers,
        repetition=point.repetition,
        seed=seed,
        detail={"title": scheme.title},
    )
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        scheme.check()
        with ExitStack() as stack:
            built = stack.enter_context(
                scene(
                    traced_links(experiment, point.condition, seed, work / "traces"),
                    seed=seed,
                    folder=folder,
                    congestion_control=point.congestion_control,
                    settings=BUFFER_SETTINGS[point.buffers],
                )
            )
            run.detail["settings"] = built.settings()
            seconds = seconds_of(experiment, point.condition)
            traffic = Traffic(seconds, experiment.warmup_s, experiment.pace_mbps)
            METHODS[experiment.method](run, scheme, built, traffic)
            stats = built.emulator.stats()
        run.detail |= {"worst_lateness_ms": worst_lateness_ms(stats), "emulator": stats}
        run.void = is_late(stats)
    except Unavailable as reason:
        run.detail["missing"] = str(reason)
    except (ProcessFailedError, RuntimeError, OSError) as error:
        run.detail["error"] = str(error)
    add_samples(run)
    return run


def benchmark(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """The scheme's own traffic generator; schedules start with it."""
    if scheduled(built.links):
        built.emulator.trigger()
    result = scheme.bench(built, traffic.seconds, traffic.warmup_s)
    run.add("goodput_mbps", result.goodput_mbps, "Mbit/s")
    details = {**result.details, "seconds": traffic.seconds}
    add_benchmark(run, details)
    kept = ("intervals", "series_mbps")
    run.detail |= {
        "command": result.command,
        "said": {key: value for key, value in details.items() if key not in kept},
    }


def stream(run: Run, scheme: Scheme, built: Scene, traffic: Traffic) -> None:
    """The same sender and receiver through every scheme; schedules start at the first byte."""
    with scheme.stream(built) as reach:
        result = run_stream(
            built,
            reach,
            seconds=traffic.seconds,
            warmup_s=traffic.warmup_s,
            pace=Pace(traffic.pace_mbps) if traffic.pace_mbps else None,
            on_first_byte=built.emulator.trigger if scheduled(built.links) else lambda: None,
        )
    said = result.document
    delay = said.get("delay") or {}
    for name in ("p50", "p99", "p99_excess", "max"):
        run.add(f"delivery_delay_{name}_ms", delay.get(f"{name}_ms"), "ms")
    bins = Bins.of_totals(said["bins"]["step_s"], said["bins"]["bytes"])
    run.add("goodput_mbps", result.goodput_mbps, "Mbit/s")
    run.add("longest_stall_ms", said["longest_stall_ms"], "ms")
    run.add("cpu_s_per_gb", result.cpu_s_per_gb, "s/GB")
    run.series = bins.series()
    dark = {b for link in built.links for b in link.blackouts if b.direction == "both"}
    add_blackouts(run, bins, sorted(dark, key=lambda b: b.start_s))
    run.detail |= {
        "command": result.commands[-1],
        "other_commands": result.commands[:-1],
        "cpu_seconds": result.cpu_seconds,
    }


def scheduled(links: Sequence[Link]) -> bool:
    """Whether something happens to the links while they run."""
    return any(link.blackouts or link.down.trace for link in links)


METHODS = {"bench": benchmark, "stream": stream}


def add_sums(runs: Sequence[Run], links: Sequence[Link]) -> None:
    """Divides by the sum of the links alone, in the same repetition, seed and condition."""
    alone = {run.scheme: run for run in runs if run.scheme in {link.name for link in links}}
    rates = [alone[link.name].value("goodput_mbps") for link in links if link.name in alone]
    if len(rates) != len(links) or any(rate is None for rate in rates):
        return
    total = sum(rate for rate in rates if rate is not None)
    late = any(run.void for run in alone.values())
    for run in runs:
        goodput = run.value("goodput_mbps")
        if run.scheme not in alone and goodput is not None and total > 0:
            run.add("sum_ratio", goodput / total, "ratio")
            run.void = run.void or late


def add_ideals(experiment: Experiment, runs: Sequence[Run]) -> None:
    """Where links go dark: goodput over what the links carry alone in the baseline condition."""
    if not experiment.baseline:
        return
    conditions = {c.name: c for c in experiment.conditions}
    rates = {
        (r.scheme, r.congestion_control, r.buffers, r.repetition): r.value("goodput_mbps")
        for r in runs
        if r.condition == experiment.baseline and not r.void
    }
    for run in runs:
        condition = conditions[run.condition]
        seconds = seconds_of(experiment, condition)
        key = (run.congestion_control, run.buffers, run.repetition)
        ideal = healthy = 0.0
        links = links_of(experiment, condition)
        if run.scheme in {link.name for link in links}:
            continue
        known = [rates.get((link.name, *key)) for link in links]
        for link, rate in zip(links, known, strict=True):
            dark = dark_share(link, seconds)
            ideal += (rate or 0.0) * (1 - dark)
            healthy += 0.0 if dark else (rate or 0.0)
        if None in known or ideal <= 0:
            continue
        goodput = run.value("goodput_mbps")
        run.add("ideal_ratio", goodput / ideal if goodput is not None else None, "ratio")
        if healthy > 0 and healthy < ideal:
            for value in [m.value for m in run.metrics if m.name == "blackout_goodput_mbps"]:
                run.add("blackout_ratio", value / healthy, "ratio")
            worst = run.value("sample_p5_mbps")
            run.add("p5_ratio", worst / healthy if worst is not None else None, "ratio")
