"""Which links are measured before runs, and what becomes of one that is off."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab import calibration
from sumrate.lab.calibration import calibrate, is_off, measurable, off, plain, words
from sumrate.lab.links import Blackout, Link
from sumrate.lab.scene import radio

WIFI = radio("wifi", 1, 630.0, 3.0, Blackout(1.0, 2.0))
WIGIG = radio("wigig", 2, 1800.0, 2.0)


def row(name: str, *, ok: bool) -> dict[str, Any]:
    return {
        "link": name,
        "quantity": "rate_mbps",
        "direction": "b_to_a",
        "expected": 630.0,
        "measured": 630.0 if ok else 500.0,
        "tolerance": 12.6,
        "ok": ok,
    }


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The links of each measurement; WiGig is off twice."""
    calls: list[list[str]] = []

    def measured(links: list[Link], _seed: int, _config: Path) -> list[dict[str, Any]]:
        calls.append([link.name for link in links])
        return [row(link.name, ok=link.name != "wigig" or len(calls) > 2) for link in links]

    monkeypatch.setattr(calibration, "_measured", measured)
    return calls


def test_a_link_is_measured_once_without_what_changes_it(
    asked: list[list[str]], tmp_path: Path
) -> None:
    lossy = replace(WIFI, down=replace(WIFI.down, loss=0.05))
    bursting = replace(WIFI.down, burst_bytes=65_536)
    bursts = replace(WIFI, down=bursting, up=bursting)
    conditions = [(WIFI,), (replace(WIFI, blackouts=()),), (bursts,), (lossy,), (lossy,)]
    found = calibrate(conditions, seed=1, folder=tmp_path)
    assert asked == [["wifi"], ["wifi"]], "blackouts and bursts make no other link, loss does"
    assert [r["ok"] for r in found] == [True, True]


def test_what_is_off_is_measured_again(asked: list[list[str]], tmp_path: Path) -> None:
    found = calibrate([(WIFI, WIGIG)], seed=1, folder=tmp_path)
    assert asked == [["wifi", "wigig"], ["wigig"], ["wigig"]]
    assert {r["link"]: r["ok"] for r in found} == {"wifi": True, "wigig": True}


def test_what_stays_off_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(calibration, "_measured", lambda *_: [row("wifi", ok=False)])
    (found,) = calibrate([(WIFI,)], seed=1, folder=tmp_path)
    assert words(found) == "wifi, b_to_a: rate_mbps is 500.0, 630.0 was set"


def test_a_link_that_carries_nothing_one_way_has_no_round_trip() -> None:
    assert measurable(plain(WIFI))
    assert not measurable(replace(WIFI, up=replace(WIFI.up, loss=1.0)))
    assert not measurable(replace(WIGIG, wire="wifi"))


def test_a_long_round_trip_may_be_off_by_a_share_of_it() -> None:
    late = {"link": "wifi", "quantity": "round_trip_ms", "direction": "a_to_b", "expected": 503.0}
    assert not is_off({**late, "measured": 503.9, "tolerance": 0.5, "ok": False})
    assert is_off({**late, "measured": 506.0, "tolerance": 2.5, "ok": False})
    assert is_off({**late, "expected": 3.0, "measured": 3.9, "tolerance": 0.5, "ok": False})
    assert is_off(row("wifi", ok=False)), "rates and losses have their tolerance"


def test_a_slow_lossy_link_has_few_packets_and_more_tolerance() -> None:
    slow = {"link": "umts", "quantity": "rate_mbps", "expected": 1.96, "ok": False}
    loss = {"quantity": "loss", "expected": 0.02, "measured": 0.021, "ok": True}
    rows = [
        {**loss, "link": "umts", "direction": "a_to_b"},
        {**slow, "direction": "a_to_b", "measured": 1.8},
        {**slow, "direction": "b_to_a", "measured": 1.8},
        {**slow, "direction": "a_to_b", "measured": 1.7},
    ]
    assert list(off(rows)) == rows[2:], "what loses nothing has two per cent, and 1.7 is too little"
