"""What of an experiment is run, in which order, and what need not be run twice."""

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from sumrate.lab.endpoints import KernelMptcp, Scheme, Sumrate
from sumrate.lab.experiment.by_method import SimulationExperiment
from sumrate.lab.experiment.comparisons import add_comparisons
from sumrate.lab.experiment.load import ExperimentError, load, names
from sumrate.lab.experiment.methods import Traffic, jain
from sumrate.lab.experiment.ratios import (
    add_ideals,
    add_percentiles,
    add_pooled_percentiles,
    add_start_up,
)
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.run import Made, Plan, again, compared, measure
from sumrate.lab.experiment.topology import links_of, longest_drain_ms, traced_links
from sumrate.lab.experiment.workloads import WORKLOADS
from sumrate.lab.scene import Scene
from sumrate.traces import Trace
from tests.lab.test_experiment_files import GOOD, written

TWO_RADIOS = GOOD.replace(
    "[[schemes]]\n",
    '[[links]]\nname = "wigig"\ntitle = "WiGig"\nrate_mbps = 300.0\nrtt_ms = 2.0\n\n[[schemes]]\n',
    1,
).replace(
    "[[checks]]",
    '[[conditions]]\nname = "loss"\ntitle = "loss"\nlinks.wigig.loss = 0.05\n\n[[checks]]',
)


def plan(folder: Path, text: str, repetitions: int = 1) -> Plan:
    return Plan(load("trial", written(folder, text)), repetitions)


def test_a_link_alone_is_measured_once_where_nothing_changes_it(tmp_path: Path) -> None:
    found = plan(tmp_path, TWO_RADIOS, 2)
    made = Counter((s.name, p.condition.name, p.repetition) for p, s in found.measured())
    for repetition in range(2):
        assert made["wifi", "normal", repetition] == 1
        assert made["wifi", "loss", repetition] == 0, "WiFi is the same in both"
        assert made["wigig", "loss", repetition] == 1, "WiGig is not"
        assert made["sumrate", "loss", repetition] == 1
    assert found.seconds() == pytest.approx(sum(made.values()) * 1.7)


def test_a_condition_can_have_fewer_repetitions(tmp_path: Path) -> None:
    text = TWO_RADIOS.replace('title = "loss"\n', 'title = "loss"\nrepetitions = 1\n')
    made = Counter(point.condition.name for point in plan(tmp_path, text, 5).points())
    assert made == {"normal": 5, "loss": 1}
    with pytest.raises(ExperimentError, match=r"Expected `int` >= 1"):
        plan(tmp_path, text.replace("repetitions = 1", "repetitions = 0"))


def test_a_condition_can_be_of_some_buffers_only(tmp_path: Path) -> None:
    text = TWO_RADIOS.replace("seconds = 1.0", 'seconds = 1.0\nbuffers = ["default", "large"]')
    text = text.replace('title = "loss"\n', 'title = "loss"\nbuffers = ["large"]\n')
    made = Counter((p.condition.name, p.buffers) for p in plan(tmp_path, text).points())
    assert made == {("normal", "default"): 1, ("normal", "large"): 1, ("loss", "large"): 1}
    with pytest.raises(ExperimentError, match="is for `50k`, which the experiment's buffers lacks"):
        plan(tmp_path, text.replace('buffers = ["large"]\n', 'buffers = ["50k"]\n'))


def test_a_tcp_beside_is_another_measurement(tmp_path: Path) -> None:
    text = TWO_RADIOS.replace("links.wigig.loss = 0.05", 'beside = ["wigig"]')
    found = {(s.name, p.condition.name) for p, s in plan(tmp_path, text).measured()}
    assert ("wifi", "loss") in found


def test_what_was_measured_elsewhere_says_where(tmp_path: Path) -> None:
    point = list(plan(tmp_path, TWO_RADIOS).points())[1]
    run = Run("wifi", "normal", "cubic", "default", 0, 1, detail={"title": "WiFi"})
    run.add("goodput_mbps", 96.0, "Mbit/s")
    copy = again(run, point)
    assert (copy.condition, copy.detail["measured_in"]) == ("loss", "normal")
    copy.add("sum_ratio", 1.0, "ratio")
    assert run.value("sum_ratio") is None
    assert copy.value("goodput_mbps") == 96.0


