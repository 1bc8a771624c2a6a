"""What docs/channel.md shows works, and what the commands print follows the schemas."""

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.commands import KEPT
from sumrate.lab.trace_command import summary
from sumrate.lab.trace_play import report_document
from sumrate.traces.course import make
from sumrate.traces.scenarios import scene


def schema(repository: Path, name: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((repository / f"docs/schemas/{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


@pytest.mark.parametrize("document", ["README.md", "docs/channel.md"])
def test_five_lines_lead_from_a_scene_to_a_plot(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    text = (repository / document).read_text(encoding="utf-8")
    found = re.search(r"```python\n(from pathlib import.*?)```", text, re.DOTALL)
    assert found
    assert len(found[1].strip().splitlines()) == 5
    monkeypatch.chdir(tmp_path)
    exec(found[1], {})  # noqa: S102 (our own document)
    assert "<svg" in (tmp_path / "mobility.svg").read_text()


def told(text: str) -> dict[str, bool]:
    """Claims of the document's table of verdicts, and whether they hold."""
    rows = re.findall(r"^\| ((?:[FW]-[\w-]+(?:, )?)+) \| (holds?|fails?)\b", text, re.MULTILINE)
    return {name: word.startswith("hold") for names, word in rows for name in names.split(", ")}


def kept_verdicts() -> dict[str, str]:
    folders = (KEPT / "link-module", KEPT / "link-distance")
    found = [v for folder in folders for v in json.loads((folder / "verdicts.json").read_text())]
    return {verdict["claim"]: verdict["verdict"] for verdict in found}


def wrongly_told(claims: dict[str, bool]) -> list[str]:
    return [
        identity
        for identity, verdict in kept_verdicts().items()
        for name, holds in claims.items()
        if (identity == name or identity.startswith(name + "-")) and holds != (verdict == "holds")
    ]


def test_the_table_of_verdicts_is_what_the_kept_results_say(repository: Path) -> None:
    claims = told((repository / "docs/channel.md").read_text(encoding="utf-8"))
    assert len(claims) == 18
    told_of = {i for i in kept_verdicts() for name in claims if (i + "-").startswith(name + "-")}
    assert told_of == set(kept_verdicts())
    assert not wrongly_told(claims)
    assert wrongly_told(claims | {"F-3c": True}) == ["F-3c"]


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
