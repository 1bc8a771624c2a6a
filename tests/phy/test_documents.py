"""What docs/channel.md shows works, and what the commands print follows the schemas."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.catalogue import entries
from sumrate.lab.experiment.kept import KEPT
from sumrate.lab.trace_play import report_document
from sumrate.phy.blockage.screen import rays_loss_db
from sumrate.traces.course import make
from sumrate.traces.scenarios import scene
from sumrate.traces.summary import summary
from sumrate.verdict.model import HOLDS, Entry


def schema(repository: Path, name: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((repository / f"docs/schemas/{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


PAGE = "docs/channel.md"
STUDIES = {"link-module", "link-distance"}


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_examples_of_the_page_run(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its first one has five lines and draws; the others print a mean rate."""
    text = (repository / PAGE).read_text(encoding="utf-8")
    (patterns,) = re.findall(r"<!-- file: beams.csv -->\n```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "beams.csv").write_text(patterns, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    first, room, own = python_blocks(text)
    assert len(first.strip().splitlines()) == 5
    exec(first, {})  # noqa: S102 (our own document)
    assert "<svg" in (tmp_path / "mobility.svg").read_text()
    for example in (room, own):
        exec(example, {})  # noqa: S102 (our own document)
        assert 0 < float(capsys.readouterr().out) < 5000


def test_the_rooms_picture_has_the_models_powers(repository: Path) -> None:
    picture = (repository / "docs/img/room.svg").read_text(encoding="utf-8")
    shown = scene("thesis-nlos")
    track = shown.drive(np.array([0.0]), np.random.default_rng(1))
    rays = shown.room.rays(shown.access_point_m, track.positions_m[0])
    blocked = -rays_loss_db(rays, shown.people)
    assert f"person: {blocked[0]:+.0f} dB" in picture
    walls = {round(g - rays.gain_db[0]) for g in (rays.gain_db + blocked)[rays.order == 1]}
    assert max(walls) == -12
    assert picture.count("glass wall: -12 dB") == 2


def counts(found: Sequence[Entry]) -> tuple[int, int, int, int]:
    """Claims that the studies judge, that hold, of these the fitted ones, and the other claims."""
    judged = [e for e in found if e.experiment and set(e.experiment.split(", ")) <= STUDIES]
    holding = [e for e in judged if e.verdict == HOLDS]
    fitted = [e for e in holding if e.fitted]
    return len(judged), len(holding), len(fitted), len(judged) - len(holding)


def test_the_page_counts_the_claims(repository: Path) -> None:
    text = (repository / PAGE).read_text(encoding="utf-8")
    told = re.search(r"Of their (\d+) claims (\d+) hold, (\d+) of them with .* (\d+) hold in part",
                     text, re.DOTALL)  # fmt: skip
    assert told
    found = entries(KEPT)
    assert tuple(int(number) for number in told.groups()) == counts(found)
    assert counts([replace(e, verdict="fails") for e in found]) != counts(found)


def test_documents_follow_their_schemas(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = make(scene("thesis-mobility"), 3.0, 1)
    jsonschema.validate(summary(trace), schema(repository, "link-trace-summary.v1"))
    stats = {"lateness_since_reset": {"worst_ms": 1.0, "late_over_2ms": 0, "events": 10}}
    played = report_document(trace, 3.0, [1.0, 2.0, 3.0], stats)
    jsonschema.validate(played, schema(repository, "trace-play.v1"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(played | {"goodput_mbps": "fast"}, schema(repository, "trace-play.v1"))
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "phy", "module", "--seeds", "2", "--json"])
    assert cli.main() == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), schema(repository, "phy-findings.v1"))
