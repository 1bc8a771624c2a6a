"""Metrics of runs, and the verdicts that follow from them."""

from dataclasses import replace as replaced

import pytest
from msgspec.structs import replace

from sumrate.lab.experiment.by_method import BenchExperiment, WarmedCondition
from sumrate.lab.experiment.judge import judge
from sumrate.lab.experiment.model import (
    Check,
    Experiment,
    LinkSetting,
    SchemeSetting,
    Selection,
    Statistic,
)
from sumrate.lab.experiment.record import (
    Bins,
    Run,
    add_blackouts,
    add_samples,
    longest_silence_ms,
    percentile,
)
from sumrate.lab.links import Blackout
from sumrate.verdict.words import few, said

STEP_S = 0.005


def experiment(*checks: Check) -> Experiment:
    return BenchExperiment(
        schema=1,
        name="trial",
        title="Trial",
        question="Is it?",
        seconds=1.0,
        repetitions=3,
        links=(LinkSetting(name="wifi", title="WiFi", rate_mbps=100.0, rtt_ms=3.0),),
        conditions=(
            WarmedCondition(name="normal", title="normal"),
            WarmedCondition(name="loss", title="loss"),
        ),
        schemes=(SchemeSetting(kind="alone"), SchemeSetting(kind="sumrate")),
        checks=checks,
    )


def run(scheme: str, condition: str, repetition: int, goodput: float, *, void: bool = False) -> Run:
    made = Run(scheme, condition, "cubic", "default", repetition, 1 + repetition, void)
    made.add("goodput_mbps", goodput, "Mbit/s")
    return made


RUNS = [
    *(run("sumrate", "normal", i, value) for i, value in enumerate((90.0, 95.0, 100.0))),
    run("sumrate", "normal", 3, 1.0, void=True),
    *(run("wifi", "normal", i, 100.0) for i in range(3)),
    *(run("sumrate", "loss", i, 40.0) for i in range(3)),
    *(run("wifi", "loss", i, 50.0) for i in range(3)),
]


def ratio(condition: str, at_least: float) -> Check:
    return Check(
        statement=f"at least {at_least}",
        claim="T-4.1b-normal",
        value=Selection(metric="goodput_mbps", scheme="sumrate", condition=condition),
        over=Selection(metric="goodput_mbps", scheme="wifi"),
        at_least=at_least,
        cause="it is lossy",
    )


@pytest.mark.parametrize(
    ("condition", "at_least", "verdict", "measured"),
    [
        ("normal", 0.94, "holds", "0.95"),
        ("normal", 0.96, "fails", "0.95"),
        ("*", 0.9, "depends", "0.8 to 0.95"),
        ("*", 0.97, "fails", "0.8 to 0.95"),
    ],
)
def test_medians_without_void_runs_decide(
    condition: str, at_least: float, verdict: str, measured: str
) -> None:
    (found,) = judge(experiment(ratio(condition, at_least)), RUNS)
    assert (found.verdict, found.measured) == (verdict, measured)
    assert (found.cause == "it is lossy") == (verdict != "holds")
    assert all((f.cause == "it is lossy") == (not f.holds) for f in found.findings)


def test_a_quotient_of_medians_is_the_median_of_the_repetitions_quotients() -> None:
    """Seeds differ: what a repetition carries is compared with what its own links do."""
    alone = [100.0, 50.0, 200.0]
    runs = [run("wifi", "normal", i, rate) for i, rate in enumerate(alone)]
    shares = (0.9, 0.5, 0.8)
    runs += [
        run("sumrate", "normal", i, rate * share)
        for i, (rate, share) in enumerate(zip(alone, shares, strict=True))
    ]
    (found,) = judge(experiment(ratio("normal", 0.85)), runs)
    assert (found.verdict, found.measured) == ("fails", "0.8"), "the medians' quotient is 0.9"
    runs[1].void = True
    (found,) = judge(experiment(ratio("normal", 0.85)), runs)
    assert (found.verdict, found.measured) == ("holds", "0.85 (2 of 3 repetitions)")


