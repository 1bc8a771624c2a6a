"""What is said of a machine that is busy before anything is measured."""

from pathlib import Path

import pytest

from sumrate.lab import machine_load
from sumrate.lab.machine_load import (
    UserTime,
    busy_before,
    busy_share,
    foreign_share,
    user_time,
)

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


def test_what_programs_that_are_not_ours_used_is_a_share_of_all_time() -> None:
    before = UserTime(total_s=100.0, all_s=10.0, own_s=4.0)
    assert foreign_share(before, UserTime(110.0, 15.0, 7.0)) == pytest.approx(0.2)
    assert foreign_share(before, UserTime(110.0, 12.0, 7.0)) == 0.0
    assert foreign_share(before, before) is None
    assert foreign_share(None, before) is None


def test_own_time_is_that_of_all_processes_seen_and_of_those_they_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  300 100 50 1000 10 0 5 0 0 0\n")
    for number, name, own, waited in ((7, "a b) c", 30, 10), (12, "d", 50, 0)):
        (tmp_path / str(number)).mkdir()
        fields = ["S", *["0"] * 10, str(own), "99", str(waited), "99", "20"]
        (tmp_path / str(number) / "stat").write_text(f"{number} ({name}) " + " ".join(fields))
    (tmp_path / "self").symlink_to("1")
    monkeypatch.setattr("os.getpid", lambda: 1)
    monkeypatch.setattr(machine_load, "STAT", stat)
    monkeypatch.setattr(machine_load, "PROCESSES", tmp_path)
    monkeypatch.setattr("os.sysconf", lambda _: 100)
    assert user_time() == UserTime(total_s=14.65, all_s=4.0, own_s=0.9)
    monkeypatch.setattr("os.getpid", lambda: 7)
    assert user_time() is None, "others see other programs too"
    monkeypatch.setattr("os.getpid", lambda: 1)
    stat.write_text("")
    assert user_time() is None
