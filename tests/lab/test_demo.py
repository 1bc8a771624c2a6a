"""The demo's choices without any network: the scale, repeated rounds, the end and the picture."""

from pathlib import Path
from typing import Any

import pytest

from sumrate.lab.demo import rounds
from sumrate.lab.demo.carry import Trial, largest_scale
from sumrate.lab.demo.command import scale_of_rates, size_in_bytes
from sumrate.lab.demo.rounds import Demo, Options, measure_rounds
from sumrate.lab.demo.setting import (
    DEFAULT_SIZE,
    EXPECTED_MBPS,
    MEASURED_FIRST,
    SCALES,
    Setting,
    setting,
)
from sumrate.lab.demo.transfer import Outcome
from sumrate.lab.processor_users import ProcessorUsers
from sumrate.report import svg
from tests.samples import demo_result


def tried(late: dict[float, float], carried: float = 0.97) -> tuple[float, list[Trial]]:
    return largest_scale(lambda scale: Trial(scale, late.get(scale, 0.0), 1.0, carried))


def test_the_largest_scale_on_time_is_taken() -> None:
    assert tried({})[0] == 1.0
    assert tried({1.0: 0.02, 0.5: 0.011, 0.25: 0.009})[0] == 0.25
    assert [trial.on_time for trial in tried({1.0: 0.02})[1]] == [False, True]


def test_the_smallest_scale_is_taken_where_none_is_on_time() -> None:
    scale, trials = tried(dict.fromkeys(SCALES, 0.3))
    assert scale == SCALES[-1]
    assert not any(trial.on_time for trial in trials)
    assert tried({}, carried=0.5)[0] == SCALES[-1]


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_takes_the_same_time_and_outlasts_the_blockage(scale: float) -> None:
    at, full = setting(scale, DEFAULT_SIZE), setting(1.0, DEFAULT_SIZE)
    for scheme in EXPECTED_MBPS:
        assert at.expected_s(scheme) == pytest.approx(full.expected_s(scheme))
        assert at.expected_s(scheme) > at.wigig.blackouts[0].end_s + 1.0
    assert [link.down.rate_mbps for link in at.links] == [630.0 * scale, 1800.0 * scale]


def rounds_of(disturbed_above: float, *, may_repeat: bool = True) -> tuple[list[float], list[str]]:
    """Scales at which rounds were measured, and what was said, if larger ones are disturbed."""
    measured: list[float] = []
    said: list[str] = []

    def measure(at: Setting, following: Setting | None) -> tuple[dict[str, Outcome], str | None]:
        measured.append(at.scale)
        given_up = at.scale > disturbed_above and may_repeat and following is not None
        return {}, "Sumrate: late" if given_up else None

    first = setting(1.0, DEFAULT_SIZE)
    done = measure_rounds(first, measure, DEFAULT_SIZE, said.append)
    assert done.setting.scale == measured[-1]
    assert [found["scale"] for found in done.given_up] == measured[:-1]
    return measured, said


def test_a_disturbed_round_is_repeated_at_the_next_smaller_scale() -> None:
    measured, said = rounds_of(0.25)
    assert measured == [1.0, 0.5, 0.25]
    assert said[0] == "Sumrate: late; all downloads start again at half of the rates."


def test_rounds_end_at_the_smallest_scale_and_when_time_is_up() -> None:
    assert rounds_of(0.0)[0] == list(SCALES)
    assert rounds_of(0.0, may_repeat=False)[0] == [1.0]


def test_a_scale_is_read_as_a_fraction_or_a_number() -> None:
    assert [scale_of_rates(text) for text in ("1", "1/1", "1/2", "0.25", "1/8")] == [
        *(1.0, 1.0, 0.5, 0.25, 0.125)
    ]
    with pytest.raises(Exception, match="use 1, 1/2, 1/4 or 1/8"):
        scale_of_rates("1/3")


def test_a_size_is_in_powers_of_1000_or_of_1024() -> None:
    sizes = [size_in_bytes(text) for text in ("1M", "1.5g", "512Mi", "2gi", "1048576")]
    assert sizes == [10**6, 1_500_000_000, 512 << 20, 2 << 30, 1 << 20]
    for bad in ("", "M", "1T", "2GB", "infG", "-1M", "1e9"):
        with pytest.raises(Exception, match="use a number with K"):
            size_in_bytes(bad)
    with pytest.raises(Exception, match="at least 1M"):
        size_in_bytes("999K")


def stalled(result: dict[str, Any], name: str, from_s: float, to_s: float) -> None:
    entry = result["schemes"][name]
    entry["longest_stall_ms"] = (to_s - from_s) * 1e3
    entry["series"] = [[t, 0.0 if from_s < t < to_s else g] for t, g in entry["series"]]


def test_the_picture_says_what_was_seen() -> None:
    result = demo_result()
    stalled(result, "wigig", 2.0, 6.2)
    drawn = svg.standing_alone(result)
    assert svg.finding(result) in drawn
    assert "WiGig blocked for 2 s: Sumrate pauses for 10 ms and finishes first" in drawn
    assert "no data for 4.2 s" in drawn
    assert "(approximate)" not in drawn
    assert "(approximate)" in svg.standing_alone({**result, "approximate": True})
    assert drawn.index(">Sumrate<") < drawn.index(">Kernel MPTCP<") < drawn.index(">WiFi alone<")


def test_the_picture_says_who_is_back_late() -> None:
    result = demo_result()
    entry = result["schemes"]["mptcp"]
    entry["series"] = [[t, 600.0 if 2.0 < t < 5.3 else g] for t, g in entry["series"]]
    assert svg.note("mptcp", result) == "pauses for 10 ms, back 1.3 s late"
    assert svg.note("sumrate", result) == "pauses for 10 ms"
    result["schemes"]["sumrate"]["goodput_mbps"] = 1.0
    assert "finishes first" not in svg.finding(result)


class NoUsers(ProcessorUsers):
    """Nobody else uses the processors."""

    def begin(self) -> None:
        """Looks at nothing."""

    def end(self) -> str | None:
        """Nothing was used."""
        return None


@pytest.mark.parametrize(("within_s", "given_up"), [(1e6, [1.0, 0.5, 0.25]), (0.0, [])])
def test_a_round_is_given_up_only_where_another_follows(
    within_s: float, given_up: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Outcome({"void": True, "void_reason": "late"}, None)
    monkeypatch.setattr(rounds, "transfer", lambda *_: late)

    def on_disk(_target: Path, _size: int, fallback: Path) -> tuple[Path, str]:
        fallback.mkdir()
        return fallback, "disk"

    monkeypatch.setattr(rounds, "storage", on_disk)  # a tmpfs would be mounted outside a namespace
    monkeypatch.setattr(
        rounds,
        "trial",
        lambda scale, *_: Trial(scale, late_share=0.0, worst_ms=0.0, carried_share=1.0),
    )
    options = Options(
        size=1 << 20, seed=1, output=tmp_path, only=(), scale=None, within_s=within_s,
        json=False, keep=False, strict=False,
    )  # fmt: skip
    (tmp_path / "work").mkdir()
    found = Demo(options, tmp_path / "work", NoUsers(0, 0)).run()
    assert [entry["scale"] for entry in found.given_up] == given_up
    assert set(found.outcomes) == set(MEASURED_FIRST), "the round that counts is whole"