def test_what_is_more_than_nothing_is_very_much_more() -> None:
    """A peer that had none at all once made a check of it one that was not measured."""
    pauses = ratio("normal", 0.0)
    pauses = replace(pauses, at_least=None, at_most=0.1)
    runs = [run("wifi", "normal", i, 0.0) for i in range(3)]
    runs += [run("sumrate", "normal", i, 0.05) for i in range(3)]
    (found,) = judge(experiment(pauses), runs)
    assert found.verdict == "fails"
    runs += [run("sumrate", "loss", i, 0.0) for i in range(3)]
    runs += [run("wifi", "loss", i, 0.0) for i in range(3)]
    (found,) = judge(experiment(replace(ratio("loss", 1.0), at_most=1.0)), runs)
    assert found.verdict == "holds", "nothing over nothing is as much"


def test_what_was_not_measured_is_not_run() -> None:
    (found,) = judge(experiment(ratio("normal", 0.5)), [])
    assert (found.verdict, found.measured) == ("not-run", "")
    some = [r for r in RUNS if r.condition == "normal"]
    (found,) = judge(experiment(ratio("*", 0.5)), some)
    assert found.verdict == "not-run", "one condition is not all of them"
    (found,) = judge(experiment(ratio("*", 0.96)), some)
    assert found.verdict == "fails", "what fails is not hidden by what is missing"
    assert found.cause == "it is lossy"


def test_what_is_only_reported_decides_nothing() -> None:
    """Once a figure beside a goal made the goal one that was not measured."""
    value = Selection(metric="goodput_mbps", scheme="sumrate", condition="normal")
    check = Check(statement="goodput", goal="P1", value=value, reported=True)
    (found,) = judge(experiment(check), RUNS)
    assert (found.verdict, found.measured) == ("reported", "95 Mbit/s")
    (found,) = judge(experiment(check), [])
    assert found.verdict == "not-run"
    judged = Check(statement="at least 90", goal="P1", value=value, at_least=90.0)
    (found,) = judge(experiment(check, judged), RUNS)
    assert found.verdict == "holds"


def test_a_cause_can_be_of_some_conditions_only() -> None:
    check = replace(ratio("*", 0.97), cause="", causes={"loss": "segments are lost"})
    (found,) = judge(experiment(check), RUNS)
    assert {f.condition: f.cause for f in found.findings} == {
        "normal": "",
        "loss": "segments are lost",
    }
    assert found.cause == "segments are lost"


def test_conditions_can_be_left_out_of_all() -> None:
    (found,) = judge(experiment(replace(ratio("*", 0.9), without=("loss",))), RUNS)
    assert [f.condition for f in found.findings] == ["normal"]
    assert found.verdict == "holds"


def test_pooled_values_are_divided_wherever_they_stand() -> None:
    """The first repetition of one scheme is void: its value stands at the second."""
    runs = [
        *(run("sumrate", "normal", i, 1.0, void=i == 0) for i in range(3)),
        *(run("mptcp", "normal", i, 1.0) for i in range(3)),
    ]
    runs[1].add("pooled_message_p999_ms", 5.0, "ms")
    runs[3].add("pooled_message_p999_ms", 10.0, "ms")
    value = Selection(metric="pooled_message_p999_ms", scheme="sumrate", condition="normal")
    over = Selection(metric="pooled_message_p999_ms", scheme="mptcp")
    check = Check(statement="half", goal="Q10", value=value, over=over, at_most=0.5)
    (found,) = judge(experiment(check), runs)
    (finding,) = found.findings
    assert (finding.measured, finding.counted, finding.holds) == (0.5, 2, True)
    (found,) = judge(experiment(replace(check, over=None, at_most=5.0)), runs)
    assert (found.findings[0].measured, found.findings[0].counted) == (5.0, 2)


