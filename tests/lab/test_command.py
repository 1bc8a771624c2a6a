"""The command `sumrate-lab` as a program among others."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sumrate.lab import cli
from sumrate.lab.cli import BROKEN_PIPE
from sumrate.lab.experiment import verdicts
from sumrate.lab.experiment.kept import KEPT
from sumrate.lab.namespaces import INTERRUPTED
from sumrate.lab.programs import REPOSITORY
from sumrate.lab.refusal import USAGE
from tests.lab.test_keep import NAME, put, whole


def test_a_reader_that_leaves_early_is_no_error_to_see() -> None:
    """As in `sumrate-lab list | head -1`."""
    argv = [sys.executable, "-m", "sumrate.lab", "list"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == BROKEN_PIPE


@pytest.mark.parametrize("words", ["", "trace", "nonsense", "list --nonsense", "run"])
def test_an_incomplete_or_wrong_command_is_refused(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", *words.split()])
    assert cli.main() == USAGE
    said = capsys.readouterr()
    assert "Usage:" in said.out or said.err.startswith("error: ")


GOOD, WRONG = "\nrepetitions = 5\n", "\nrepetitions = -5\n"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which a line of an experiment file is wrong."""
    root = tmp_path_factory.mktemp("checkout")
    without = shutil.ignore_patterns("__pycache__")
    for part in ("python", "experiments", "results"):
        shutil.copytree(REPOSITORY / part, root / part, ignore=without)
    path = root / "experiments" / "blackout.toml"
    text = path.read_text(encoding="utf-8")
    assert GOOD in text
    path.write_text(text.replace(GOOD, WRONG, 1), encoding="utf-8")
    return root


def lab(checkout: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sumrate.lab", *command.split()],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "python")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "run blackout",
        "bench",
        "bench --table",
        "keep blackout",
        "verdicts",
        "verdicts --json",
    ],
)
def test_every_command_says_where_an_experiment_file_is_wrong(checkout: Path, command: str) -> None:
    text = (checkout / "experiments" / "blackout.toml").read_text(encoding="utf-8")
    line = text[: text.index(WRONG)].count("\n") + 2
    done = lab(checkout, command)
    assert done.stderr == (
        f"error: blackout.toml:{line}: Expected `int` >= 1 - at `$.repetitions`\n"
    )
    assert done.returncode == USAGE


def test_a_table_of_nothing_says_where_there_is_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for results in (tmp_path, KEPT):
        argv = ["sumrate-lab", "bench", "--table", "--only", "P9", "--output", str(results)]
        monkeypatch.setattr(sys, "argv", argv)
        assert cli.main() == 0
        said.append(capsys.readouterr().err)
    assert "`sumrate-lab verdicts --goals` shows what is kept" in said[0]
    assert said[1] == ""


def test_the_verdicts_of_the_other_experiments_are_said_all_the_same(checkout: Path) -> None:
    done = lab(checkout, "verdicts --json")
    assert done.returncode == USAGE
    found = {entry["id"]: entry for entry in json.loads(done.stdout)}
    assert "P5" not in found, "nothing else measures it"
    assert "five-conditions" in found["P1"]["experiment"]


def test_a_stop_by_hand_is_no_failure_to_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verdicts, "listing", stopped)
    monkeypatch.setattr(sys, "argv", ["sumrate-lab", "verdicts", "P1"])
    assert cli.main() == INTERRUPTED
    assert capsys.readouterr().err == "\nstopped\n"


@pytest.mark.parametrize("part", [["--quick"], ["--condition", "lap"], ["--repetitions", "1"]])
def test_a_part_does_not_take_the_place_of_a_whole_result(
    part: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = put(tmp_path, whole())
    argv = ["sumrate-lab", "run", NAME, *part, "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", argv)
    assert cli.main() == USAGE
    said = capsys.readouterr().err
    assert f"{folder} is a whole result of lap" in said and "--output" in said
    assert json.loads((folder / "manifest.json").read_text()) == whole()
