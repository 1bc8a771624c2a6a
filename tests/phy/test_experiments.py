"""Every claim about the 60 GHz link has an experiment that judges it."""

import json
import re
import sys
from pathlib import Path

import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.catalogue import claims, entries

LINK = re.compile(r"W-rssi|W-tcp-max|W-[1-8](-|$)|F-")


def test_every_claim_on_the_link_has_a_judge(tmp_path: Path) -> None:
    wanted = {identity for identity in claims() if LINK.match(identity)}
    assert len(wanted) == 24
    judged = {e.id: {check.experiment for check in e.checks} for e in entries(tmp_path)}
    assert all(name.startswith("link-") for i in wanted for name in judged[i] or ("",))


def test_the_studies_are_run_and_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["run", "link-module", "link-distance", "--quick", "--json", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", *words])
    assert cli.main() == 0
    verdicts = json.loads(capsys.readouterr().out)
    assert {v["experiment"] for v in verdicts} == {"link-module", "link-distance"}
    found = {verdict["claim"]: verdict for verdict in verdicts}
    assert found["W-tcp-max"]["verdict"] == "holds"
    assert found["F-2a-near"]["verdict"] == "holds"
    assert found["F-3b"]["verdict"] == "depends"
    assert found["F-3b"]["cause"]
    for path in ("link-module/link-mcs.png", "link-distance/link-distance.png"):
        assert (tmp_path / path).is_file()