def test_a_run_that_failed_does_not_count() -> None:
    """Not even for what was measured before it failed."""
    runs = [run("sumrate", "normal", i, 100.0) for i in range(3)]
    runs[1].detail["error"] = "kernel MPTCP left a link unused"
    value = Selection(metric="goodput_mbps", scheme="sumrate", condition="normal")
    check = Check(statement="at least 90", goal="P1", value=value, at_least=90.0)
    (found,) = judge(experiment(check), runs)
    assert found.findings[0].counted == 2


def test_a_condition_of_fewer_repetitions_is_whole_with_those() -> None:
    whole = experiment(ratio("normal", 0.9))
    once = replace(whole.conditions[0], repetitions=1)
    (found,) = judge(replace(whole, conditions=(once, whole.conditions[1])), RUNS[:1] + RUNS[4:5])
    assert (found.findings[0].counted, found.findings[0].repetitions) == (1, 1)
    assert "of 3 repetitions" not in found.measured


def test_a_peak_is_the_largest_of_all_repetitions() -> None:
    value = Selection(metric="goodput_mbps", scheme="sumrate", condition="normal", statistic="max")
    check = Check(statement="at most 96", goal="P7", value=value, at_most=96.0)
    (found,) = judge(experiment(check), RUNS)
    assert (found.verdict, found.measured) == ("fails", "100 Mbit/s")


def test_what_others_have_beside_it_is_divided_by_their_own() -> None:
    """A ratio of a scheme to itself in another condition is shown of each peer to itself."""
    runs = [*RUNS, *(run("tquic", "normal", i, 80.0) for i in range(3))]
    runs += [run("tquic", "loss", i, 60.0) for i in range(3)]
    check = Check(
        statement="loss costs at most half",
        goal="P1",
        value=Selection(metric="goodput_mbps", scheme="sumrate", condition="loss"),
        over=Selection(metric="goodput_mbps", scheme="sumrate", condition="normal"),
        at_least=0.5,
    )
    (found,) = judge(experiment(check), runs)
    (finding,) = found.findings
    assert finding.measured == pytest.approx(40 / 95)
    assert finding.beside == {"tquic": pytest.approx(60 / 80)}


def test_what_others_have_over_a_peer_is_divided_by_that_peer() -> None:
    """All but the peer itself, whose ratio would be one."""
    runs = [*RUNS, *(run("mptcp", "normal", i, 50.0) for i in range(3))]
    runs += [run("tquic", "normal", i, 80.0) for i in range(3)]
    value = Selection(metric="goodput_mbps", scheme="sumrate", condition="normal")
    over = Selection(metric="goodput_mbps", scheme="mptcp")
    check = Check(statement="more than", goal="P1", value=value, over=over, at_least=1.0)
    (found,) = judge(experiment(check), runs)
    (finding,) = found.findings
    assert finding.measured == pytest.approx(95 / 50)
    assert finding.beside == {"tquic": pytest.approx(80 / 50)}


def test_a_ratio_is_of_repetitions_that_count_on_both_sides() -> None:
    """Each has its own traces: a void run of one scheme must not leave the others' easy ones."""
    goodput = {"sumrate": (100.0, 10.0, 100.0), "wifi": (80.0, 8.0, 80.0)}
    runs = [run(s, "normal", i, v) for s, values in goodput.items() for i, v in enumerate(values)]
    for late in runs[3], runs[5]:
        late.void = True
    (verdict,) = judge(experiment(ratio("normal", 1.2)), runs)
    assert (verdict.verdict, verdict.measured) == ("holds", "1.25 (1 of 3 repetitions)")
    runs[4].void = True
    (verdict,) = judge(experiment(ratio("normal", 1.2)), runs)
    assert verdict.verdict == "not-run"


