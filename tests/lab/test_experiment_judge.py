"""Metrics of runs, and the verdicts that follow from them."""

import pytest

from sumrate.lab.experiment.judge import judge
from sumrate.lab.experiment.model import (
    Check,
    ConditionSetting,
    Experiment,
    LinkSetting,
    SchemeSetting,
    Selection,
)
from sumrate.lab.experiment.record import Bins, Run, add_blackouts, add_samples, percentile
from sumrate.lab.links import Blackout

STEP_S = 0.005


def experiment(*checks: Check) -> Experiment:
    return Experiment(
        schema=1,
        name="trial",
        title="Trial",
        question="Is it?",
        method="bench",
        seconds=1.0,
        links=(LinkSetting(name="wifi", title="WiFi", rate_mbps=100.0, rtt_ms=3.0),),
        conditions=(
            ConditionSetting(name="normal", title="normal"),
            ConditionSetting(name="loss", title="loss"),
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


def test_what_was_not_measured_is_not_run() -> None:
    (found,) = judge(experiment(ratio("normal", 0.5)), [])
    assert (found.verdict, found.measured) == ("not-run", "")
    (found,) = judge(experiment(ratio("*", 0.5)), [r for r in RUNS if r.condition == "normal"])
    assert found.verdict == "not-run", "one condition is not all of them"


def test_a_ratio_is_of_repetitions_that_count_on_both_sides() -> None:
    """Each has its own traces: a void run of one scheme must not leave the others' easy ones."""
    goodput = {"sumrate": (100.0, 10.0, 100.0), "wifi": (80.0, 8.0, 80.0)}
    runs = [run(s, "normal", i, v) for s, values in goodput.items() for i, v in enumerate(values)]
    for late in runs[3], runs[5]:
        late.void = True
    (verdict,) = judge(experiment(ratio("normal", 1.2)), runs)
    assert (verdict.verdict, verdict.measured) == ("holds", "1.25")
    runs[4].void = True
    (verdict,) = judge(experiment(ratio("normal", 1.2)), runs)
    assert verdict.verdict == "not-run"


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
    assert bins.longest_silence_ms(1.0, 1.3) == pytest.approx(20.0)
    assert bins.longest_silence_ms(1.5, 1.9) == 0.0
    assert bins.recovery_ms(Blackout(1.0, 1.3)) == pytest.approx(90.0)
    made = run("sumrate", "normal", 0, 700.0)
    add_blackouts(made, bins, [Blackout(1.0, 1.3)])
    assert made.value("blackout_stall_ms") == pytest.approx(20.0)
    assert made.value("blackout_goodput_mbps") == pytest.approx(400.0 * 56 / 60)


def test_a_rate_that_never_returns_has_no_recovery_time() -> None:
    assert Bins(STEP_S, [1000] * 200 + [1] * 200).recovery_ms(Blackout(1.0, 1.2)) is None


def test_a_rate_that_never_returns_counts_until_the_end() -> None:
    made = run("sumrate", "normal", 0, 700.0)
    add_blackouts(made, Bins(STEP_S, [1000] * 200 + [1] * 200), [Blackout(1.0, 1.2)])
    assert made.value("recovery_ms") == pytest.approx(800.0)


def test_samples_of_100_ms_leave_out_start_and_end() -> None:
    made = run("sumrate", "normal", 0, 700.0)
    made.series = blocked().series()
    assert len(made.series) == 20
    add_samples(made)
    assert made.value("sample_p50_mbps") == pytest.approx(800.0)
    assert made.value("sample_p5_mbps") == pytest.approx(320.0)


def test_totals_become_bytes_of_each_bin() -> None:
    assert Bins.of_totals(STEP_S, [5, 5, 9]).received == [5, 0, 4]
