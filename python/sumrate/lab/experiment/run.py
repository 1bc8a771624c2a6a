"""Runs an experiment: every scheme in every condition, in alternating order, on fresh links."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from sumrate.lab.endpoints import KernelMptcp, Scheme, SinglePath, Unavailable
from sumrate.lab.experiment.attempts import (
    FOREIGN,
    MAX_RETRIES,
    MISSING_SUBFLOW,
    Attempts,
    badness,
)
from sumrate.lab.experiment.benefit import add_benefits
from sumrate.lab.experiment.by_method import SimulationExperiment
from sumrate.lab.experiment.calls import add_message_delays, add_pooled_delays
from sumrate.lab.experiment.comparisons import add_comparisons, void_sums
from sumrate.lab.experiment.derived import (
    add_shaped,
    add_spreads,
)
from sumrate.lab.experiment.durations import add_durations, add_splits
from sumrate.lab.experiment.methods import METHODS, MissingSubflowError, Traffic
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.padhye import add_padhye
from sumrate.lab.experiment.ranks import add_ranks
from sumrate.lab.experiment.ratios import (
    add_ideals,
    add_percentiles,
    add_pooled_percentiles,
    add_start_up,
)
from sumrate.lab.experiment.record import Run, add_carried, add_samples, add_sleep, unused_link
from sumrate.lab.experiment.tiles import add_tile_gains
from sumrate.lab.experiment.together import add_together
from sumrate.lab.experiment.topology import (
    BUFFER_SETTINGS,
    full_queues_ms,
    links_of,
    links_shown,
    on_wires,
    schemes_of,
    seconds_of,
    traced_links,
    traces_shown,
    warmup_of,
    with_stream_buffer,
)
from sumrate.lab.experiment.video import add_pause_bounds
from sumrate.lab.experiment.workloads import WORKLOADS, quiet_settings
from sumrate.lab.host_pauses import Patience
from sumrate.lab.lateness import is_late, worst_lateness_ms
from sumrate.lab.machine_load import foreign_share, user_time
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.results import Progress
from sumrate.lab.scene import scene
from sumrate.qoe.daily import LEAST
from sumrate.verdict.model import is_peer

CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
FAILURES = (
    ProcessFailedError,
    SubprocessError,
    RuntimeError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
)
"""What may go wrong in one run and is no reason to lose the others: an answer that is none, too."""
SET_UP_S = 0.7
"""Typical time around a run for making links and starting programs."""


@dataclass(frozen=True)
class Point:
    """Where in the experiment a repetition stands; all schemes are run at each point."""

    condition: ConditionSetting
    congestion_control: str
    buffers: str
    repetition: int


Alike = tuple[object, ...]
"""What makes two runs of one link alone the same measurement."""


@dataclass(frozen=True)
class Plan:
    """What is run: an experiment, possibly shortened."""

    experiment: Experiment
    repetitions: int
    only_conditions: tuple[str, ...] = ()
    only_schemes: tuple[str, ...] = ()
    patience_s: float = 0.0
    """How long each run waits for a machine that does not keep time; all wait half their length."""

    def points(self) -> Iterator[Point]:
        """All points; repetitions outermost, so that a drift of the machine meets all alike."""
        e = self.experiment
        for repetition in range(self.repetitions):
            for buffers in e.buffers:
                for congestion_control in e.congestion_control:
                    for condition in e.conditions:
                        wanted = condition.congestion_control or e.congestion_control
                        chosen = not self.only_conditions or condition.name in self.only_conditions
                        made = repetition < self.repetitions_of(condition)
                        made &= buffers in (condition.buffers or e.buffers)
                        if made and chosen and congestion_control in wanted:
                            yield Point(condition, congestion_control, buffers, repetition)

    def repetitions_of(self, condition: ConditionSetting) -> int:
        """How often a condition is repeated: it may have fewer than the others."""
        return min(self.repetitions, condition.repetitions or self.repetitions)

    def schemes(self, point: Point) -> list[Scheme]:
        """The schemes in their order at this point: it rotates from repetition to repetition."""
        found = schemes_of(
            self.experiment,
            links_of(self.experiment, point.condition),
            point.congestion_control,
            point.buffers,
        )
        if self.only_schemes:
            found = [s for s in found if s.name in self.only_schemes or isinstance(s, SinglePath)]
        if point.condition.schemes:
            found = [s for s in found if s.name in point.condition.schemes]
        found = [with_stream_buffer(s, point.condition.stream_buffer_bytes) for s in found]
        start = point.repetition % len(found) if found else 0
        return [*found[start:], *found[:start]]

    def alike(self, point: Point, scheme: Scheme) -> Alike | None:
        """What a run of a link alone shares with others that need not be made again.

        A link that is the same in two conditions carries the same alone: it is measured once in
        each repetition. None for schemes over several links.
        """
        if not isinstance(scheme, SinglePath) or point.condition.beside:
            return None
        change = point.condition.links.get(scheme.link.name)
        seconds = seconds_of(self.experiment, point.condition)
        return (
            scheme.link.name,
            change,
            on_wires(self.experiment, point.condition),
            (seconds, warmup_of(self.experiment, point.condition)),
            point.condition.workload,
            point.congestion_control,
            point.buffers,
            point.repetition,
        )

    def measured(self) -> Iterator[tuple[Point, Scheme]]:
        """The runs that have to be made."""
        known: set[Alike | None] = set()
        for point in self.points():
            for scheme in self.schemes(point):
                alike = self.alike(point, scheme)
                if alike is None or alike not in known:
                    known.add(alike)
                    yield point, scheme

    def seconds(self) -> float:
        """About how long everything takes."""
        if isinstance(self.experiment, SimulationExperiment):
            return self.experiment.seconds * self.repetitions
        return sum(self.run_seconds(point) for point, _ in self.measured())

    def run_seconds(self, point: Point) -> float:
        """About how long one run takes."""
        e = self.experiment
        return seconds_of(e, point.condition) + warmup_of(e, point.condition) + SET_UP_S


Made = tuple[Point, list[tuple[Alike | None, Run]]]
"""The runs of a point, each with what makes it the same as others."""


def run_all(
    plan: Plan,
    work: Path,
    progress: Progress,
    missing: Mapping[str, str] | None = None,
    keep: Callable[[list[Run]], object] | None = None,
) -> list[Run]:
    """Runs the plan; what fails or is missing becomes an entry, never silence.

    Args:
        plan: what is run.
        work: where an experiment keeps what its programs need.
        progress: is told.
        missing: congestion controls that cannot be had, each with the reason.
        keep: is given all runs so far after each repetition but the last.

    """
    made: list[Made] = []
    known: dict[Alike, Run] = {}
    broken: set[tuple[str, str]] = set()
    late: set[tuple[str, str]] = set()
    patience = Patience(plan.patience_s, plan.seconds() / 2)
    for point in plan.points():
        if keep is not None and made and made[-1][0].repetition < point.repetition:
            # What runs are compared with is added to them: the next time it is not to be there.
            keep(compared(plan.experiment, deepcopy(made), known))
        at_point: list[tuple[Alike | None, Run]] = []
        for scheme in plan.schemes(point):
            alike = plan.alike(point, scheme)
            if alike is not None and alike in known:
                at_point.append((alike, again(known[alike], point)))
                continue
            number = f"{point.repetition + 1} of {plan.repetitions_of(point.condition)}"
            progress.show(
                f"{plan.experiment.name}, {scheme.title}, {number}, {point.condition.title}, "
                f"{point.congestion_control}"
            )
            if reason := (missing or {}).get(point.congestion_control):
                run = blank(plan.experiment, point, scheme)
                run.detail["missing"] = reason
            else:
                place = (scheme.name, point.condition.name)
                run = on_time(
                    plan,
                    point,
                    scheme,
                    work,
                    progress,
                    patience=patience,
                    failed_retries=0 if place in broken else MAX_RETRIES,
                    late_retries=0 if place in late else MAX_RETRIES,
                )
                if "error" in run.detail:
                    broken.add(place)
                elif run.void and is_peer(scheme.name):
                    late.add(place)
            progress.left_s -= plan.run_seconds(point)
            at_point.append((alike, run))
            if alike is not None and counts(run):
                known[alike] = run
        made.append((point, at_point))
    progress.clear()
    return compared(plan.experiment, made, known)


def compared(experiment: Experiment, made: list[Made], known: dict[Alike, Run]) -> list[Run]:
    """All runs, divided by what they are divided by.

    A link alone that was void at a point counts there too if it was on time in another condition.
    """
    points = [
        (
            point,
            [
                again(known[alike], point)
                if alike is not None and alike in known and not counts(run)
                else run
                for alike, run in found
            ],
        )
        for point, found in made
    ]
    runs = [run for _, found in points for run in found]
    void_sums(experiment, runs)
    add_comparisons(experiment, runs)
    for point, at_point in points:
        links = links_of(experiment, point.condition)
        add_ranks(experiment, at_point)
        if experiment.method in WORKLOADS:
            add_durations(at_point, links)
            add_together(experiment, point.condition, at_point, links)
        if experiment.method == "stream":
            add_percentiles(at_point, links)
            add_start_up(at_point, links)
        if experiment.method == "video":
            add_pause_bounds(experiment, point.condition, at_point, links)
    if experiment.method == "stream":
        add_pooled_percentiles(experiment, runs)
        add_spreads(runs)
    add_ideals(experiment, runs)
    add_shaped(links_shown(experiment), runs)
    add_benefits(experiment, runs)
    add_splits(experiment, runs)
    if experiment.method == "tiles":
        add_tile_gains(experiment, runs)
    if experiment.method == "calls":
        add_message_delays(experiment, runs)
        add_pooled_delays(experiment, runs)
    return runs


def counts(run: Run) -> bool:
    """Whether a run may stand for others."""
    return not run.void and not run.detail.keys() & {"error", "missing"}


def again(run: Run, point: Point) -> Run:
    """A run that was made in another condition in which the link was the same."""
    return replace(
        run,
        condition=point.condition.name,
        metrics=list(run.metrics),
        detail={**run.detail, "measured_in": run.condition},
    )


def on_time(
    plan: Plan,
    point: Point,
    scheme: Scheme,
    work: Path,
    progress: Progress,
    *,
    patience: Patience | None = None,
    failed_retries: int = MAX_RETRIES,
    late_retries: int = MAX_RETRIES,
) -> Run:
    """One run; it is made again if the emulator was late, it failed or was disturbed; that is said.

    A browser that crashes once in a hundred pages would cost an hour of other runs else. What never
    works must not take three times its time in every repetition: it gets no `failed_retries` then,
    and a peer beside which the emulator is always late no `late_retries`.
    """
    attempts = Attempts(failed_retries, late_retries)
    name = plan.experiment.name
    waiting = f"{name}, waiting until programs of this machine are on time"

    def attempt() -> Run:
        if patience is not None:
            attempts.waited_s += patience.wait(lambda: progress.show(waiting))
        return measure(plan.experiment, point, scheme, work)

    best = latest = attempt()
    while why := attempts.again(latest):
        progress.show(
            f"{name}, {scheme.title}, {point.repetition + 1}, again "
            f"({attempts.number}), {point.condition.title}: {why}",
            plan.run_seconds(point),
        )
        latest = attempt()
        best = min(latest, best, key=badness)
    best.detail |= attempts.shown()
    return best


APPLICATIONS = (*WORKLOADS, "video", "tiles", "player", "calls")
"""Methods in which programs other than our own have to be told to use MPTCP."""


def check_carried(
    experiment: Experiment, scheme: Scheme, run: Run, stats: Mapping[str, Any]
) -> None:
    """Refuses a run of kernel MPTCP in which a program, or all, had only one link carry anything.

    Raises RuntimeError: a program used plain TCP, or the second subflow was never made.
    """
    if experiment.method not in APPLICATIONS or not isinstance(scheme, KernelMptcp):
        return
    least = [metric for metric in run.metrics if metric.name.endswith(LEAST)]
    alone = [metric.name.removesuffix(LEAST) for metric in least if not metric.value]
    if idle := unused_link(stats) or ", ".join(alone):
        raise RuntimeError(
            f"{scheme.title} left a link unused ({idle}): a program used plain TCP, or no second "
            "subflow was made; see the programs' logs and whether mptcpize works for them"
        )


def check_congestion_control(name: str, known: Path = CONGESTION_CONTROLS) -> None:
    """Refuses a congestion control that this kernel does not have now.

    Raises Unavailable: it is neither built in nor loaded.
    """
    available = known.read_text(encoding="ascii").split()
    if name not in available:
        has = ", ".join(available)
        raise Unavailable(f"the congestion control {name} is not loaded; this kernel has {has}")


def blank(experiment: Experiment, point: Point, scheme: Scheme) -> Run:
    """A run in which nothing was measured yet."""
    return Run(
        scheme=scheme.name,
        condition=point.condition.name,
        congestion_control=point.congestion_control,
        buffers=point.buffers,
        repetition=point.repetition,
        seed=experiment.seed + point.repetition,
        detail={"title": scheme.title},
    )


def measure(experiment: Experiment, point: Point, scheme: Scheme, work: Path) -> Run:
    """One scheme once, on fresh links."""
    run = blank(experiment, point, scheme)
    seed = run.seed
    quiet = quiet_settings() if experiment.method in WORKLOADS else {}
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        scheme.check()
        check_congestion_control(point.congestion_control)
        links = traced_links(experiment, point.condition, seed, work / "traces")
        if traces := traces_shown(links, seconds_of(experiment, point.condition)):
            run.detail["traces"] = traces
            run.detail["full_queues_ms"] = full_queues_ms(
                links, seconds_of(experiment, point.condition)
            )
        with scene(
            links,
            seed=seed,
            folder=folder,
            congestion_control=point.congestion_control,
            settings=BUFFER_SETTINGS[point.buffers] | quiet,
            wires=on_wires(experiment, point.condition),
        ) as built:
            run.detail["settings"] = built.settings()
            traffic = Traffic(experiment, point.condition)
            before = user_time()
            {**METHODS, **WORKLOADS}[experiment.method](run, scheme, built, traffic)
            run.detail[FOREIGN] = foreign_share(before, user_time())
            stats = built.emulator.stats()
        run.detail |= {"worst_lateness_ms": worst_lateness_ms(stats), "emulator": stats}
        run.void = is_late(stats)
        if experiment.carried:
            add_carried(run, stats)
        add_sleep(run, stats, [link.name for link in links if link.sleep])
        check_carried(experiment, scheme, run, stats)
        if experiment.padhye and isinstance(scheme, SinglePath):
            add_padhye(run, scheme.link)
    except Unavailable as reason:
        run.detail["missing"] = str(reason)
    except FAILURES as error:
        run.detail["error"] = str(error) or type(error).__name__
        if isinstance(error, MissingSubflowError):
            run.detail[MISSING_SUBFLOW] = True
        # What was measured before it failed may not count, nor divide what others measured.
        run.metrics, run.series, run.subflows = [], [], {}
    add_samples(run)
    return run
