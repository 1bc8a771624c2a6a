"""Traces of scenes: the published statistics, access in the outages, and reproducibility."""

from dataclasses import replace

import numpy as np
import pytest

from sumrate.phy.blockage.angular import AngularBlockage
from sumrate.phy.interference import SharedAir
from sumrate.phy.parameters import ParameterError
from sumrate.traces.access_delay import PROTOCOLS, Alone, BeaconIntervals, Contention
from sumrate.traces.calibration import MEASURED
from sumrate.traces.course import channel, make
from sumrate.traces.link_trace import LinkTrace
from sumrate.traces.measure import pooled
from sumrate.traces.scenarios import SCENES, indoor_wlan, scene
from sumrate.traces.summary import summary

THESIS = (
    ("thesis-los", "wigig-los", 30),
    ("thesis-nlos", "wigig-nlos", 10),
    ("thesis-mobility", "wigig-mobility", 4),
)


@pytest.mark.parametrize(("name", "kind", "seeds"), THESIS)
def test_statistics_are_near_the_measured_ones(name: str, kind: str, seeds: int) -> None:
    """Mean within 10 %, p5 and p95 within 20 %, sign of the autocorrelations."""
    traces = [make(scene(name), 370.0, seed).rate_trace() for seed in range(1, seeds + 1)]
    found, measured = pooled(traces), MEASURED[kind]
    assert found.mean == pytest.approx(measured.mean, rel=0.10)
    assert found.p5 == pytest.approx(measured.p5, rel=0.20)
    assert found.p95 == pytest.approx(measured.p95, rel=0.20)
    assert np.sign(found.autocorrelation_1s) == np.sign(measured.autocorrelation_1s)
    assert np.sign(found.autocorrelation_5s) == np.sign(measured.autocorrelation_5s)


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_makes_a_trace(name: str) -> None:
    trace = make(scene(name), 1.0, 3)
    assert trace.steps == 100
    assert trace.metadata["scenario"] == name
    assert (trace.rate_mbps[trace.in_state("outage")] == 0).all()
    assert (trace.rate_mbps[trace.mcs < 0] == 0).all()
    used = trace.ap_beam >= 0
    assert (trace.client_beam[used] >= 0).all()
    assert (trace.snr_db[used] > -40).all()


def columns(trace: LinkTrace) -> list[np.ndarray]:
    return [trace.rate_mbps, trace.snr_db, trace.ap_beam, trace.state, trace.extra_delay_ms]


