"""What runs are divided by: ideals, sums, peers; what happens beside them and meanwhile."""

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec import structs

from sumrate.lab.endpoints import KernelMptcp, KernelMptcpBackup, Scheme, Sumrate
from sumrate.lab.endpoints.sumrate import at_once
from sumrate.lab.experiment import methods
from sumrate.lab.experiment import run as running
from sumrate.lab.experiment.attempts import MAX_RETRIES, MISSING_SUBFLOW, SUBFLOW_RETRIES
from sumrate.lab.experiment.comparisons import add_comparisons, void_sums
from sumrate.lab.experiment.execute import _complaints
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.methods import (
    MissingSubflowError,
    Traffic,
    add_beside,
    check_subflows,
    counted_until,
    sent_rates,
    used_by_mptcp,
)
from sumrate.lab.experiment.model import Change, Experiment
from sumrate.lab.experiment.ratios import (
    add_ideals,
)
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.run import Plan, Point, on_time
from sumrate.lab.experiment.timetable import plugging
from sumrate.lab.experiment.topology import dark_share, links_of, traced_links, traces_shown
from sumrate.lab.links import Blackout, Impairment, Link
from sumrate.lab.process import ProcessFailedError
from sumrate.lab.results import Progress
from sumrate.lab.scene import Scene
from sumrate.lab.stream_run import Competitor, StreamResult

RADIO = Impairment(900.0, 1.0)
LINK = Link("wigig", 2, RADIO, RADIO)


def run_of(scheme: str, condition: str, goodput: float, repetition: int = 0) -> Run:
    run = Run(scheme, condition, "cubic", "default", repetition, 1 + repetition)
    run.add("goodput_mbps", goodput, "Mbit/s")
    return run


def with_series(run: Run, *rates: float) -> Run:
    """Rates of 100 ms each; half a second of nothing before and a little more behind them."""
    run.series = [(0.05 + i / 10, rate) for i, rate in enumerate([0.0] * 5 + [*rates] + [0.0] * 6)]
    return run


@pytest.mark.parametrize(
    ("blackouts", "unplugged", "share"),
    [
        ([(1.0, 2.0)], [], 0.25),
        ([(0.0, 60.0)], [], 1.0),
        ([], [(3.0, 3.5), (4.5, 9.0)], 0.25),
        ([(1.0, 2.0)], [(1.5, 3.0)], 0.5),
        ([], [], 0.0),
    ],
)
def test_the_dark_share_is_of_what_counts(
    blackouts: list[tuple[float, float]], unplugged: list[tuple[float, float]], share: float
) -> None:
    """Blackouts and a missing interface alike, what overlaps once; from 1 to 5 s."""
    dark = tuple(Blackout(*interval) for interval in blackouts)
    one_way = (Blackout(1.0, 5.0, "a_to_b"),)
    link = replace(LINK, blackouts=(*dark, *one_way))
    assert dark_share(link, tuple(unplugged), 1.0, 5.0) == pytest.approx(share)


def flapping() -> tuple[Experiment, list[Run]]:
    """WiGig is dark from 0.7 to 1 s; what counts is from 0.5 to 1.5 s."""
    experiment = load("flapping")
    alone = [
        with_series(run_of(name, "normal", 1.0), *[rate] * 10)
        for name, rate in (("wifi", 300.0), ("wigig", 900.0))
    ]
    ours = run_of("sumrate", "wigig-flaps", 1.0)
    with_series(ours, *[1200.0] * 2, *[297.0] * 3, *[1200.0] * 5)
    ours.add("sample_p5_mbps", 297.0, "Mbit/s")
    ours.add("blackout_goodput_mbps", 294.0, "Mbit/s")
    return experiment, [*alone, ours]


def test_the_ideal_is_what_the_links_carry_while_they_are_there() -> None:
    """Both of steady samples: slow start weighs in neither."""
    experiment, runs = flapping()
    add_ideals(experiment, runs)
    mean = (7 * 1200.0 + 3 * 297.0) / 10
    assert runs[2].value("ideal_ratio") == pytest.approx(mean / (300.0 + 0.7 * 900.0))
    assert runs[2].value("p5_ratio") == pytest.approx(0.99)
    assert runs[2].value("blackout_ratio") == pytest.approx(0.98)
    assert runs[0].value("ideal_ratio") is None


def test_an_interface_that_is_down_carries_nothing() -> None:
    experiment = load("lap")
    alone = [run_of("wifi", "normal", 190.0), run_of("wigig", "normal", 950.0)]
    ours = run_of("sumrate", "lap", 900.0)
    add_ideals(experiment, [*alone, ours])
    assert ours.value("ideal_ratio") == pytest.approx(900.0 / ((190.0 + 950.0) * 7.5 / 9.5))


