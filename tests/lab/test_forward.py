"""How soon the forward path follows reliability, out of the sender's event log."""

import json
from pathlib import Path

import pytest

from sumrate.lab.experiment.forward import add_forward
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load
from sumrate.lab.experiment.record import Run
from sumrate.traces.events import EventLog, read_event_log

CHANGES = [
    (0.1, "wifi", "forward"),
    (0.1, "wigig", "backward"),
    (11.2, "wigig", "forward"),
    (11.2, "wifi", "backward"),
    (16.0, "wifi", "forward"),
    (16.0, "wigig", "backward"),
]
"""Seconds since the process started, of which the first byte came after ten."""


def log(folder: Path) -> EventLog:
    path = folder / "serve.events"
    head = {"schema": "sumrate.event-log.v1", "version": "0", "role": "server", "pid": 1}
    lines = [{**head, "reference_time_s": 1000.0}]
    lines += [
        {
            "time_s": time_s,
            "name": "path:direction",
            "data": {"session": "s", "path": name, "direction": direction},
        }
        for time_s, name, direction in CHANGES
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_event_log(path)


def test_it_counts_from_the_change_to_the_wanted_link(tmp_path: Path) -> None:
    run = Run("dynamic", "changes", "cubic", "default", 0, 1)
    wanted = [(0.5, "wigig"), (4.5, "wifi"), (7.0, "wifi"), (7.5, "wigig")]
    add_forward(run, log(tmp_path), wanted, first_byte_s=1010.0, end_s=8.0)
    follows = [m.value for m in run.metrics if m.name == "forward_follows_s"]
    # It followed after 0.7 and 1.5 s, was there already, and did not follow until the end.
    assert follows == [pytest.approx(value) for value in (0.7, 1.5, 0.0, 0.5)]
    assert run.value("forward_swaps") == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[4.5, "wifi"]', '[4.5, "lte"]', "`lte` is wanted forward"),
        ('[4.5, "wifi"]', '[0.2, "wifi"]', "needs rising times"),
        ('kind = "sumrate"\nname = "dynamic"', 'kind = "mptcp"\nname = "dynamic"', "event_log"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (FOLDER / "forward-mapping.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "forward-mapping.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ExperimentError, match=said):
        load("forward-mapping", tmp_path)
