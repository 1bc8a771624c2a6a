"""Jitter, policers, gathering, loss bursts and rate steps, from a file to the emulator."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.calibration import plain
from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.topology import links_of, links_shown
from sumrate.lab.links import Link, configuration
from sumrate.lab.scene import radio
from tests.lab.test_experiment_files import GOOD, written

LINK = """rtt_ms = 3.0
rate_up_mbps = 10.0
jitter_sd_ms = 2.0
gather_ms = 15.0
burst_bytes = 65536
policer = true
"""
CONDITION = """title = "normal"
[conditions.links.wifi]
loss = 0.01
loss_burst = 8.0
reorder = true
jitter_sd_ms = 1.0
rate_steps = [[2.0, 0.5], [4.0, 1.0]]
"""


def of_emulator(link: Link) -> dict[str, Any]:
    (found,) = tomllib.loads(configuration([link], seed=1))["link"]
    return dict(found)


def experiment_text() -> str:
    return GOOD.replace("rtt_ms = 3.0\n", LINK).replace('title = "normal"\n', CONDITION)


def test_a_file_s_impairments_reach_the_emulator(tmp_path: Path) -> None:
    experiment = load("trial", written(tmp_path, experiment_text()))
    (link,) = links_of(experiment, experiment.conditions[0])
    found = of_emulator(link)
    both = {"delay_ms": 1.5, "queue_ms": 20.0, "burst_bytes": 65_536, "policer": True}
    both |= {"reorder": True, "jitter_sd_ms": 1.0}
    assert found["a_to_b"] == both | {"rate_mbps": 10.0, "gather_ms": 15.0}
    assert found["b_to_a"] == both | {"rate_mbps": 100.0, "loss": 0.01, "loss_burst": 8.0}
    steps = [(s["at_s"], s["direction"], s["rate_mbps"]) for s in found["schedule"]]
    assert steps[:2] == [(0.0, "a_to_b", 10.0), (0.0, "b_to_a", 100.0)], "each trigger starts anew"
    assert steps[2:4] == [(2.0, "a_to_b", 5.0), (2.0, "b_to_a", 50.0)]
    assert found["schedule_start"] == "trigger"


def test_the_manifest_shows_them(tmp_path: Path) -> None:
    (shown,) = links_shown(load("trial", written(tmp_path, experiment_text())))
    assert (shown["rate_mbps"], shown["rate_up_mbps"], shown["loss_burst"]) == (100.0, 10.0, 8.0)
    assert (shown["policer"], shown["reorder"], shown["gather_ms"]) == (True, True, 15.0)
    assert shown["rate_steps"] == [[2.0, 0.5], [4.0, 1.0]]
    (plain_link,) = links_shown(load("trial", written(tmp_path, GOOD)))
    new = ("rate_up_mbps", "policer", "reorder", "jitter_sd_ms", "gather_ms", "loss_burst")
    assert not [key for key in (*new, "rate_steps") if plain_link[key]]


def test_a_plain_link_has_none_of_their_keys() -> None:
    found = of_emulator(radio("wifi", 1, 20.0, 2.0))
    assert set(found["a_to_b"]) == {"rate_mbps", "delay_ms", "queue_ms"}
    assert "schedule" not in found


def test_calibration_keeps_the_jitter_and_drops_what_depends_on_the_traffic() -> None:
    link = radio("wifi", 1, 20.0, 2.0)
    varied = replace(link.down, jitter_sd_ms=3.0, policer=True, burst_bytes=9_000, gather_ms=5.0)
    found = plain(replace(link, down=varied, up=varied, rate_steps=((1.0, 0.5),)))
    assert found == replace(
        link, down=replace(link.down, jitter_sd_ms=3.0), up=replace(link.up, jitter_sd_ms=3.0)
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("jitter_sd_ms = -1.0", "Expected `float` >= 0.0 - .*jitter_sd_ms"),
        ("gather_ms = 1e9", "Expected `float` <= 3600000.0 - .*gather_ms"),
        ("rate_up_mbps = 0.0", "Expected `float` >= 0.001 - .*rate_up_mbps"),
        ("loss_burst = 0.5", "Expected `float` >= 1.0 - .*loss_burst"),
        ("loss = 0.9\nloss_burst = 2.0", "must be at least 9.00"),
        ("policer = true", "needs burst_bytes of at least 1500, its mtu"),
        ("policer = true\nburst_bytes = 2000\nmtu = 9000", "at least 9000"),
        ("rate_steps = [[2.0, 0.5], [1.0, 1.0]]", "rising times"),
        ("rate_steps = [[2.0, 0.0]]", "makes 0 Mbit/s, not 0.001 to"),
        ('rate_steps = [[2.0, 0.5]]\ntrace = "wifi-los"', "cannot have a trace"),
    ],
)
def test_values_out_of_bounds_are_refused_with_their_line(
    tmp_path: Path, change: str, said: str
) -> None:
    table = f'title = "normal"\n[conditions.links.wifi]\n{change}\n'
    text = GOOD.replace('title = "normal"\n', table)
    with pytest.raises(ExperimentError, match=said) as refused:
        load("trial", written(tmp_path, text))
    assert "trial.toml:" in str(refused.value)


def test_a_sleep_out_of_bounds_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace(
        "rtt_ms = 3.0\n", "rtt_ms = 3.0\nsleep = { after_ms = 0.0, wake_ms = 9.0 }\n"
    )
    with pytest.raises(ExperimentError, match=r"Expected `float` >= 0.001 - .*after_ms"):
        load("trial", written(tmp_path, text))
