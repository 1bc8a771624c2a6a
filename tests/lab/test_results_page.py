"""docs/results.md says what the kept tables say, and can be recorded in under an hour."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sumrate.lab import cli
from sumrate.lab.experiment import headlines, record_results
from sumrate.lab.experiment.catalogue import PAPERS, entries
from sumrate.lab.experiment.claims_page import claims_table, filled
from sumrate.lab.experiment.headlines import PAGE, PICTURES, blocks, read_headlines, write_page
from sumrate.lab.experiment.kept import KEPT, SCHEMA, kept_names, read_provenance, write_kept
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.run import Plan
from tests.lab.test_keep import put, whole

AGAIN = "run: sumrate-lab results --write"


def test_the_page_says_what_the_tables_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for block in blocks():
        assert block.inserted(text) == text, AGAIN


def test_each_comparison_has_a_table_and_a_small_picture() -> None:
    comparisons = read_headlines().comparisons
    assert len({c.id for c in comparisons}) == len(comparisons) == 12
    assert {path.stem for path in PICTURES.iterdir()} == {c.id for c in comparisons}
    for comparison in comparisons:
        path = PICTURES / f"{comparison.id}.svg"
        assert path.read_text(encoding="utf-8") == comparison.svg(), AGAIN
        assert path.stat().st_size < 30_000
        drawn = ElementTree.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 (our own)
        bars = [e for e in drawn.iter() if e.get("class", "").startswith("bar")]
        assert len(bars) == len(comparison.bars)
        assert read_provenance(KEPT / f"{comparison.experiment}.parquet")["commit"]


def test_a_longer_bar_is_a_larger_value() -> None:
    comparison = next(c for c in read_headlines().comparisons if c.id == "moving-rate")
    drawn = ElementTree.fromstring(comparison.svg())  # noqa: S314 (our own)
    widths = [float(e.get("width", "0")) for e in drawn.iter() if "bar" in e.get("class", "")]
    values = [*comparison.values().values()]
    assert [w / max(widths) for w in widths] == pytest.approx(
        [v / max(values) for v in values], abs=0.001
    )


def test_a_changed_value_changes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in KEPT.iterdir():
        (tmp_path / table.name).symlink_to(table)
    run = Run("mptcp", "away", "cubic", "default", 0, 1)
    run.add("longest_stall_ms", 4321.0, "ms")
    runs = [run]
    for scheme in ("mptcp-backup", "handover", "sumrate"):
        runs.append(Run(scheme, "away", "cubic", "default", 0, 1))
        runs[-1].add("longest_stall_ms", 10.0, "ms")
    (tmp_path / "switchover.parquet").unlink()
    origin = {"schema": SCHEMA, "experiment": "switchover", "commit": "1" * 40}
    write_kept(tmp_path, origin | {"started": "2026-01-02"}, runs)
    page = tmp_path / "results.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(headlines, "PAGE", page)
    monkeypatch.setattr(headlines, "PICTURES", tmp_path / "pictures")
    write_page(tmp_path)
    said = page.read_text(encoding="utf-8")
    assert "kernel MPTCP for 4321." in said
    assert "Recorded 2026-01-02 at commit `1111111111`." in said
    assert "4321" in (tmp_path / "pictures" / "switchover.svg").read_text(encoding="utf-8")


def test_recording_takes_less_than_an_hour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "results", "--plan"])
    assert cli.main() == 0
    said = capsys.readouterr().out
    names = read_headlines().experiments()
    assert [line.split()[0] for line in said.splitlines()[:-1]] == names
    plans = (Plan(e, e.repetitions) for e in map(load, names))
    minutes = sum(plan.seconds() for plan in plans) / 60
    assert float(said.splitlines()[-1].split()[2]) == pytest.approx(minutes, abs=0.05)
    assert minutes < 55, "with void runs still under an hour"


def test_what_was_recorded_is_kept_and_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of two experiments one may be kept."""
    ran: list[str] = []

    def run(names: list[str], *, output: Path) -> int:
        assert output.is_dir()
        ran.extend(names)
        return 0

    manifest = whole()
    put(tmp_path, manifest)
    wrong = whole() | {"commit": "1" * 40 + "-dirty"}
    put(tmp_path / "dirty", wrong)
    written: list[str] = []
    monkeypatch.setattr(record_results, "run", run)
    monkeypatch.setattr(record_results, "write_page", lambda: written.append("page"))
    monkeypatch.setattr("sumrate.lab.experiment.keeping.KEPT", tmp_path / "kept")
    monkeypatch.setattr(record_results, "read_headlines", LapOnly)
    for output, status in ((tmp_path, 0), (tmp_path / "dirty", 1)):
        monkeypatch.setattr(sys, "argv", ["sumrate-lab", "results", "--output", str(output)])
        assert cli.main() == status
    said = capsys.readouterr()
    assert ran == ["lap", "lap"]
    assert kept_names(tmp_path / "kept") == ["lap"]
    assert read_provenance(tmp_path / "kept" / "lap.parquet")["commit"] == "0" * 40
    assert "uncommitted" in said.err
    assert written == ["page", "page"]
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "results", "--only", "moon"])
    assert cli.main() == 2


class LapOnly:
    """A page that compares one experiment."""

    def experiments(self) -> list[str]:
        return ["lap"]


def test_every_claim_of_a_paper_has_a_row() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^<!-- claims: ([a-z-]+) -->$", text, re.MULTILINE) == [*PAPERS]
    claims = [entry for entry in entries(KEPT) if entry.document == "D3"]
    table = claims_table("wlan")
    assert table.startswith(f"{len(claims)} claims: ")
    assert f"<summary>All {len(claims)} claims</summary>" in table
    for entry in claims:
        (row,) = [line for line in table.splitlines() if line.startswith(f"| **{entry.id}** ")]
        assert f"`{entry.command}`" in row
        assert len(re.findall(r"(?<!\\)\|", row)) == 6
    with pytest.raises(ValueError, match="no paper `moon`"):
        claims_table("moon")


def test_the_site_has_the_tables_in_place_of_their_markers() -> None:
    page = filled("before\n\n<!-- claims: wlan -->\n\n<!-- result commits -->\n\nafter\n")
    assert "<!--" not in page
    assert claims_table("wlan") in page
    for name in kept_names(KEPT):
        commit = read_provenance(KEPT / f"{name}.parquet")["commit"]
        assert f"| `{name}` |" in page
        assert f"`{commit[:10]}`" in page
