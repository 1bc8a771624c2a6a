import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sumrate.lab import cli
from sumrate.lab.experiment.by_method import SimulationExperiment
from sumrate.lab.experiment.catalogue import claims, entries
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load, names
from sumrate.lab.programs import REPOSITORY

SIMULATIONS = [name for name in names() if name.startswith("access-")]


def test_every_claim_on_initial_access_has_a_judge(tmp_path: Path) -> None:
    wanted = {identity for identity in claims() if re.match(r"T-3[.-]", identity)}
    assert len(wanted) == 22
    judged = {e.id: {check.experiment for check in e.checks} for e in entries(tmp_path)}
    assert all(name.startswith("access-") for i in wanted for name in judged[i] or ("",))


@pytest.mark.parametrize("name", SIMULATIONS)
def test_experiments_name_figures_that_exist(name: str) -> None:
    assert isinstance(load(name), SimulationExperiment)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('figures = ["3.2a"]', 'figures = ["9.9"]', r"sim\.toml:12: `9\.9` is no figure"),
        ('method = "simulation"', 'method = "stream"', "unknown field `simulation`"),
        ('kind = "simulated"', 'kind = "alone"', "every scheme of a simulation has the `kind`"),
        ('scheme = "product"', 'scheme = "prodct"', "did you mean product"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (FOLDER / "access-participation.toml").read_text(encoding="utf-8")
    text = text.replace('name = "access-participation"', 'name = "sim"').replace(old, new, 1)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    (tmp_path / "sim.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ExperimentError, match=message):
        load("sim", tmp_path)


def test_a_simulation_is_run_judged_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["run", "access-participation", "--quick", "--json", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", *words])
    assert cli.main() == 0
    found = {v["claim"]: v for v in json.loads(capsys.readouterr().out)}
    assert found["T-3.2a-disc"]["verdict"] == "holds"
    assert found["T-3.2a-los"]["verdict"] == "holds"
    folder = tmp_path / "access-participation"
    assert (folder / "3.2a.png").is_file()
    table = pq.read_table(folder / "metrics.parquet").to_pylist()
    intervals = {r["condition"]: r["value"] for r in table
                 if r["metric"] == "interval_s" and r["scheme"] == "product"}  # fmt: skip
    assert intervals["disconnected"] == pytest.approx(10.0, abs=0.5)


def test_the_documents_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "initial-access.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    exec(compile(example[1], "docs/initial-access.md", "exec"), {})  # noqa: S102
    jain, failure = (float(word) for word in capsys.readouterr().out.split())
    assert 0.5 < jain <= 1.0
    assert 0.0 < failure < 1.0
