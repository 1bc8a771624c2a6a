"""When the links alone would have had a file together: as late as who lacks nothing of them."""

import pytest
from msgspec.structs import replace

from sumrate.lab.experiment.by_method import FilesExperiment, expect
from sumrate.lab.experiment.durations import add_durations
from sumrate.lab.experiment.load import load
from sumrate.lab.experiment.model import ConditionSetting, Experiment
from sumrate.lab.experiment.record import Run
from sumrate.lab.experiment.together import Alone, Course, add_together, course, together_ms
from sumrate.lab.experiment.topology import links_of
from sumrate.qoe.files import order
from sumrate.traces import Trace

PAYLOAD = 0.96


def condition(name: str) -> tuple[Experiment, ConditionSetting]:
    experiment = load("files")
    return experiment, next(c for c in experiment.conditions if c.name == name)


def taking_all(
    experiment: Experiment, of: ConditionSetting, schemes: dict[str, float]
) -> list[Run]:
    """Runs that take that share of what the links' traces let through; `sumrate` of all links."""
    links = links_of(experiment, of)
    files = expect(experiment, FilesExperiment).files
    found = []
    for scheme, share in schemes.items():
        run = Run(scheme, of.name, "cubic", "default", 0, 1, detail={"title": scheme})
        for number, size in enumerate(order(files)):
            used = [
                (Alone((0.0, 1.0), (0.0, share)), course(experiment, of, link, 1, number))
                for link in links
                if scheme in (link.name, "sumrate")
            ]
            run.add(f"time_{size.name}_ms", together_ms(used, size.bytes), "ms")
        found.append(run)
    return found


def ratios(run: Run) -> list[float]:
    return [m.value for m in run.metrics if m.name.endswith("_over_together")]


@pytest.mark.parametrize("name", ["los", "nlos", "mobility", "awake"])
def test_a_transport_that_lacks_nothing_takes_as_long_as_the_links_together(name: str) -> None:
    experiment, of = condition(name)
    found = taking_all(experiment, of, {"wifi": PAYLOAD, "wigig": PAYLOAD, "sumrate": PAYLOAD})
    add_together(experiment, of, found, links_of(experiment, of))
    assert ratios(found[2]) == pytest.approx([1.0] * len(ratios(found[2])), abs=2e-3)
    files = expect(experiment, FilesExperiment).files
    assert len(ratios(found[2])) == len(list(order(files)))


def test_the_sum_of_mean_rates_is_out_of_reach_where_links_vary() -> None:
    """Which is why that ratio is told and not judged."""
    experiment, of = condition("mobility")
    found = taking_all(experiment, of, {"wifi": PAYLOAD, "wigig": PAYLOAD, "sumrate": PAYLOAD})
    add_durations(found, links_of(experiment, of))
    assert (found[2].value("time_10MB_over_sum") or 0.0) > 1.2


def test_a_transport_that_wastes_a_tenth_is_seen_to() -> None:
    experiment, of = condition("awake")
    found = taking_all(experiment, of, {"wifi": 0.96, "wigig": 0.96, "sumrate": 0.864})
    add_together(experiment, of, found, links_of(experiment, of))
    large = [m.value for m in found[2].metrics if m.name == "time_1GB_over_together"]
    assert large == pytest.approx([1.11], abs=0.03)


def test_nothing_is_divided_where_a_link_is_void_or_a_download_is_missing() -> None:
    experiment, of = condition("awake")
    found = taking_all(experiment, of, {"wifi": 1.0, "wigig": 1.0, "sumrate": 1.0})
    found[0].void = True
    add_together(experiment, of, found, links_of(experiment, of))
    assert not ratios(found[2])
    found[0].void = False
    found[0].metrics.pop()
    add_together(experiment, of, found, links_of(experiment, of))
    assert not ratios(found[2])


def test_bare_interfaces_have_no_sum() -> None:
    experiment, floor = condition("floor")
    found = taking_all(*condition("awake"), {"wifi": 1.0, "wigig": 1.0, "sumrate": 1.0})
    add_together(experiment, floor, found, links_of(experiment, floor))
    assert not ratios(found[2])


def test_a_course_starts_within_its_trace_wakes_up_and_repeats() -> None:
    trace = Trace(10.0, (8.0, 0.0, 16.0))  # 10, 0 and 20 kB in 10 ms each
    awake = Course.of_trace(trace, 0.0, 0.0)
    assert [awake.bytes_until(t) for t in (5.0, 10.0, 20.0, 30.0, 45.0)] == [
        5000.0, 10_000.0, 10_000.0, 30_000.0, 40_000.0
    ]  # fmt: skip
    waking = Course.of_trace(trace, 5.0, 20.0)
    assert waking.bytes_until(15.0) == 0.0
    assert waking.bytes_until(25.0) == pytest.approx(10_000.0)


def test_a_radio_that_is_asleep_wakes_up_only_after_a_long_pause() -> None:
    experiment, of = condition("los")
    wigig = links_of(experiment, of)[1]
    assert course(experiment, of, wigig, 1, 0).wake_ms == 100.0
    of_files = expect(experiment, FilesExperiment)
    soon = replace(of_files, files=replace(of_files.files, pause_s=0.1))
    assert course(soon, of, wigig, 1, 0).wake_ms == 0.0


def test_a_link_alone_delivers_as_its_downloads_of_all_sizes_say() -> None:
    alone = Alone.of(iter([(1000, 5000.0), (1000, 3000.0), (1000, 4000.0), (9000, 12_000.0)]))
    assert alone.bytes_of(0.0) == 0.0
    assert alone.bytes_of(2000.0) == 500.0
    assert alone.bytes_of(8000.0) == 5000.0
    assert alone.bytes_of(24_000.0) == 18_000.0