def test_a_void_link_alone_counts_where_it_was_on_time_elsewhere(tmp_path: Path) -> None:
    found = plan(tmp_path, TWO_RADIOS)
    normal, loss = found.points()
    late, wigig, ours = runs_of("normal", wifi=50.0, wigig=300.0, sumrate=390.0)
    late.void = True
    (good,) = runs_of("loss", wifi=100.0)
    made: list[Made] = [
        (normal, [(("wifi",), late), (("wigig",), wigig), (None, ours)]),
        (loss, [(("wifi",), good)]),
    ]
    runs = compared(found.experiment, made, {("wifi",): good, ("wigig",): wigig})
    assert [run.void for run in runs] == [False] * 4
    assert runs[0].detail["measured_in"] == "loss"
    assert ours.value("sum_ratio") == pytest.approx(390 / 400)


def test_a_condition_can_warm_up_longer(tmp_path: Path) -> None:
    text = TWO_RADIOS.replace("seconds = 1.0", "seconds = 1.0\nwarmup_s = 1.0")
    text = text.replace("links.wigig.loss = 0.05", "warmup_s = 3.0\nlinks.wigig.loss = 0.05")
    found = plan(tmp_path, text)
    normal, loss = found.points()
    assert found.run_seconds(loss) - found.run_seconds(normal) == pytest.approx(2.0)
    (wifi, *_) = found.schemes(loss)
    assert found.alike(normal, wifi) != found.alike(loss, wifi)


def test_a_scheme_runs_only_where_it_is_wanted(tmp_path: Path) -> None:
    text = TWO_RADIOS.replace(
        "seconds = 1.0", 'seconds = 1.0\ncongestion_control = ["cubic", "bbr"]'
    )
    text = text.replace('kind = "sumrate"\n', 'kind = "sumrate"\ncongestion_control = ["bbr"]\n')
    found = {(s.name, p.congestion_control) for p, s in plan(tmp_path, text).measured()}
    assert ("sumrate", "bbr") in found
    assert ("sumrate", "cubic") not in found
    assert ("wifi", "cubic") in found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate_mbps = 300.0\n", "", "needs a rate_mbps"),
        ("rate_mbps = 300.0\n", 'rate_mbps = 300.0\nshares = "lte"\n', "no wire of its own"),
        ("links.wigig.loss = 0.05", 'beside = ["lte"]', "no link"),
        ('kind = "sumrate"\n', 'kind = "sumrate"\nbuffers = ["large"]\n', "buffers lacks"),
        ('kind = "sumrate"\n', 'kind = "sumrate"\nfirst = "lte"\n', "which is no link"),
        ("at_least = 0.9", "at_least = 0.9\nreported = true", "only reported"),
        ("at_least = 0.9", "at_least = 0.9\nslack = 1.0", "of a quotient"),
        ("links.wigig.loss = 0.05", "warmup_s = 1.5", "must be whole"),
    ],
)
def test_what_does_not_exist_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TWO_RADIOS
    with pytest.raises(ExperimentError, match=said):
        load("trial", written(tmp_path, TWO_RADIOS.replace(old, new)))


def test_links_that_share_a_wire_have_addresses_of_their_own() -> None:
    experiment = load("coupling")
    shared = next(c for c in experiment.conditions if c.name == "shared")
    one, same = links_of(experiment, shared)
    assert (one.interface, one.subnet) == (same.interface, same.subnet)
    assert len({one.client_ip, one.server_ip, same.client_ip, same.server_ip}) == 4


def test_all_experiments_together_take_less_than_eighteen_hours() -> None:
    """Five repetitions of everything; what grows beyond that is not run any more.

    Users' workloads, whose browser and programs take their time, are counted apart.
    """
    every = map(load, names())
    on_links = [found for found in every if not isinstance(found, SimulationExperiment)]
    plans = [Plan(found, found.repetitions) for found in on_links]
    workloads = [p for p in plans if p.experiment.method in WORKLOADS]
    assert sum(p.seconds() for p in plans if p not in workloads) < 14.6 * 3600
    assert sum(p.seconds() for p in workloads) < 3.1 * 3600
    assert all(p.repetitions >= 5 for p in plans)


def runs_of(condition: str, **goodput: float) -> list[Run]:
    found = []
    for scheme, value in goodput.items():
        run = Run(scheme, condition, "cubic", "default", 0, 1)
        run.add("goodput_mbps", value, "Mbit/s")
        found.append(run)
    return found


