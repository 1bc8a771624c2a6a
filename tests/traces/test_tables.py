"""The tables of docs/traces.md are what their commands print."""

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from sumrate.lab import cli

TABLES = {
    "contention": ["contention"],
    "scenes": ["calibrate"],
}


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "trace", *words])
    return cli.main()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_its_command_prints(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    text = (repository / "docs/traces.md").read_text(encoding="utf-8")
    shown = text.split(f"<!-- {name}: begin -->\n")[1].split(f"<!-- {name}: end -->")[0]
    assert command(monkeypatch, *TABLES[name]) == 0
    assert capsys.readouterr().out == shown


def test_json_follows_its_schema(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "contention strong --clients 2 --access jpoc --seconds 2 --seeds 1 --json"
    assert command(monkeypatch, *words.split()) == 0
    schema = json.loads((repository / "docs/schemas/trace-contention.v1.json").read_text())
    jsonschema.validate(json.loads(capsys.readouterr().out), schema)
    monkeypatch.setattr("sumrate.traces.scene_tables.MEASURED_S", 10.0)
    assert command(monkeypatch, "calibrate", "--json") == 0
    schema = json.loads((repository / "docs/schemas/trace-calibration.v1.json").read_text())
    jsonschema.validate(json.loads(capsys.readouterr().out), schema)


def test_alone_stands_beside_simulated_contention(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "contention strong --clients 4 --seconds 5 --seeds 1 --json --simulated-access"
    assert command(monkeypatch, *words.split()) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["access"] for row in rows] == ["alone", "jpoc", "dot11ad"]
    assert all(row["rate_mbps"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("contention moon", "scenario is 'moon'"),
        ("contention --seeds 0", "--seeds is 0"),
        ("contention --clients 0", "clients is 0"),
        ("calibrate --seed -1", "--seed is -1"),
    ],
)
def test_bad_input_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert command(monkeypatch, *words.split()) == 2
    assert message in capsys.readouterr().err
