"""Kept results are of runs as long, and begun as early, as the experiments say now."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.model import Experiment
from sumrate.lab.experiment.topology import seconds_of, warmup_of
from sumrate.lab.programs import REPOSITORY

KEPT = sorted((REPOSITORY / "docs" / "results" / "lab").glob("*/manifest.json"))


def differing(experiment: Experiment, runs: list[dict[str, Any]]) -> list[str]:
    """Commands of iperf3 whose times are not those of their condition."""
    conditions = {condition.name: condition for condition in experiment.conditions}
    found = []
    for entry in runs:
        command = str(entry.get("command", ""))
        measured = re.search(r"iperf3 .*--time (\S+)", command)
        if measured is None or entry["condition"] not in conditions:
            continue
        omitted = re.search(r"--omit (\S+)", command)
        condition = conditions[entry["condition"]]
        wanted = (seconds_of(experiment, condition), warmup_of(experiment, condition))
        made = (float(measured[1]), float(omitted[1]) if omitted else 0.0)
        if made != wanted:
            found.append(f"{entry['condition']}, {entry['scheme']}: {made} s, now {wanted} s")
    return found


@pytest.mark.parametrize("manifest", KEPT, ids=lambda path: path.parent.name)
def test_a_kept_result_is_of_the_times_that_its_experiment_has(manifest: Path) -> None:
    runs = json.loads(manifest.read_text(encoding="utf-8"))["runs"]
    assert not differing(load(manifest.parent.name), runs)


def test_other_times_are_found() -> None:
    experiment = load("buffer-sweep")
    entry = {"condition": "loss", "scheme": "wifi"}
    said = "iperf3 --client 10.1.1.2 --time 8 --json --omit "
    assert not differing(experiment, [entry | {"command": f"{said}10"}])
    assert differing(experiment, [entry | {"command": f"{said}1"}])
