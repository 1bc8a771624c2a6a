"""Draws of fbdt-world as emulated links, and how sockets and simulation are compared."""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sumrate.lab.draws.command import compared, kept, line
from sumrate.lab.draws.conditions import LEFT_OUT, WIRE, Draw, PathDraw, decoded, why_skipped
from sumrate.lab.links import configuration

PATH: dict[str, Any] = {
    "down_mbps": 20.0,
    "up_mbps": 10.0,
    "rtt_ms": 30.0,
    "bottleneck": {"queue_ms": 50.0},
    "burst_bytes": 0,
    "loss": 0.01,
    "loss_run": 1.0,
    "jitter_ms": 2.0,
    "overtaking": False,
    "gathered_ms": 0.0,
    "outages": [],
    "steps": [],
    "sleep": None,
    "others": 0,
}
OTHERWISE: dict[str, Any] = {
    "down_mbps": 21.0,
    "up_mbps": 11.0,
    "rtt_ms": 31.0,
    "bottleneck": {"policer_ms": 50.0},
    "burst_bytes": 20_000,
    "loss": 0.02,
    "loss_run": 3.0,
    "jitter_ms": 3.0,
    "overtaking": True,
    "gathered_ms": 10.0,
    "outages": [{"at_s": 1.0, "length_s": 0.5}],
    "steps": [{"at_s": 2.0, "factor": 0.5}],
    "sleep": {"rest_ms": 100.0, "wake_ms": 20.0},
}
"""Another value of every property of a path that the emulator has."""


def draw(path: dict[str, Any] = PATH, **changes: object) -> Draw:
    whole = {
        "seed": 7,
        "paths": [path, PATH],
        "shared": False,
        "control": "cubic",
        "buffer_bytes": 100_000,
        "work": {"kind": "bulk_down"},
        "time_s": 3.0,
    }
    return decoded(json.dumps(whole | changes))


def toml(found: Draw) -> str:
    return configuration(found.links(), seed=1)


@pytest.mark.parametrize("name", OTHERWISE)
def test_every_property_of_a_path_changes_its_link(name: str) -> None:
    assert toml(draw(PATH | {name: OTHERWISE[name]})) != toml(draw())


def test_every_field_is_converted_or_named_as_left_out() -> None:
    followed = {"paths", "control", "buffer_bytes", "work", "time_s"}
    assert followed | LEFT_OUT.keys() == set(Draw.__struct_fields__)
    assert OTHERWISE.keys() | {"others"} == set(PathDraw.__struct_fields__)


@pytest.mark.parametrize("place", ["draw", "path"])
def test_an_unknown_field_is_refused(place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="gravity"):
        draw(gravity=1.0) if place == "draw" else draw(PATH | {"gravity": 1.0})


def test_a_link_carries_the_payload_that_the_draw_says() -> None:
    (link, _) = tomllib.loads(toml(draw(PATH | {"gathered_ms": 8.0})))["link"]
    assert link["b_to_a"]["rate_mbps"] == pytest.approx(20.0 * WIRE)
    assert link["a_to_b"]["rate_mbps"] == pytest.approx(10.0 * WIRE)
    assert (link["a_to_b"]["gather_ms"], "gather_ms" in link["b_to_a"]) == (8.0, False)
    upload = draw(PATH | {"gathered_ms": 8.0}, work={"kind": "bulk_up"})
    (link, _) = tomllib.loads(toml(upload))["link"]
    assert "gather_ms" not in link["a_to_b"], "acknowledgements go the other way"


def test_a_policer_has_the_bytes_of_its_time_and_of_the_burst() -> None:
    policed = PATH | {"bottleneck": {"policer_ms": 80.0}, "burst_bytes": 1000}
    (link, _) = tomllib.loads(toml(draw(policed)))["link"]
    assert link["b_to_a"]["burst_bytes"] == round((200_000 + 1000) * WIRE)
    assert link["b_to_a"]["policer"]


def test_a_queue_has_as_many_bytes_at_every_rate() -> None:
    (link, _) = tomllib.loads(toml(draw(PATH | {"steps": OTHERWISE["steps"]})))["link"]
    slower = [entry for entry in link["schedule"] if entry["at_s"] == 2.0]
    assert [entry["queue_ms"] for entry in slower] == [100.0, 100.0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"shared": True}, "one bottleneck"),
        ({"work": {"kind": "messages", "bytes": 100, "every_ms": 10.0}}, "messages"),
        ({"paths": [PATH | {"down_mbps": 2000.0}]}, "above 1500"),
        ({"paths": [PATH | {"up_mbps": 0.0005}]}, "below"),
    ],
)
def test_what_cannot_be_run_is_skipped_with_a_reason(
    changes: dict[str, object], reason: str | None
) -> None:
    found = why_skipped(draw(PATH, **changes), 1500.0)
    assert found is None if reason is None else reason in str(found)


def row(seed: int, sockets: float, simulated: float, disturbed: str = "") -> dict[str, Any]:
    ends = {"stall_ms": 1.0, "in_order_p99_ms": 1.0}
    pair = {
        "sockets": {"goodput_mbps": sockets, "disturbed": disturbed} | ends,
        "simulated": {"goodput_mbps": simulated} | ends,
    }
    kind = {"seed": seed, "work": "bulk_down", "control": "bbr"}
    return kind | {"session": pair, "alone": [pair | {"path": 0}], "luck": 0.0}


def test_the_comparison_has_median_ninth_decile_and_the_worst_first() -> None:
    rows = [row(seed, 100.0 + seed, 100.0) for seed in range(11)]
    rows += [row(20, 900.0, 100.0, "late"), {"seed": 21, "work": "short", "control": "bbr"}]
    rows[-1]["skipped"] = "work of kind short"
    found = compared(rows)
    assert found["session"]["draws"] == 11
    assert found["session"]["disturbed"] == 1
    assert found["session"]["median"] == pytest.approx(0.05)
    assert found["session"]["p90"] == pytest.approx(0.09)
    assert not found["reached"], "5 % in the median is more than 3 %"
    assert [worst["seed"] for worst in found["worst"]][:2] == [10, 9]
    assert found["skipped"] == {"work of kind short": 1}
    assert compared([row(1, 101.0, 100.0)])["reached"]
    assert not compared(rows[-1:])["reached"], "nothing was compared"
    assert "disturbed" in line(rows[-2])
    assert "+10.0%" in line(rows[10])


def test_a_stopped_run_leaves_the_draws_before(tmp_path: Path) -> None:
    file = tmp_path / "draws.jsonl"
    assert kept(file) == {}
    file.write_text('{"seed": 1, "a": 1}\n{"seed": 1, "a": 2}\n{"seed": 2, "a"', encoding="utf-8")
    assert kept(file) == {1: {"seed": 1, "a": 2}}