def test_values_that_differ_by_the_slack_are_equal() -> None:
    runs = [run("sumrate", "normal", 0, 3.0), run("wifi", "normal", 0, 2.0)]
    check = replace(ratio("normal", 0.0), at_least=None, at_most=1.1)
    for slack, holds, measured in ((0.0, False, 1.5), (0.9, False, 1.5), (1.0, True, 1.0)):
        (found,) = judge(experiment(replace(check, slack=slack)), runs)
        (finding,) = found.findings
        assert (finding.holds, finding.measured) == (holds, measured), slack
    runs = [run("sumrate", "normal", 0, 1.0), run("wifi", "normal", 0, 0.0)]
    (found,) = judge(experiment(replace(check, slack=1.0)), runs)
    assert found.verdict == "holds", "nothing to divide by, and yet as good"


def test_a_band_is_half_of_students_interval() -> None:
    value = Selection(metric="goodput_mbps", scheme="sumrate", condition="normal", statistic="band")
    check = Check(statement="its band", goal="P1", value=value, reported=True)
    (found,) = judge(experiment(check), RUNS)
    assert found.findings[0].measured == pytest.approx(4.303 * 5.0 / 3**0.5, rel=1e-3)
    (found,) = judge(experiment(check), RUNS[:1])
    assert found.findings[0].measured is None, "one repetition has no band"


def test_a_value_says_how_many_repetitions_count() -> None:
    """Of a ratio those that count on both sides; of several conditions the least and most."""
    runs = [replaced(r, void=r.void or (r.scheme, r.repetition) == ("wifi", 1)) for r in RUNS]
    (found,) = judge(experiment(ratio("normal", 0.9)), runs)
    assert [(f.counted, f.repetitions) for f in found.findings] == [(2, 3)]
    assert found.measured == "0.95 (2 of 3 repetitions)"
    only_there = [r if r.condition == "normal" else replaced(r, void=False) for r in runs]
    (found,) = judge(experiment(ratio("*", 0.7)), only_there)
    assert found.measured == "0.8 to 0.95 (2 to 3 of 3 repetitions)"
    (found,) = judge(experiment(ratio("normal", 0.9)), RUNS)
    assert found.measured == "0.95", "all of them count"


def test_what_others_have_says_of_how_many_repetitions_it_is() -> None:
    value = Selection(metric="goodput_mbps", scheme="sumrate", condition="normal")
    peer = [run("tquic", "normal", i, 80.0, void=i > 0) for i in range(3)]
    check = Check(statement="at least 90", goal="P1", value=value, at_least=90.0)
    ((finding,),) = (v.findings for v in judge(experiment(check), [*RUNS, *peer]))
    assert (finding.counted, finding.beside_counted) == (3, {"tquic": 1})


def test_what_is_pooled_over_repetitions_is_of_all_that_count_on_both_sides() -> None:
    """The value itself stands at one repetition only."""
    metric = "pooled_percentiles_over_mptcp"
    runs = [run("sumrate", "normal", i, 90.0) for i in range(3)]
    runs += [run("mptcp", "normal", i, 80.0, void=i == 0) for i in range(3)]
    runs[1].add(metric, 1.1, "ratio")
    value = Selection(metric=metric, scheme="sumrate", condition="normal")
    check = Check(statement="at least 1", goal="P3", value=value, at_least=1.0)
    (found,) = judge(experiment(check), runs)
    assert found.measured == "1.1 (2 of 3 repetitions)"


@pytest.mark.parametrize(
    ("metric", "unit", "statistic", "measured"),
    [
        ("goodput_mbps", "Mbit/s", "median", "5 Mbit/s"),
        ("goodput_mbps", "", "median", "5 Mbit/s"),
        ("reassembly_peak_bytes", "B", "max", "5 B"),
        ("sum_ratio", "ratio", "median", "5"),
        ("share_at_least_0_db", "", "median", "5"),
        ("goodput_mbps", "Mbit/s", "count", "3"),
    ],
)
def test_a_value_has_its_unit(metric: str, unit: str, statistic: Statistic, measured: str) -> None:
    runs = [Run("sumrate", "normal", "cubic", "default", i, 1) for i in range(3)]
    for each in runs:
        each.add(metric, 5.0, unit)
    value = Selection(metric=metric, scheme="sumrate", condition="normal", statistic=statistic)
    check = Check(statement="at least 1", goal="P1", value=value, at_least=1.0)
    (found,) = judge(experiment(check), runs)
    assert found.measured == measured