def test_a_transport_has_started_when_it_has_nine_tenths_of_the_sum() -> None:
    """A burst in the first sample is no start, and a rate that is never reached takes all of it."""
    rates = {
        "wifi": [50.0] * 40,
        "wigig": [180.0] + [100.0] * 39,
        "mptcp": [180.0, 60.0, 60.0] + [120.0] * 37,
        "sumrate": [180.0, 60.0] + [140.0] * 38,
    }
    runs = runs_of("normal", **dict.fromkeys(rates, 1.0))
    for run in runs:
        run.series = [(0.05 + i / 10, rate) for i, rate in enumerate(rates[run.scheme])]
    add_start_up(runs, links_of(load("lap"), load("lap").conditions[0]))
    assert [run.value("start_up_s") for run in runs] == pytest.approx([0.0, 0.0, 4.0, 0.2])
    late = runs_of("normal", wifi=1.0, sumrate=1.0)
    for run in late:
        run.series = [(0.05 + i / 10, rate) for i, rate in enumerate([9.0] * 3 + [50.0] * 37)]
    add_start_up(late, links_of(load("lap"), load("lap").conditions[0])[:1])
    assert [run.value("start_up_s") for run in late] == pytest.approx([0.3, 0.3])


def test_memory_is_compared_with_rates_times_difference_of_delays(tmp_path: Path) -> None:
    experiment = plan(tmp_path, TWO_RADIOS).experiment
    runs = runs_of("normal", wifi=100.0, wigig=300.0, sumrate=390.0)
    runs[2].add("reassembly_peak_bytes", 1.5 * 400 * 125 * (1.5 + 20 - 1.0), "B")
    add_comparisons(experiment, runs)
    assert runs[2].value("sum_ratio") == pytest.approx(390 / 400)
    assert runs[2].value("reassembly_bound_ratio") == pytest.approx(1.0)


def test_a_full_queue_delays_for_longer_where_a_trace_is_slow(tmp_path: Path) -> None:
    # 20 ms of the mean, 550 Mbit/s, are 110 ms of the lower rate.
    slow = Trace(10.0, tuple([1000.0] * 100 + [100.0] * 100))
    assert longest_drain_ms(slow, 20.0) == 110.0
    assert longest_drain_ms(Trace(10.0, (550.0,) * 100), 20.0) == 20.0
    assert longest_drain_ms(Trace(10.0, (1000.0, 0.0, 0.0, 0.0) * 50), 20.0) == 40.0
    experiment = plan(tmp_path, TWO_RADIOS).experiment
    runs = runs_of("normal", wifi=100.0, wigig=300.0, sumrate=390.0)
    runs[2].add("reassembly_peak_bytes", 1.5 * 400 * 125 * (1.0 + 110 - 1.0), "B")
    runs[2].detail["full_queues_ms"] = {"wigig": 110.0}
    add_comparisons(experiment, runs)
    assert runs[2].value("reassembly_bound_ratio") == pytest.approx(1.0)


def test_memory_in_blackouts_is_compared_with_what_the_links_carry_without_them() -> None:
    experiment = load("blackout")
    links = links_of(experiment, experiment.conditions[0])
    longest = max(link.down.delay_ms + link.down.queue_ms for link in links)
    spread = longest - min(link.down.delay_ms for link in links)
    baseline = runs_of("normal", wifi=100.0, wigig=300.0)
    (run,) = runs_of("wigig-dark", sumrate=250.0)
    run.add("reassembly_peak_bytes", 0.5 * 1.5 * 400 * 125 * spread, "B")
    add_comparisons(experiment, [*baseline, run])
    assert run.value("reassembly_bound_ratio") == pytest.approx(0.5)
    (lone,) = runs_of("wigig-dark", sumrate=250.0)
    lone.add("reassembly_peak_bytes", 1.0, "B")
    baseline[0].void = True
    add_comparisons(experiment, [*baseline, lone])
    assert lone.value("reassembly_bound_ratio") is None


def test_each_blackout_is_compared_with_the_links_that_are_left() -> None:
    experiment = load("blackout")
    baseline = runs_of("normal", wifi=600.0, wigig=1700.0)
    (run,) = runs_of("often-dark", sumrate=1600.0)
    run.add("blackout_goodput_wigig_mbps", 594.0, "Mbit/s")
    run.add("blackout_goodput_wifi_mbps", 1700.0, "Mbit/s")
    add_ideals(experiment, [*baseline, run])
    assert run.value("blackout_ratio_wigig") == pytest.approx(0.99)
    assert run.value("blackout_ratio_wifi") == pytest.approx(1.0)


def test_the_worst_percentile_against_a_peer_counts() -> None:
    runs = runs_of("normal", wifi=100.0, mptcp=100.0, sumrate=100.0)
    for run, rates in zip(runs, ([1.0] * 40, [100.0] * 40, [150.0] * 35 + [90.0] * 5), strict=True):
        run.series = [(0.05 + i / 10, rate) for i, rate in enumerate([9.0] * 5 + rates + [9.0] * 6)]
    add_percentiles(runs, links_of(load("lap"), load("lap").conditions[0]))
    assert runs[2].value("percentiles_over_mptcp") == pytest.approx(0.9)
    assert runs[2].value("percentiles_over_aggligator") is None
    assert runs[0].value("percentiles_over_mptcp") is None, "one link is not compared"
    late = runs_of("normal", mptcp=100.0, sumrate=100.0)
    for run in late:
        run.series = [(0.05 + i / 10, 100.0) for i in range(51)]
    late[0].void = True
    add_percentiles(late, links_of(load("lap"), load("lap").conditions[0]))
    assert late[1].value("percentiles_over_mptcp") is None, "a late emulator made it slow"


