"""Algorithms of ours are loaded for a measurement and taken out again, and no others."""

import json
import os
from pathlib import Path

import pytest

from sumrate.lab import congestion
from sumrate.lab.congestion import loaded
from sumrate.lab.experiment.load import ExperimentError, load
from sumrate.lab.experiment.run import Plan
from sumrate.lab.experiment.topology import links_of
from sumrate.lab.links import paths
from sumrate.lab.stream.driver import server_command
from sumrate.report.coupling import SHARED
from tests.lab.test_endpoints import site as site_fixture
from tests.lab.test_experiment_files import GOOD, written

FAKE = """#!/bin/sh
echo "$*" >> {log}
case "$2" in
list) echo '{listed}' ;;
load)
    [ "$3" != sumrate_olia ] || {{ echo "sumrate: it needs CAP_BPF" >&2; exit 3; }}
    [ "$3$OTHER_BUILD" != sumrate_balia1 ] || {{ echo "sumrate: another build" >&2; exit 1; }} ;;
esac
"""

site = site_fixture


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `sumrate` that notes how it is called; balia is loaded, olia cannot be."""
    there = [{"kernel_name": "sumrate_balia", "loaded": True}]
    listed = json.dumps({"algorithms": [*there, {"kernel_name": "sumrate_lia", "loaded": False}]})
    fake = tmp_path / "sumrate"
    fake.write_text(FAKE.format(log=tmp_path / "log", listed=listed))
    fake.chmod(0o755)
    monkeypatch.setenv("SUMRATE_BIN_DIR", os.fspath(tmp_path))
    monkeypatch.setattr(congestion, "STATE", tmp_path / "state")
    return tmp_path / "log"


def test_what_was_loaded_is_taken_out_and_what_was_there_stays(log: Path) -> None:
    names = ("cubic", "sumrate_lia", "sumrate_balia", "sumrate_olia")
    with loaded(names) as missing:
        assert missing == {"sumrate_olia": "it needs CAP_BPF"}
        said = log.read_text()
        assert "cc load sumrate_lia --json" in said
        assert "unload" not in said
    unloads = [line for line in log.read_text().splitlines() if "unload" in line]
    assert unloads == ["cc unload sumrate_lia --json"]


def test_what_another_build_loaded_is_not_measured_and_stays(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_BUILD", "1")
    with loaded(["sumrate_balia"]) as missing:
        assert missing == {"sumrate_balia": "another build"}
    assert "unload" not in log.read_text()


def test_it_is_taken_out_after_a_failure_too(log: Path) -> None:
    with pytest.raises(ValueError, match="broken"), loaded(["sumrate_lia"]):
        raise ValueError("broken")
    assert log.read_text().endswith("cc unload sumrate_lia --json\n")


def left_by(tmp_path: Path, boot: str, *names: str) -> Path:
    marker = tmp_path / "state" / "congestion-controls-1"
    marker.parent.mkdir()
    marker.write_text(" ".join([boot, *names]))
    return marker


def test_what_a_killed_driver_left_is_taken_out_at_the_next_start(
    log: Path, tmp_path: Path
) -> None:
    """Of the two that it noted, one is loaded; what is loaded and was not noted stays."""
    boot = congestion.BOOT_ID.read_text().strip()
    marker = left_by(tmp_path, boot, "sumrate_balia", "sumrate_lia")
    with loaded(["cubic"]):
        assert not marker.exists()
    assert "cc unload sumrate_balia --json" in log.read_text().splitlines()
    assert "unload sumrate_lia" not in log.read_text()


def test_what_was_left_before_a_restart_is_gone_already(log: Path, tmp_path: Path) -> None:
    marker = left_by(tmp_path, "another-boot", "sumrate_balia")
    with loaded(["cubic"]):
        assert not marker.exists()
    assert not log.exists()


def test_what_a_driver_that_runs_has_loaded_stays(log: Path) -> None:
    with loaded(["sumrate_lia"]):
        (marker,) = congestion.STATE.iterdir()
        assert marker.read_text().split()[1:] == ["sumrate_lia"]
        before = log.read_text()
        with loaded(["cubic"]):
            assert marker.exists()
        assert "unload" not in log.read_text().removeprefix(before)
    assert not list(congestion.STATE.iterdir())


def test_the_kernels_own_need_nothing(log: Path) -> None:
    with loaded(["reno", "cubic", "bbr"]) as missing:
        assert not missing
    assert not log.exists()


def test_the_tcp_beside_has_its_own_algorithm(site, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    from sumrate.lab.endpoints import Reach  # noqa: PLC0415

    reach = Reach("10.1.1.2", "10.1.1.2")
    own = server_command(site, reach, ["source"], tmp_path / "r", "reno")
    assert own[own.index("--cc") + 1] == "reno"
    same = server_command(site, reach, ["source"], tmp_path / "r")
    assert same[same.index("--cc") + 1] == "cubic"


def test_a_condition_runs_with_its_own_algorithms_only(tmp_path: Path) -> None:
    text = GOOD.replace("seconds = 1.0", 'seconds = 1.0\ncongestion_control = ["cubic", "reno"]')
    narrowed = text.replace(
        'name = "normal"\n', 'name = "normal"\ncongestion_control = ["reno"]\n', 1
    )
    every, own = (Plan(load("trial", written(tmp_path, t)), 1) for t in (text, narrowed))
    assert [p.congestion_control for p in every.points()] == ["cubic", "reno"]
    assert [p.congestion_control for p in own.points()] == ["reno"]
    with pytest.raises(ExperimentError, match="vegas"):
        load("trial", written(tmp_path, narrowed.replace('["reno"]', '["vegas"]')))


def test_quick_names_conditions_that_exist(tmp_path: Path) -> None:
    text = GOOD.replace("repetitions", 'quick = ["nowhere"]\nrepetitions', 1)
    if text == GOOD:
        text = GOOD.replace("schema = 1", 'schema = 1\nquick = ["nowhere"]', 1)
    with pytest.raises(ExperimentError, match="nowhere"):
        load("trial", written(tmp_path, text))


def test_the_experiment_has_one_to_four_subflows_beside_one_to_four_tcps() -> None:
    experiment = load("rfc6356")
    shared = {c.name: c for c in experiment.conditions if SHARED.fullmatch(c.name)}
    assert set(shared) == {f"shared-{n}-{m}" for n in range(1, 5) for m in range(1, 5)}
    for name, condition in shared.items():
        subflows, others = map(int, name.split("-")[1:])
        present = {link.name for link in experiment.links} - {
            link for link, change in condition.links.items() if change.absent
        }
        assert len(present) == subflows
        assert condition.beside == ("one",) * others


def test_a_wire_that_others_return_by_is_no_path() -> None:
    experiment = load("rfc6356")
    (unequal,) = [c for c in experiment.conditions if c.name == "shared-unequal"]
    found = links_of(experiment, unequal)
    assert {link.name for link in found} == {"one", "late", "back"}
    assert [link.name for link in paths(found)] == ["one", "late"]
    late = found[1]
    assert (late.wire, late.returns) == ("one", "back")
