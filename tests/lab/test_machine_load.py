"""What is said of a machine that is busy before anything is measured."""

from pathlib import Path

import pytest

from sumrate.lab import machine_load
from sumrate.lab.machine_load import busy_before, busy_share

IDLE = "cpu  100 0 50 1000 10 0 5 0 0 0\ncpu0 1 2 3\n"
HALF = "cpu  140 0 60 1040 20 0 5 0 0 0\n"


def test_waiting_for_a_disk_is_not_busy() -> None:
    assert busy_share(IDLE, HALF) == pytest.approx(0.5)


@pytest.mark.parametrize("later", [IDLE, "", "cpu x\n"])
def test_what_the_kernel_does_not_say_is_unknown(later: str) -> None:
    assert busy_share(IDLE, later) is None


def test_a_busy_machine_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stat = tmp_path / "stat"
    stat.write_text(IDLE)
    monkeypatch.setattr(machine_load, "STAT", stat)
    monkeypatch.setattr("time.sleep", lambda _: stat.write_text(HALF))
    assert busy_before() == pytest.approx(0.5)
    assert "other programs use 50% of this machine's processors" in capsys.readouterr().err


def test_without_the_kernels_word_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine_load, "STAT", tmp_path / "none")
    assert busy_before() is None
    assert capsys.readouterr().err == ""