def test_a_range_has_its_unit_and_a_note_at_its_end() -> None:
    assert said((1.0, 1.0)) == "1"
    assert said((0.5, 1e6)) == "0.5 to ∞", "over nothing"
    assert said((1e6, 1e6), "byte") == "1,000,000 byte"
    assert said((1.0, 20000.0), "ms", "3 of 5 repetitions") == "1 to 20,000 ms (3 of 5 repetitions)"
    assert [few([5, 5], 5), few([9, 6], 5), few([], 5)] == ["", "", ""]
    assert [few([3], 5), few([3, 3], 5), few([3, 9], 5)] == [
        "3 of 5 repetitions",
        "3 of 5 repetitions",
        "3 to 5 of 5 repetitions",
    ]


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(i) for i in range(1, 101)]
    assert [percentile(values, share) for share in (0.05, 0.5, 0.99, 1.0)] == [5, 50, 99, 100]
    assert percentile([], 0.5) is None


def blocked() -> Bins:
    """2 s at 800 Mbit/s; dark from 1.0 to 1.3 s: 20 ms of nothing, then half; back at 1.4 s."""
    full, half = 500_000, 250_000
    received = [full] * 400
    received[200:204] = [0] * 4
    received[204:280] = [half] * 76
    return Bins(STEP_S, received)


def test_a_blackout_is_measured() -> None:
    bins = blocked()
    assert bins.mbps(0.0, 1.0) == pytest.approx(800.0)
    assert bins.recovery_ms(Blackout(1.0, 1.3)) == pytest.approx(90.0)
    made = run("sumrate", "normal", 0, 700.0)
    add_blackouts(made, bins, [Blackout(1.0, 1.3)], [(0.2, 90.0), (0.9985, 23.7)])
    assert made.value("blackout_stall_ms") == pytest.approx(23.7)
    assert made.value("blackout_goodput_mbps") == pytest.approx(400.0 * 56 / 60)


def test_a_silence_belongs_to_a_blackout_that_it_touches_or_follows() -> None:
    silences = [(0.5, 49.8), (1.25, 55.0), (1.55, 70.0), (1.9, 300.0)]
    assert longest_silence_ms(silences, 1.0, 1.3) == 55.0
    made = run("sumrate", "normal", 0, 700.0)
    add_blackouts(made, blocked(), [Blackout(1.0, 1.3)], silences)
    assert made.value("blackout_stall_ms") == 70.0, "it stalls as the radio returns"
    assert longest_silence_ms([], 1.0, 1.3) == 0.0


def test_a_rate_that_never_returns_has_no_recovery_time() -> None:
    assert Bins(STEP_S, [1000] * 200 + [1] * 200).recovery_ms(Blackout(1.0, 1.2)) is None


def test_a_rate_that_never_returns_counts_until_the_end() -> None:
    made = run("sumrate", "normal", 0, 700.0)
    add_blackouts(made, Bins(STEP_S, [1000] * 200 + [1] * 200), [Blackout(1.0, 1.2)], [])
    assert made.value("recovery_ms") == pytest.approx(800.0)


def test_samples_of_100_ms_leave_out_start_and_end() -> None:
    made = run("sumrate", "normal", 0, 700.0)
    made.series = blocked().series()
    assert len(made.series) == 20
    add_samples(made)
    assert made.value("sample_p50_mbps") == pytest.approx(800.0)
    assert made.value("sample_p5_mbps") == pytest.approx(320.0)
    assert made.value("sample_spread") == pytest.approx(0.4)


def test_totals_become_bytes_of_each_bin() -> None:
    assert Bins.of_totals(STEP_S, [5, 5, 9]).received == [5, 0, 4]