def test_percentiles_of_all_repetitions_are_of_those_that_count_on_both_sides() -> None:
    """One repetition's dip is the other's: pooled, both have the same samples."""
    rates = {"mptcp": ([100.0] * 40, [50.0] * 40), "sumrate": ([50.0] * 40, [100.0] * 40)}
    runs = []
    for scheme, repetitions in rates.items():
        for number, values in enumerate([*repetitions, [1.0] * 40]):
            run = Run(scheme, "steady", "cubic", "default", number, 1 + number)
            found = enumerate([9.0] * 5 + values + [9.0] * 6)
            run.series = [(0.05 + i / 10, rate) for i, rate in found]
            run.void = (scheme, number) == ("mptcp", 2)
            runs.append(run)
    add_pooled_percentiles(load("lap"), runs)
    ours = {run.repetition: run for run in runs if run.scheme == "sumrate"}
    assert ours[0].value("pooled_percentiles_over_mptcp") == pytest.approx(1.0)
    assert [run.value("pooled_percentiles_over_mptcp") for run in runs].count(None) == 5
    assert ours[0].value("pooled_percentiles_above_mptcp") == 0.0
    for run in (r for r in runs if r.scheme == "sumrate"):
        run.metrics.clear()
        run.series = [(t, 2 * rate) for t, rate in run.series]
    add_pooled_percentiles(load("lap"), runs)
    assert ours[0].value("pooled_percentiles_above_mptcp") == 19.0


def test_a_trace_at_half_its_rates(tmp_path: Path) -> None:
    text = TWO_RADIOS.replace("seconds = 1.0", "seconds = 1.0\ntrace_scale = 0.5")
    text = text.replace("links.wigig.loss = 0.05", 'links.wigig.trace = "wigig-los"')
    scaled = plan(tmp_path, text).experiment
    whole = plan(tmp_path, text.replace("trace_scale = 0.5", "trace_scale = 1.0")).experiment
    made = [
        traced_links(e, e.conditions[-1], 1, tmp_path / str(e.trace_scale)) for e in (whole, scaled)
    ]
    full, half = (next(link.down.trace for link in links if link.down.trace) for links in made)
    assert full is not None and half is not None
    steps = [
        [float(line.split()[1]) for line in path.read_text("utf-8").splitlines()[3:]]
        for path in (full, half)
    ]
    assert sum(steps[1]) == pytest.approx(sum(steps[0]) / 2, rel=0.05)


def test_jains_index() -> None:
    assert jain([5.0, 5.0, 5.0]) == pytest.approx(1.0)
    assert jain([9.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert jain([0.0, 0.0]) == 0.0


def test_what_a_failed_run_measured_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(run: Run, _scheme: Scheme, _scene: Scene, _traffic: Traffic) -> None:
        run.add("goodput_mbps", 900.0, "Mbit/s")
        run.series.append((0.1, 900.0))
        raise RuntimeError("no second subflow was made")

    plan_of_one = plan(tmp_path, TWO_RADIOS)
    module = "sumrate.lab.experiment.run"
    monkeypatch.setattr(f"{module}.METHODS", {plan_of_one.experiment.method: fails})
    monkeypatch.setattr(
        f"{module}.scene", lambda *_, **__: nullcontext(SimpleNamespace(settings=dict))
    )
    monkeypatch.setattr(f"{module}.check_congestion_control", lambda _: None)
    monkeypatch.setattr(KernelMptcp, "check", lambda _: None)
    point = next(plan_of_one.points())
    run = measure(plan_of_one.experiment, point, KernelMptcp(), tmp_path)
    assert run.detail["error"] == "no second subflow was made"
    assert (run.metrics, run.series) == ([], [])


def test_a_conditions_stream_buffer_is_given_to_sumrates_ends_only() -> None:
    plan = Plan(load("tournament-contrast"), 1)
    for point in plan.points():
        size = point.condition.stream_buffer_bytes
        for scheme in plan.schemes(point):
            options = getattr(scheme, "options", ())
            given = isinstance(scheme, Sumrate) and size > 0
            assert ("--stream-buffer" in options) == given, (point.condition.name, scheme.name)
            if given:
                assert options[-2:] == ("--stream-buffer", str(size))
