"""Orders, shares, ratios and what an experiment file may not say."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sumrate.lab.experiment.by_method import DailyExperiment, FilesExperiment, expect
from sumrate.lab.experiment.durations import add_durations, add_splits, groups, mode
from sumrate.lab.experiment.load import FOLDER, ExperimentError, load, names
from sumrate.lab.experiment.model import ConditionSetting
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.topology import links_of, next_traces, on_wires
from sumrate.qoe import repository
from sumrate.qoe.daily import rank
from sumrate.qoe.files import order, share
from sumrate.qoe.settings import FileSize, FilesSetting
from sumrate.traces import read
from tests.lab.test_experiment_files import GOOD, written

SIZES = FilesSetting(
    sizes=(
        FileSize(name="large", bytes=3000),
        FileSize(name="small", bytes=1000, times=3),
        FileSize(name="middle", bytes=2000, times=2),
    )
)


def test_large_files_come_last_and_each_as_often_as_wanted() -> None:
    found = [size.name for size in order(SIZES)]
    assert found == ["small", "small", "small", "middle", "middle", "large"]


def test_the_share_of_a_link_is_of_what_came_meanwhile() -> None:
    before, after = {"wifi": 1000, "wigig": 500}, {"wifi": 2000, "wigig": 3500}
    assert share(before, after, "wigig") == 0.75
    assert share(after, after, "wigig") is None
    assert share({}, {}, "wigig") is None


def runs(**durations: float) -> list[Run]:
    found = []
    for scheme, duration in durations.items():
        run = Run(scheme, "mobility", "cubic", "default", 0, 1, detail={"title": scheme})
        run.add("time_1MB_ms", duration, "ms")
        found.append(run)
    return found


def test_durations_are_divided_by_the_best_radio_the_sum_and_peers() -> None:
    experiment = load("files")
    links = links_of(experiment, experiment.conditions[2])
    wifi, wigig, mptcp, ours = runs(wifi=30.0, wigig=60.0, mptcp=40.0, sumrate=22.0)
    add_durations([wifi, wigig, mptcp, ours], links)
    assert ours.value("time_1MB_over_best") == pytest.approx(22 / 30)
    assert ours.value("time_over_best") == pytest.approx(22 / 30)
    assert ours.value("time_1MB_over_sum") == pytest.approx(22 / 20)
    assert ours.value("time_1MB_over_mptcp") == pytest.approx(22 / 40)
    assert mptcp.value("time_1MB_over_mptcp") is None
    assert wigig.value("time_1MB_over_best") == pytest.approx(2.0)


def test_a_void_link_alone_divides_nothing() -> None:
    experiment = load("files")
    links = links_of(experiment, experiment.conditions[2])
    found = runs(wifi=30.0, wigig=60.0, sumrate=22.0)
    found[0].void = True
    add_durations(found, links)
    assert found[2].value("time_1MB_over_best") is None
    assert found[2].value("time_1MB_over_sum") is None


def test_cold_and_warm_loads_are_gathered_apart_too() -> None:
    assert groups("onload_msn_h2_cold") == ("onload_h2_cold", "onload_cold", "onload")
    assert groups("time_1MB") == ("time_1MB", "time")
    assert groups("key") == ("key",)


def test_pages_are_compared_with_each_radio_by_itself() -> None:
    """The better of two loads is better than either radio, even if both are the same radio."""
    experiment = load("pages")
    links = links_of(experiment, experiment.conditions[2])
    found = []
    for scheme, slow, quick in (
        ("wifi", 30.0, 20.0),
        ("wigig", 20.0, 30.0),
        ("sumrate", 24.0, 24.0),
    ):
        run = Run(scheme, "mobility", "cubic", "default", 0, 1, detail={"title": scheme})
        run.add("onload_msn_h1_cold_ms", slow, "ms")
        run.add("onload_cnn_h1_cold_ms", quick, "ms")
        found.append(run)
    add_durations(found, links)
    assert sorted(values_of(found[2], "onload_over_best")) == [1.2, 1.2]
    assert sorted(values_of(found[2], "onload_over_wifi")) == [0.8, 1.2]
    assert sorted(values_of(found[2], "onload_cold_over_wigig")) == [0.8, 1.2]


def values_of(run: Run, metric: str) -> list[float]:
    return [m.value for m in run.metrics if m.name == metric]


def test_a_percentile_is_gathered_with_nothing_else() -> None:
    assert groups("key_p95") == ("key_p95",)
    experiment = load("daily")
    links = links_of(experiment, experiment.conditions[2])
    found = []
    for scheme, keys, slow in (("wifi", 10.0, 40.0), ("wigig", 20.0, 30.0), ("sumrate", 5.0, 60.0)):
        run = Run(scheme, "mobility", "cubic", "default", 0, 1, detail={"title": scheme})
        for name, value in (("key_ms", keys), ("key_ms", keys), ("key_p95_ms", slow)):
            run.add(name, value, "ms")
        found.append(run)
    add_durations(found, links)
    ratios = [m.value for m in found[2].metrics if m.name == "key_over_best"]
    assert ratios == [0.5], "medians only"
    assert [m.value for m in found[2].metrics if m.name == "key_over_wigig"] == [0.25]
    assert found[2].value("key_p95_over_best") == 2.0
    assert found[2].value("key_p95_over_wifi") == 1.5


def test_what_is_said_of_the_keys_is_true_of_as_many_as_are_typed() -> None:
    experiment = load("daily")
    keys = expect(experiment, DailyExperiment).daily.keys
    said = {c.statement for c in experiment.checks if c.value.metric == "key_p95_ms"}
    assert said
    for statement in said:
        assert f"of {keys} keys the {rank(95, keys) + 1}th" in statement
    assert [rank(95, count) for count in (1, 20, 60, 100)] == [0, 18, 56, 94]


def test_a_condition_loads_only_sites_that_there_are(tmp_path: Path) -> None:
    text = (FOLDER / "pages.toml").read_text(encoding="utf-8")
    condition = '[[conditions]]\nname = "nlos"\n'
    assert condition in text
    wrong = text.replace(condition, f'{condition}sites = ["msn", "bing"]\n', 1)
    (tmp_path / "pages.toml").write_text(wrong, encoding="utf-8")
    with pytest.raises(ExperimentError, match="loads `bing`, which is none of the `sites`"):
        load("pages", tmp_path)


def test_the_fullest_bin_of_shares() -> None:
    assert mode([0.1, 0.75, 0.8, 0.83, 0.9]) == (72, 3)
    assert mode([1.0]) == (96, 1)
    assert mode([0.0, 0.5]) == (0, 1), "of equal ones the lowest"


def test_the_split_counts_all_repetitions_and_stands_once() -> None:
    experiment = load("files")
    first, second = runs(sumrate=1.0)[0], runs(sumrate=1.0)[0]
    for run, shares in ((first, (0.75, 0.2)), (second, (0.8, 0.76))):
        for value in shares:
            run.add("wigig_share", value, "ratio")
    add_splits(experiment, [first, second])
    assert first.value("wigig_share_mode_percent") == 72
    assert first.value("wigig_share_mode_share") == 0.75
    assert first.value("wigig_share_in_72_84") == 0.75
    assert second.value("wigig_share_mode_percent") is None
    failed = Run("sumrate", "mobility", "cubic", "default", 0, 1, detail={"error": "a crash"})
    add_splits(experiment, [failed, second])
    assert failed.value("wigig_share_mode_percent") is None, "it does not count"
    assert second.value("wigig_share_mode_percent") == 72


def test_every_download_has_a_trace_of_its_own_the_same_for_every_scheme(tmp_path: Path) -> None:
    experiment = load("files")
    mobility = experiment.conditions[2]
    first = next_traces(experiment, mobility, 1, 0, tmp_path)
    assert first.keys() == {"wifi", "wigig"}
    text = first["wigig"].read_text()
    assert next_traces(experiment, mobility, 1, 0, tmp_path)["wigig"].read_text() == text
    assert next_traces(experiment, mobility, 1, 1, tmp_path)["wigig"].read_text() != text
    assert next_traces(experiment, mobility, 2, 0, tmp_path)["wigig"].read_text() != text
    assert next_traces(experiment, ConditionSetting(name="x", title="x"), 1, 0, tmp_path) == {}


def test_scaled_traces_keep_their_shape(tmp_path: Path) -> None:
    whole, scaled = load("files"), load("pages")
    # Experiments are draws of their own.
    scaled = replace(scaled, name=whole.name)
    condition = whole.conditions[2]
    one = next_traces(whole, condition, 1, 0, tmp_path / "whole")["wigig"]
    tenth = next_traces(scaled, scaled.conditions[2], 1, 0, tmp_path / "scaled")["wigig"]
    ratio = read(tenth).mean_rate_mbps / read(one).mean_rate_mbps
    assert ratio == pytest.approx(scaled.trace_scale, rel=1e-3)


def test_a_trace_of_another_scale_is_another_trace(tmp_path: Path) -> None:
    """Once the second of two scales in one experiment got the first one's trace."""
    experiment = load("files")
    links = dict(experiment.conditions[2].links)
    half = replace(
        experiment.conditions[2],
        links={name: replace(change, trace_scale=0.5) for name, change in links.items()},
    )
    whole = next_traces(experiment, experiment.conditions[2], 1, 0, tmp_path)["wigig"]
    scaled = next_traces(experiment, half, 1, 0, tmp_path)["wigig"]
    assert read(scaled).mean_rate_mbps == pytest.approx(read(whole).mean_rate_mbps / 2, rel=1e-3)
    slower = replace(experiment, trace_scale=0.25)
    quarter = next_traces(slower, experiment.conditions[2], 1, 0, tmp_path)["wigig"]
    assert read(quarter).mean_rate_mbps == pytest.approx(read(whole).mean_rate_mbps / 4, rel=1e-3)


