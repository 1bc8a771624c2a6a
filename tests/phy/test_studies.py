"""The two studies: quantities, verdicts that can fail, figures and the command."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.catalogue import claims
from sumrate.phy.parameters import ParameterError
from sumrate.phy.studies import module_claims, wlan_claims
from sumrate.phy.studies.finding import Finding, over_seeds
from sumrate.phy.studies.module import interfered, sweep
from sumrate.phy.studies.wlan import FEET, Site, measure


def test_every_claim_has_a_verdict() -> None:
    found = [f.claim for f in module_claims.findings(module_claims.study())]
    assert found == [
        *("W-rssi", "W-1-udp", "W-1-tcp", "W-2-udp", "W-2-tcp", "W-3-udp", "W-3-tcp"),
        *("W-tcp-max", "W-4-udp", "W-4-tcp", "W-5-aci", "W-5-cci", "W-6-aci", "W-6-cci"),
        *("W-7", "W-8"),
    ]
    found = [f.claim for f in wlan_claims.findings(measure(1))]
    assert found == [
        *("F-2a-near", "F-2a-mid", "F-2a-far", "F-2b"),
        *("F-3a-near", "F-3a-mid", "F-3b", "F-3c"),
    ]


def test_the_catalogue_says_which_claims_were_fitted() -> None:
    found = [*module_claims.findings(module_claims.study()), *wlan_claims.findings(measure(1))]
    said = {f.claim for f in found if claims()[f.claim].get("fitted")}
    assert said == {f.claim for f in found if f.fitted}


def test_verdicts_follow_the_numbers() -> None:
    """A study with halved goodput loses the claims that speak of a gigabit."""
    done = module_claims.study()
    held = {f.claim for f in module_claims.findings(done) if f.holds}
    assert {"W-3-udp", "W-tcp-max", "W-1-udp"} <= held
    halved = replace(
        done,
        sweeps={k: replace(s, goodput_mbps=s.goodput_mbps / 2) for k, s in done.sweeps.items()},
    )
    lost = {f.claim for f in module_claims.findings(halved) if not f.holds}
    assert {"W-3-udp", "W-3-tcp", "W-tcp-max", "W-1-udp"} <= lost


def test_most_seeds_decide() -> None:
    runs = [
        [Finding("X", held, str(number), "")] for number, held in enumerate((False, True, True))
    ]
    (found,) = over_seeds(runs)
    assert (found.holds, found.measured, found.agreement) == (True, "1", 0.6667)
    (tied,) = over_seeds(runs[:2])
    assert (tied.holds, tied.agreement) == (False, 0.5)


def test_sweeps_have_their_shape_and_seed() -> None:
    one = sweep(7912, "weak", "udp", seed=3, runs=4)
    assert one.goodput_mbps.shape == (9, 4)
    assert (one.goodput_mbps == sweep(7912, "weak", "udp", seed=3, runs=4).goodput_mbps).all()
    assert (one.spread >= 0).all()
    demanding = sweep(7912, "weak", "udp", seed=3, runs=4, mode="sensitivity")
    assert demanding.mean[8] < one.mean[8]


def test_a_link_on_the_same_channel_is_worse() -> None:
    aci, cci = interfered("aci"), interfered("cci")
    assert (cci.share < aci.share).all()
    assert cci.loss.max() > aci.loss.max()
    with pytest.raises(ParameterError, match="kind is 'oci'"):
        interfered("oci")


def test_rates_are_stable_only_at_short_distance() -> None:
    found = measure(2, (5, 10, 75, 85, 95))
    assert found.phy_mbps.shape == (5, 5, 20)
    mean, deviation = found.by_distance(found.phy_mbps)
    assert mean[:2].tolist() == [3850.0, 3850.0]
    assert deviation[:2].tolist() == [0.0, 0.0]
    assert deviation[2:].min() > 100
    assert found.tcp_mbps.max() <= 942


def test_without_reflections_the_signal_is_friis() -> None:
    quiet = Site(fading_db=0.0, wander_m=0.0, free_space=True, laptop_height_m=1.2)
    found = measure(1, (10, 20, 40), site=quiet, sessions=1)
    assert np.diff(found.rssi_dbm[:, 0]) == pytest.approx([-6.07, -6.11], abs=0.02)
    uneven = measure(1, (100, 105, 110, 115, 120, 125), sessions=3).rssi_dbm
    assert (
        uneven.std()
        > measure(
            1, (100, 105, 110, 115, 120, 125), site=Site(free_space=True), sessions=3
        ).rssi_dbm.std()
    )


def test_distances_outside_of_the_study_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"feet is -3\.0"):
        measure(1, (-3,))
    with pytest.raises(ParameterError, match="sessions is 0"):
        measure(1, (3,), sessions=0)
    assert max(FEET) == 155


def test_the_command_draws_and_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["sumrate-lab", "phy", "module", "wlan", "--output", str(tmp_path), "--json"]
    words += ["--seeds", "2"]
    monkeypatch.setattr(sys, "argv", words)
    assert cli.main() == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "findings.json").read_text())
    assert len(printed["findings"]["module"]) == 16
    for name in ("link-mcs", "link-interference", "link-distance"):
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    monkeypatch.setattr(sys, "argv", [*words[:3], "--seed", "-1"])
    assert cli.main() == 2