def test_traces_depend_on_the_seed() -> None:
    one, two, other = (make(scene("thesis-mobility"), 5.0, seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(columns(one), columns(two), strict=True))
    assert (one.snr_db != other.snr_db).any()


def test_an_outage_lasts_until_the_contention_is_won() -> None:
    """With 16 clients JPOC ends outages sooner than 802.11ad, and alone sooner than both."""
    busy = replace(scene("thesis-mobility"), contention=Contention(clients=16))
    traces = {name: make(busy, 120.0, 5, name) for name in PROTOCOLS}
    dark = {name: trace.in_state("outage").mean() for name, trace in traces.items()}
    carried = {name: trace.rate_mbps.mean() for name, trace in traces.items()}
    assert dark["alone"] < dark["jpoc"] < dark["dot11ad"]
    assert carried["alone"] > carried["jpoc"] > carried["dot11ad"]
    assert traces["dot11ad"].outages_s().max() > 1.0


def test_refinement_reserves_contests_for_lost_links() -> None:
    base = scene("thesis-mobility")
    refined = replace(base, training=replace(base.training, refined_s=0.1))
    plain, better = (make(one, 120.0, 5) for one in (base, refined))
    contests = [summary(trace)["contests"]["interval_s"] for trace in (plain, better)]
    assert contests[0] < 2.0
    assert contests[1] > 5 * contests[0]
    dark = [trace.in_state("outage").mean() for trace in (plain, better)]
    assert dark[1] < 0.2 * dark[0]
    assert better.metadata["refined_s"] == 0.1
    with pytest.raises(ParameterError, match="refined_s is -1"):
        replace(base.training, refined_s=-1.0)


def test_access_delay_has_its_mean() -> None:
    generator = np.random.default_rng(1)
    law = BeaconIntervals("x", 0.25)
    drawn = np.array([law.delay_s(generator) for _ in range(20_000)])
    assert drawn.mean() == pytest.approx(0.1 * (0.5 + 3) + 0.005, rel=0.02)
    assert drawn.min() >= 0.005
    assert Alone().delay_s(generator) == 0.002
    paused = BeaconIntervals("y", 0.25, retry_limit=2, backoff=5)
    drawn = np.array([paused.delay_s(generator) for _ in range(20_000)])
    beyond = 0.75**3 / 0.25  # mean number of failures after the second
    assert drawn.mean() == pytest.approx(0.1 * (0.5 + 3 + beyond * 2) + 0.005, rel=0.03)
    contention = Contention(clients=16)
    assert contention.dot11ad().success == pytest.approx((7 / 8) ** 15)
    assert contention.jpoc().success > 0.9
    assert contention.mini_slots == 82
    assert Contention(clients=1).dot11ad().success == 1.0


def test_geometry_follows_the_client() -> None:
    moving = scene("thesis-mobility")
    times = np.arange(0, 16.0, 0.01)
    generator = np.random.default_rng(2)
    track = moving.drive(times, generator)
    air = channel(moving, track, generator)
    best = np.array([air.sweep(step).max() for step in range(0, 1600, 40)])
    facing = np.cos(track.yaw[::40]) < -0.9
    assert best[facing].min() > best[~facing].mean()
    pair = air.pair(5, 7, 100, 140)
    assert pair[0] == pytest.approx(air.sweep(100)[5, 7])
    assert pair[39] == pytest.approx(air.sweep(139)[5, 7])


def test_a_client_may_turn_many_times() -> None:
    trace = make(scene("thesis-rotation"), 40.0, 1)
    turn = round(360 / 37 / trace.step_s)
    rate = trace.rate_mbps
    assert np.corrcoef(rate[:-turn], rate[turn:])[0, 1] > 0.3, "every turn is like the last"


def test_bodies_crowds_and_neighbours_cost_rate() -> None:
    base = scene("thesis-nlos")
    free = make(base, 20.0, 4)
    crowded = make(replace(base, crowd=AngularBlockage(blockers=12)), 20.0, 4)
    held = make(replace(base, held="landscape"), 20.0, 4)
    beside = make(replace(base, neighbour=SharedAir(6.5, 4.8, deferred=0.2)), 20.0, 4)
    assert crowded.rate_mbps.mean() < free.rate_mbps.mean()
    assert held.rate_mbps.mean() < free.rate_mbps.mean()
    assert 0.3 < beside.rate_mbps.mean() / free.rate_mbps.mean() < 0.9
    assert beside.loss.max() > free.loss[free.rate_mbps > 0].min()


def test_published_ranges_are_met() -> None:
    """Strong and weak signals, and the schemes at 10 and 70 ft."""
    strong, weak = (make(scene(name), 5.0, 1) for name in ("strong", "weak"))
    assert -43.5 < np.median(strong.rssi_dbm) < -41
    assert -69 < np.median(weak.rssi_dbm) < -65
    near, far = (make(scene(f"lobby-{feet}ft"), 10.0, 1) for feet in (10, 70))
    assert (near.mcs == 8).mean() >= 0.99
    assert (far.mcs == 6).mean() >= 0.85
    assert make(scene("wlan-10ft"), 2.0, 1).rate_mbps.max() == pytest.approx(975, abs=5)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ParameterError, match="scenario is 'moon': allowed is thesis-los"):
        scene("moon")
    with pytest.raises(ParameterError, match="access is 'aloha': allowed is"):
        make(scene("strong"), 1.0, 1, "aloha")
    with pytest.raises(ParameterError, match="seconds is 0"):
        make(scene("strong"), 0.0, 1)
    with pytest.raises(ParameterError, match="seed is -1"):
        make(scene("strong"), 1.0, -1)
    with pytest.raises(ParameterError, match=r"feet is 200\.0: allowed is at least 2"):
        indoor_wlan(200.0)
    with pytest.raises(ParameterError, match="slots is 1: allowed is at least 2"):
        Contention(clients=2, slots=1).named("dot11ad")