def test_a_phase_is_compared_with_the_sum_of_the_links() -> None:
    alone = [run_of("wifi", "normal", 600.0), run_of("wigig", "normal", 1400.0)]
    ours = run_of("sumrate", "wigig-uplink-cut", 1500.0)
    ours.add("phase_1_mbps", 1000.0, "Mbit/s")
    add_ideals(load("uplink-cut"), [*alone, ours])
    assert ours.value("phase_1_sum_ratio") == pytest.approx(0.5)
    assert ours.value("ideal_ratio") == pytest.approx(0.75), "one direction is not dark"


def links() -> tuple[Link, ...]:
    experiment = load("lap")
    return links_of(experiment, experiment.conditions[0])


def test_a_sum_with_a_void_link_alone_is_void() -> None:
    runs = [run_of("wifi", "normal", 100.0), run_of("wigig", "normal", 300.0)]
    runs += [run_of("sumrate", "normal", 380.0), run_of("mptcp", "normal", 200.0)]
    runs[1].void = True
    void_sums(load("lap"), runs)
    add_comparisons(load("lap"), runs)
    assert [run.void for run in runs] == [False, True, True, True]
    assert runs[2].value("sum_ratio") == pytest.approx(0.95)
    assert runs[2].value("best_link_ratio") == pytest.approx(0.75)


def test_goodput_over_kernel_mptcps() -> None:
    runs = [run_of("wifi", "normal", 100.0), run_of("mptcp", "normal", 200.0)]
    runs.append(run_of("sumrate", "normal", 380.0))
    add_comparisons(load("lap"), runs)
    assert [run.value("over_mptcp") for run in runs] == [None, None, pytest.approx(1.9)]
    runs = [run_of("mptcp", "normal", 200.0), run_of("sumrate", "normal", 380.0)]
    runs[0].void = True
    add_comparisons(load("lap"), runs)
    assert runs[1].value("over_mptcp") is None


def test_what_holes_add_to_the_latest_block() -> None:
    runs = []
    for scheme, clean, holes in (("sumrate", 110.0, 140.0), ("mptcp", 120.0, 260.0)):
        for condition, latest in (("clean", clean), ("holes", holes)):
            runs.append(run_of(scheme, condition, 14.0))
            runs[-1].add("delivery_delay_max_ms", latest, "ms")
    add_comparisons(load("head-of-line"), runs)
    added = [run.value("delivery_delay_max_added_ms") for run in runs]
    assert added == [None, pytest.approx(30.0), None, pytest.approx(140.0)]
    sooner = [run_of("sumrate", condition, 14.0) for condition in ("clean", "holes")]
    for run, latest in zip(sooner, (110.0, 90.0), strict=True):
        run.add("delivery_delay_max_ms", latest, "ms")
    add_comparisons(load("head-of-line"), sooner)
    assert sooner[1].value("delivery_delay_max_added_ms") == 0.0, "a repetition that counts too"


def test_copies_take_their_part_of_a_link() -> None:
    said = {"duration_s": 2.0, "paths": [{"name": "wigig", "redundant_bytes": 250_000}]}
    rates = sent_rates(said, {"wifi": 5.0, "wigig": 10.0})
    assert rates == {"wifi": 5.0, "wigig": pytest.approx(11.0)}
    assert sent_rates({}, {"wifi": 5.0}) == {"wifi": 5.0}


