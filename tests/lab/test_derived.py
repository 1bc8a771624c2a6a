"""Links left out, samples that spread, and peers that are ahead."""

import json
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.experiment.ahead import ahead, compares_with
from sumrate.lab.experiment.comparisons import add_comparisons
from sumrate.lab.experiment.derived import SECOND, add_shaped, add_spreads
from sumrate.lab.experiment.load import load, names
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import links_shown
from sumrate.verdict.model import PEERS

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
        add_comparisons(load("five-conditions"), [*late, *normal])
    assert late[-1].value("unimpaired_ratio") == pytest.approx(0.3)
    assert sum(m.name == "unimpaired_ratio" for m in late[-1].metrics) == 1
    assert normal[-1].value("unimpaired_ratio") is None, "nothing is impaired"
    assert late[0].value("unimpaired_ratio") is None, "a link alone has no sum"


def test_goodput_is_compared_with_what_the_emulator_lets_through() -> None:
    """The rates are 630 and 1800 Mbit/s of IP; a full segment has 1448 bytes of 1500."""
    lossy = runs("loss-wigig")
    for run in lossy:
        run.add("path_wigig_mbps", 1400.0, "Mbit/s")
    for _ in range(2):  # as often as asked
        add_shaped(links_shown(load("five-conditions")), lossy)
    wifi, wigig, both = lossy
    payload = 1448 / 1500
    assert wifi.value("shaped_ratio") == pytest.approx(600.0 / (630.0 * payload))
    assert wigig.value("shaped_ratio") == pytest.approx(1400.0 / (1800.0 * payload * 0.95))
    whole = (630.0 + 1800.0 * 0.95) * payload
    assert both.value("shaped_ratio") == pytest.approx(1990.0 / whole)
    path = both.value("path_wigig_shaped_ratio")
    assert path == pytest.approx(1400.0 / (1800.0 * payload * 0.95))
    assert wigig.value("path_wigig_shaped_ratio") is None, "a link alone has one ratio"
    assert sum(m.name == "shaped_ratio" for m in both.metrics) == 1


@pytest.mark.parametrize("name", ["channel-traces", "blackout", "unshaped", "coupling"])
def test_a_rate_that_is_not_all_the_time_divides_nothing(name: str) -> None:
    experiment = load(name)
    changed = [s["condition"] for s in links_shown(experiment) if s["trace"] or s["blackouts"]]
    changed += [s["condition"] for s in links_shown(experiment) if s["medium"] or s["shares"]]
    assert changed
    found = [run for condition in dict.fromkeys(changed) for run in runs(condition)]
    add_shaped(links_shown(experiment), found)
    assert not any(run.value("shaped_ratio") for run in found)


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


def test_whole_seconds_hide_what_is_shorter_and_are_of_one_run_each() -> None:
    def run(repetition: int, rates: list[float]) -> Run:
        found = Run("sumrate", "los", "cubic", "default", repetition, repetition)
        # Half a second at each end is not steady; what is left over of a second is not one.
        steady = [rate for rate in rates for _ in range(SECOND // 2)]
        found.series = [
            (0.05 + at / 10, rate) for at, rate in enumerate([9e9] * 5 + steady + [9e9] * 6)
        ]
        return found

    # Half seconds of 50 and 150 are seconds of 100; the half second at the end is none.
    runs = [run(0, [50.0, 150.0] * 4 + [1.0]), run(1, [400.0, 400.0])]
    add_spreads(runs)
    assert runs[0].value("pooled_sample_p5_over_p95") == pytest.approx(1 / 400)
    assert runs[0].value("pooled_second_p5_over_p95") == pytest.approx(100 / 400)
    assert runs[0].value("pooled_second_p20_over_p95") == pytest.approx(100 / 400)
    assert runs[1].value("pooled_second_p5_over_p95") is None


def test_a_peer_that_is_ahead_is_named(tmp_path: Path) -> None:
    def keep(experiment: str, *verdicts: tuple[str, dict[str, Any]]) -> None:
        (tmp_path / experiment).mkdir()
        texts = dict.fromkeys(("verdict", "measured", "expected", "statement", "cause"), "")
        found = [{"goal": goal, **texts, "findings": [finding]} for goal, finding in verdicts]
        (tmp_path / experiment / "verdicts.json").write_text(json.dumps(found), encoding="utf-8")
        (tmp_path / experiment / "manifest.json").write_text("{}", encoding="utf-8")

    def check(experiment: str, part: str) -> dict[str, Any]:
        statement = next(c.statement for c in load(experiment).checks if part in c.statement)
        place = {"condition": "loss-wigig", "congestion_control": "cubic", "buffers": "large"}
        return {"statement": statement, **place, "expected": "", "holds": None, "beside": {}}

    sums = check("peers", "at least 0.98 of the sum beside every peer")
    sums |= {"measured": 0.98, "beside": {"tquic": 1.04, "mptcp": 0.985, "sumrate-thesis": 2.0}}
    copies = {**check("peers", "are sent twice"), "measured": 0.004, "beside": {"mptcp": 0.0}}
    hole = check("head-of-line", "without a hole, for comparison") | {"measured": 1.4}
    kept = check("rfc6356", "LIA: Sumrate's own subflows are coupled as well")
    cost = check("unshaped", "CPU seconds per GB, both ends: Sumrate encrypted")
    rate = check("unshaped", "Mbit/s: Sumrate encrypted")
    keep("peers", ("P1", sums), ("P8", copies))
    keep("head-of-line", ("S23", hole), ("S23", {**hole, "measured": 0.9}))
    # What a TCP keeps beside them is no lead, whoever leaves it more.
    keep("rfc6356", ("S62", {**kept, "measured": 1.07, "beside": {"mptcp": 1.25}}))
    dear = {**cost, "measured": 0.7, "beside": {"mptcp": 0.4, "aggligator": 3.0}}
    keep("unshaped", ("P4", dear), ("P4", {**rate, "measured": 2e4, "beside": {"mptcp": 1e4}}))
    gain = check("tiles", "all tiles alike, moving: over aggligator, in dB")
    keep("tiles", ("Q9", {**gain, "measured": -0.5}), ("Q9", {**gain, "measured": -0.05}))
    over, first, second, less, cheaper = ahead(tmp_path)
    assert "Sumrate is 0.5 dB behind aggligator" in less.line()
    assert "Sumrate has 1.4 of what kernel MPTCP has" in over.line()
    assert (first.peer, first.where, second.peer) == ("tquic", "loss-wigig, large", "mptcp")
    assert first.line().endswith("TQUIC 1.04, Sumrate 0.98 (`sumrate-lab run peers`).")
    assert (cheaper.peer, cheaper.theirs) == ("mptcp", 0.4)


@pytest.mark.parametrize("name", names())
def test_what_compares_with_a_peer_says_which_value_is_better(name: str) -> None:
    """Without that no document could say that the peer is ahead."""
    for check in load(name).checks:
        if any(compares_with(check, peer) for peer in PEERS) and check.value.scheme == "sumrate":
            limits = (check.at_least, check.at_most)
            is_width = check.value.statistic == "band"
            assert is_width or check.better or limits != (None, None), check.statement