def test_the_floor_is_measured_on_bare_interfaces() -> None:
    for name in ("files", "pages", "pages-full-rate", "daily"):
        experiment = load(name)
        floor = next(c for c in experiment.conditions if c.name == "floor")
        assert on_wires(experiment, floor)
        assert "sumrate" in floor.schemes
        assert not on_wires(experiment, experiment.conditions[0])


WORK = GOOD.replace('method = "bench"', 'method = "files"').replace(
    "[[links]]", '[files]\nsizes = [{ name = "a", bytes = 10 }]\n\n[[links]]', 1
)


def test_a_file_with_a_workload_is_read(tmp_path: Path) -> None:
    assert isinstance(load("trial", written(tmp_path, WORK)), FilesExperiment)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('[files]\nsizes = [{ name = "a", bytes = 10 }]\n', "", "missing required field `files`"),
        ("bytes = 10", "bytes = 0", "Expected `int` >= 1"),
        ('[{ name = "a", bytes = 10 }]', "[]", "of length >= 1"),
        ("bytes = 10 }]", 'bytes = 10 }]\nshare_link = "lte"', "no link"),
        ("bytes = 10 }]", "bytes = 10 }]\npause_s = -1.0", "Expected `float` >= 0.0"),
        ("bytes = 10", "octets = 10", "octets"),
        ("[files]", '[pages]\nsites = ["msn"]\n\n[files]', "unknown field `pages`"),
        ("[files]", "trace_scale = 2.0\n\n[files]", "trace_scale"),
    ],
)
def test_what_a_file_may_not_say_about_a_workload(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    assert old in WORK
    with pytest.raises(ExperimentError, match=why):
        load("trial", written(tmp_path, WORK.replace(old, new, 1)))


def test_there_are_experiments_of_every_workload() -> None:
    methods = {load(name).method for name in names()}
    assert {"files", "pages", "daily"} <= methods


def test_a_repository_is_the_same_every_time(tmp_path: Path) -> None:
    made = [repository.make(tmp_path / n, texts=5, blobs=1, seed=1) for n in ("a", "b")]
    heads = {(folder / "packed-refs").read_text() for folder in made}
    assert len(heads) == 1