def test_stalls_of_blackouts_are_the_gaps_that_the_sink_saw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From what a sink writes to the metrics of a run: WiGig is dark from 1.5 to 4.5 s."""
    experiment = load("blackout")
    silent = {
        name: Change(blackouts=(interval,))
        for name, interval in (("wigig", (1.5, 4.5)), ("wifi", (8.5, 11.5)))
    }
    (both,) = [c for c in experiment.conditions if c.name == "often-dark"]
    dark = structs.replace(both, seconds=12.5, links=silent)
    made = links_of(experiment, dark)
    totals = [1000 * (n + 1) for n in range(2500)]
    document = {
        "delay": None,
        "longest_stall_ms": 47.3,
        "silences": [[0.2, 80.0], [1.501, 33.7], [4.6, 47.3], [8.49, 21.25]],
        "bins": {"step_s": 0.005, "bytes": totals},
        "goodput_mbps": 1.6,
        "total_bytes": totals[-1],
    }
    result = StreamResult(document, ["up", "sink"], {"sink": 0.1})
    monkeypatch.setattr(methods, "run_stream", lambda *_, **__: result)
    reach = SimpleNamespace(counters=lambda: {"redundant_share": (0.001, "ratio")}, event_log=None)
    scheme = cast(Scheme, SimpleNamespace(stream=lambda _: nullcontext(reach)))
    run = Run("sumrate", "often-dark", "cubic", "default", 0, 1)
    emulator = SimpleNamespace(stats=dict)
    built = cast(Scene, SimpleNamespace(links=made, emulator=emulator))
    methods.stream(run, scheme, built, Traffic(experiment, dark))
    assert run.value("blackout_stall_wigig_ms") == 47.3, "it stalls as the radio returns"
    assert run.value("blackout_stall_wifi_ms") == 21.25
    assert [m.value for m in run.metrics if m.name == "blackout_stall_ms"] == [47.3, 21.25]
    assert run.value("redundant_share") == 0.001


def test_how_many_transfers_share_a_moment() -> None:
    assert at_once([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0), (1.5, 1.6)]) == 3
    assert at_once([(0.0, 1.0), (1.0, 2.0)]) == 1
    assert at_once([]) == 0


def test_the_tcps_beside_are_counted_in_the_last_nine_tenths() -> None:
    asked: list[tuple[float, float]] = []

    def other(rate: float) -> Competitor:
        def goodput_mbps(start_s: float, end_s: float) -> float:
            asked.append((start_s, end_s))
            return rate

        return cast(Competitor, SimpleNamespace(goodput_mbps=goodput_mbps))

    experiment = load("redial-fairness")
    traffic = Traffic(experiment, experiment.conditions[0])
    run = run_of("sumrate", "loss", 30.0)
    add_beside(run, [other(20.0), other(10.0)], 100.0, traffic)
    assert [start for start, _ in asked] == pytest.approx([100.0 - 0.9 * 15.0] * 2)
    assert {end for _, end in asked} == {100.0}
    assert run.value("beside_mbps") == pytest.approx(15.0)
    assert run.value("bottleneck_share") == pytest.approx(0.5)
    alone = run_of("sumrate", "loss", 30.0)
    add_beside(alone, [], 100.0, traffic)
    assert alone.value("beside_mbps") is None


def test_what_a_scheme_delivers_after_the_counted_time_is_no_time_of_the_tcps_beside() -> None:
    experiment = load("redial-fairness")
    traffic = Traffic(experiment, experiment.conditions[0])
    counted = traffic.warmup_s + traffic.seconds
    assert counted_until(100.0, {"elapsed_s": counted + 3.0}, traffic) == pytest.approx(97.0)
    assert counted_until(100.0, {"elapsed_s": counted - 1.0}, traffic) == 100.0
    assert counted_until(100.0, {}, traffic) == 100.0


def test_interfaces_go_down_and_up_at_their_times() -> None:
    said: list[tuple[str, str]] = []
    built = SimpleNamespace(
        links=links(),
        plug=lambda link: said.append(("up", link.name)),
        unplug=lambda link: said.append(("down", link.name)),
    )
    times = {"wigig": [(0.02, 0.04)], "wifi": [(0.01, 0.03)]}
    scheme = cast(Scheme, SimpleNamespace())
    with plugging(cast(Scene, built), scheme, times) as plugs:
        time.sleep(0.05)
        assert not said, "nothing happens before the first byte"
        plugs.start()
        deadline = time.monotonic() + 30
        while len(said) < 4 and time.monotonic() < deadline:
            time.sleep(0.005)
    assert said == [("down", "wifi"), ("down", "wigig"), ("up", "wifi"), ("up", "wigig")]


def test_an_interface_that_cannot_be_changed_fails_the_run() -> None:
    def broken(_link: Link) -> None:
        raise ProcessFailedError("no such interface")

    built = cast(Scene, SimpleNamespace(links=links(), plug=broken, unplug=broken))
    plugs = plugging(built, cast(Scheme, SimpleNamespace()), {"wifi": [(0.0, 0.01)]})
    with pytest.raises(ProcessFailedError, match="no such interface"), plugs:
        plugs.start()
        deadline = time.monotonic() + 30
        while plugs._error is None and time.monotonic() < deadline:
            time.sleep(0.005)


def tried(
    monkeypatch: pytest.MonkeyPatch, folder: Path, spoil: Callable[[Run, int], None]
) -> tuple[Run, int]:
    """What comes of a run whose attempts are spoiled by number, and how many there were."""
    made: list[Run] = []

    def measure(_experiment: Experiment, _point: Point, _scheme: Scheme, _work: Path) -> Run:
        run = run_of("sumrate", "normal", 1.0)
        spoil(run, len(made))
        made.append(run)
        return run

    monkeypatch.setattr(running, "measure", measure)
    plan = Plan(load("lap"), 1)
    point, scheme = next(plan.measured())
    return on_time(plan, point, scheme, folder, Progress(1.0)), len(made)


@pytest.mark.parametrize(("late", "void"), [(0, False), (2, False), (9, True)])
def test_a_late_run_is_made_again_twice_at_most(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, late: int, void: bool
) -> None:
    def spoil(run: Run, number: int) -> None:
        run.void = number < late
        run.detail["worst_lateness_ms"] = 30.0 + number

    run, made = tried(monkeypatch, tmp_path, spoil)
    assert run.void == void
    assert made == 1 + min(late, MAX_RETRIES)
    lateness = [30.0 + n for n in range(min(late, MAX_RETRIES))]
    assert run.detail.get("void_before_ms", []) == lateness


@pytest.mark.parametrize("times", [1, 9])
def test_a_run_that_other_programs_disturbed_is_made_again_and_stands_then(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int
) -> None:
    def spoil(run: Run, number: int) -> None:
        run.detail["foreign_user_share"] = 0.5 if number < times else 0.01

    run, made = tried(monkeypatch, tmp_path, spoil)
    assert made == 1 + min(times, MAX_RETRIES)
    assert run.detail["disturbed_before"] == [0.5] * min(times, MAX_RETRIES)
    assert not run.void


def test_of_disturbed_attempts_the_quietest_stands_and_one_that_failed_never_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def spoil(run: Run, number: int) -> None:
        run.detail["foreign_user_share"] = (0.3, 0.2, 0.0)[number]
        if number == 2:
            run.detail["error"] = "crashed"

    run, made = tried(monkeypatch, tmp_path, spoil)
    assert made == 1 + MAX_RETRIES
    assert run.detail["foreign_user_share"] == 0.2
    assert "error" not in run.detail


@pytest.mark.parametrize(("failing", "fails"), [(1, False), (9, True)])
def test_a_run_that_failed_is_made_again_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing: int, fails: bool
) -> None:
    def spoil(run: Run, number: int) -> None:
        if number < failing:
            run.detail["error"] = f"page {number} crashed"

    run, _ = tried(monkeypatch, tmp_path, spoil)
    assert ("error" in run.detail) == fails
    said = [f"page {n} crashed" for n in range(min(failing, MAX_RETRIES))]
    assert run.detail["failed_before"] == said


@pytest.mark.parametrize(("lacking", "fails"), [(MAX_RETRIES + 2, False), (99, True)])
def test_a_run_without_a_subflow_is_made_again_more_often_and_takes_no_other_retries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacking: int, *, fails: bool
) -> None:
    def spoil(run: Run, number: int) -> None:
        if number < lacking:
            run.detail |= {"error": f"nothing over {number}", MISSING_SUBFLOW: True}
        elif number < lacking + MAX_RETRIES:
            run.detail["error"] = "iperf3 failed"

    run, made = tried(monkeypatch, tmp_path, spoil)
    assert ("error" in run.detail) == fails
    times = min(lacking, SUBFLOW_RETRIES)
    said = [f"nothing over {number}" for number in range(times)]
    said += [] if fails else ["iperf3 failed"] * MAX_RETRIES
    assert run.detail["failed_before"] == said
    assert made == 1 + len(said)


def test_a_missing_subflow_is_told_from_other_failures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(error: Exception) -> Run:
        def links(*_: object) -> tuple[Link, ...]:
            raise error

        monkeypatch.setattr(running, "traced_links", links)
        plan = Plan(load("lap"), 1)
        point, scheme = next(plan.measured())
        return running.measure(plan.experiment, point, scheme, tmp_path)

    assert failing(MissingSubflowError("nothing over two")).detail[MISSING_SUBFLOW]
    assert MISSING_SUBFLOW not in failing(RuntimeError("iperf3 failed")).detail


def test_what_never_works_is_made_again_in_the_first_repetition_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def measure(experiment: Experiment, point: Point, scheme: Scheme, _work: Path) -> Run:
        run = running.blank(experiment, point, scheme)
        if scheme.name == "aggligator":
            made.append(point.condition.name)
            run.detail["error"] = "the tunnel was closed"
        return run

    monkeypatch.setattr(running, "measure", measure)
    plan = Plan(load("lap"), 3)
    runs = running.run_all(plan, tmp_path, Progress(1.0))
    assert sum("error" in run.detail for run in runs) == 3 * len(set(made))
    assert {made.count(condition) for condition in made} == {3 + MAX_RETRIES}


def test_a_peer_that_is_always_late_is_made_again_in_the_first_repetition_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[tuple[str, str]] = []

    def measure(experiment: Experiment, point: Point, scheme: Scheme, _work: Path) -> Run:
        run = running.blank(experiment, point, scheme)
        run.void = scheme.name in ("aggligator", "sumrate")
        made.append((scheme.name, point.condition.name))
        return run

    monkeypatch.setattr(running, "measure", measure)
    running.run_all(Plan(load("lap"), 3), tmp_path, Progress(1.0))
    counted = {name: made.count((name, place)) for name, place in made}
    assert counted["aggligator"] == 3 + MAX_RETRIES
    assert counted["sumrate"] == 3 * (1 + MAX_RETRIES), "its own result is tried for each time"
    assert counted["mptcp"] == 3


def test_what_is_measured_is_kept_after_each_repetition_and_compared_as_in_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measure(experiment: Experiment, point: Point, scheme: Scheme, _work: Path) -> Run:
        run = running.blank(experiment, point, scheme)
        run.add("goodput_mbps", 10.0 + len(scheme.name) + point.repetition, "Mbit/s")
        return run

    monkeypatch.setattr(running, "measure", measure)
    kept: list[list[Run]] = []
    plan = Plan(load("lap"), 3)
    runs = running.run_all(plan, tmp_path, Progress(1.0), keep=kept.append)
    assert [max(run.repetition for run in found) for found in kept] == [0, 1]
    whole = [run.metrics for run in runs if run.repetition == 0]
    assert [run.metrics for run in kept[0]] == whole
    assert any(metric.name == "sum_ratio" for metrics in whole for metric in metrics)


@pytest.mark.parametrize(("scheme", "status"), [("sumrate", 1), ("aggligator", 0)])
def test_a_scheme_of_our_own_that_was_never_there_is_no_success(
    capsys: pytest.CaptureFixture[str], scheme: str, status: int
) -> None:
    found = [run_of(name, "normal", 1.0) for name in ("wifi", "sumrate", "aggligator")]
    for run in found:
        if run.scheme == scheme:
            run.detail["missing"] = "npm packages are not installed"
    assert _complaints(load("lap"), found) == status
    assert f"missing: {scheme}: npm packages are not installed" in capsys.readouterr().err


def test_an_answer_that_is_none_fails_the_run_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object) -> None:
        json.loads("{")

    monkeypatch.setattr(running, "traced_links", broken)
    plan = Plan(load("lap"), 1)
    point, scheme = next(plan.measured())
    run = running.measure(plan.experiment, point, scheme, tmp_path)
    assert "Expecting property name" in run.detail["error"]


def test_the_traces_that_are_used_are_described(tmp_path: Path) -> None:
    experiment = load("channel-traces")
    mobility = experiment.conditions[-1]
    made = traced_links(experiment, mobility, 3, tmp_path)
    shown = traces_shown(made, 8.0)
    assert shown.keys() == {"wifi", "wigig"}
    for values in shown.values():
        assert values.keys() == {"mean", "std", "p5", "p50", "p95"}
        assert 0 < values["p5"] <= values["p50"] <= values["p95"]
    assert traces_shown(made, 8.0) == traces_shown(made, 8.4), "whole seconds count"
    assert traces_shown(links(), 8.0) == {}


def test_kernel_mptcp_without_a_subflow_is_a_failed_run() -> None:
    links = [replace(LINK, name="one"), replace(LINK, name="other")]
    check_subflows({"one": 1, "other": 2}, links)
    check_subflows({"one": 1, "other": 0}, links[:1])  # spared: a backup, or unplugged
    for connections in ({"one": 1, "other": 0}, {"one": 1}):
        with pytest.raises(MissingSubflowError, match="nothing over other"):
            check_subflows(connections, links)


def test_links_that_may_be_silent_need_no_subflow() -> None:
    shared = replace(LINK, name="two", wire="one")
    links = (replace(LINK, name="one"), shared, replace(LINK, name="other"))
    traffic = Traffic(load("rfc6356"), load("rfc6356").conditions[1])

    def used(scheme: Scheme, *built: Link) -> list[str]:
        scene = cast("Scene", SimpleNamespace(links=built))
        return [link.name for link in used_by_mptcp(scheme, scene, traffic)]

    assert used(KernelMptcp(), *links) == ["one", "two", "other"]
    assert used(KernelMptcpBackup(), *links) == ["one", "two"]
    assert used(Sumrate(), *links) == []
    dark = replace(links[0], blackouts=(Blackout(0.0, 100.0),))
    assert used(KernelMptcp(), dark, shared, links[2]) == ["other"], "nor who shares its wire"
