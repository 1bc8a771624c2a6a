"""Links left out, samples that spread, and peers that are ahead."""

import json
from pathlib import Path

import pytest

from sumrate.lab.experiment.ahead import ahead
from sumrate.lab.experiment.derived import add_spreads, add_unimpaired
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.record import Run

RATES = {"wifi": 600.0, "wigig": 1400.0, "sumrate": 1990.0}


def runs(condition: str) -> list[Run]:
    found = []
    for scheme, rate in RATES.items():
        run = Run(scheme, condition, "cubic", "default", 0, 1)
        run.add("goodput_mbps", rate, "Mbit/s")
        if scheme == "sumrate":
            run.add("sum_ratio", rate / 2000.0, "ratio")
        found.append(run)
    return found


def test_who_leaves_a_late_radio_out_scores_the_other() -> None:
    late, normal = runs("delay-wigig"), runs("normal")
    for _ in range(2):  # as often as asked
        add_unimpaired(load("five-conditions"), [*late, *normal])
    assert late[-1].value("unimpaired_ratio") == pytest.approx(0.3)
    assert sum(m.name == "unimpaired_ratio" for m in late[-1].metrics) == 1
    assert normal[-1].value("unimpaired_ratio") is None, "nothing is impaired"
    assert late[0].value("unimpaired_ratio") is None, "a link alone has no sum"


def test_the_samples_of_all_repetitions_spread_more_than_those_of_each() -> None:
    both = []
    for repetition, rate in enumerate((100.0, 1000.0)):
        run = Run("sumrate", "los", "cubic", "default", repetition, repetition)
        run.series = [(0.05 + at / 10, rate) for at in range(40)]
        both.append(run)
    void = Run("sumrate", "los", "cubic", "default", 2, 2, void=True)
    void.series = [(0.05 + at / 10, 1.0) for at in range(40)]
    add_spreads([void, *both])
    assert both[0].value("pooled_sample_p5_over_p95") == pytest.approx(0.1)
    assert both[1].value("pooled_sample_p5_over_p95") is None
    assert void.value("pooled_sample_p5_over_p95") is None


def test_a_peer_that_is_ahead_is_named(tmp_path: Path) -> None:
    finding = {
        "statement": "at least 0.98 of the sum",
        "condition": "loss-wigig",
        "congestion_control": "cubic",
        "buffers": "large",
        "measured": 0.98,
        "expected": "at least 0.98",
        "beside": {"tquic": 1.04, "mptcp": 0.985, "sumrate-thesis": 2.0},
    }
    stalls = {**finding, "expected": "at most 60", "measured": 53.0, "beside": {"mptcp": 26.0}}
    verdicts = [{"goal": "P1", "findings": [finding]}, {"goal": "S4", "findings": [stalls]}]
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "verdicts.json").write_text(json.dumps(verdicts), encoding="utf-8")
    (tmp_path / "head-of-line").mkdir()
    hole = {**finding, "measured": 1.4, "expected": "", "beside": {}, "condition": "clean"}
    hole["statement"] = (
        "without a hole, for comparison: the latest block of Sumrate over kernel MPTCP's"
    )
    kept = json.dumps([{"goal": "S23", "findings": [hole, {**hole, "measured": 0.9}]}])
    (tmp_path / "head-of-line" / "verdicts.json").write_text(kept, encoding="utf-8")
    over, first, second = ahead(tmp_path)
    assert "Sumrate has 1.4 of what kernel MPTCP has" in over.line()
    assert (first.peer, first.where, second.peer) == ("tquic", "loss-wigig, large", "mptcp")
    assert first.line().endswith("TQUIC 1.04, Sumrate 0.98 (`sumrate-lab run peers`).")
