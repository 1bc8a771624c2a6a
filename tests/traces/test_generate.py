"""The generator: seeded, calibrated to what was measured, and made of the states it says."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from statistics import correlation

import pytest

from sumrate.traces import KINDS, MEASURED, Calibration, calibrate, generate
from sumrate.traces.calibration import table
from sumrate.traces.measure import goodputs
from sumrate.traces.trace import text


@pytest.fixture(scope="module")
def calibrations() -> dict[str, Calibration]:
    return {kind: calibrate(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bytes_other_seed_other_trace(kind: str) -> None:
    assert text(generate(kind, 1, 20)) == text(generate(kind, 1, 20))
    assert generate(kind, 1, 20).rates_mbps != generate(kind, 2, 20).rates_mbps


def test_bytes_are_the_same_on_every_machine() -> None:
    """Experiments name a seed; a trace that changes makes their results incomparable."""
    found = "".join(text(generate(kind, 7, 30)) for kind in KINDS)
    assert hashlib.sha256(found.encode()).hexdigest() == PINNED, "say so in CHANGELOG.md"


PINNED = "7eb5a69cad3e3aca20acec2f5c75aec57c28fe2c6623729cd35d4641dcc0510d"


def test_a_longer_trace_begins_like_a_shorter_one() -> None:
    for kind in KINDS:
        short = generate(kind, 3, 5).rates_mbps
        assert generate(kind, 3, 10).rates_mbps[: len(short)] == short


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_as_measured(kind: str, calibrations: dict[str, Calibration]) -> None:
    findings = list(calibrations[kind].findings())
    assert len(findings) == 7
    assert [f for f in findings if not f.within] == []


def test_a_wrong_statistic_is_found(calibrations: dict[str, Calibration]) -> None:
    right = calibrations["wifi-los"]
    off = replace(right.generated, p5=430.0, p95=600.0, autocorrelation_1s=0.75)
    found = [f.statistic for f in replace(right, generated=off).findings() if not f.within]
    assert found == ["p95", "autocorrelation_1s"]


def test_document_has_the_printed_table(
    calibrations: dict[str, Calibration], repository: Path
) -> None:
    """docs/traces.md is what `python -m sumrate.traces --calibration` prints."""
    document = (repository / "docs/traces.md").read_text(encoding="utf-8")
    assert table(list(calibrations.values())) in document


def test_radios_of_one_seed_are_independent() -> None:
    """Correlation of 20 pairs of traces; as many pairs of different seeds set the scale."""
    seeds = range(1, 21)
    wigig = {s: goodputs(generate("wigig-nlos", s, 120)) for s in seeds}
    wifi = {s: goodputs(generate("wifi-los", s, 120)) for s in seeds}
    same = [correlation(wigig[s], wifi[s]) for s in seeds]
    other = [correlation(wigig[s], wifi[21 - s]) for s in seeds]
    limit = 4 * math.sqrt(math.fsum(c * c for c in other)) / len(other)
    assert abs(math.fsum(same) / len(same)) < limit


def zeros(kind: str, seconds: float) -> list[int]:
    """Lengths of the outages in steps."""
    found, run = [], 0
    for rate in generate(kind, 5, seconds).rates_mbps:
        if rate == 0:
            run += 1
        elif run:
            found.append(run)
            run = 0
    return found


def test_turns_lose_the_beam_up_to_300_ms() -> None:
    """Four turns in a lap of 15 to 16.5 s; steps at an outage's edges are partly dark."""
    outages = [length for length in zeros("wigig-mobility", 330) if length >= 10]
    assert max(outages) <= 30
    assert len(outages) >= 330 / 16.5 * 4 * 0.6


def test_wifi_has_no_outage() -> None:
    assert zeros("wifi-los", 300) == []
    assert "wifi-los" in MEASURED


def test_moving_alternates_between_facing_and_turned_away() -> None:
    means = goodputs(generate("wigig-mobility", 2, 330), 3.0)
    assert sum(m > 1350 for m in means) > 0.15 * len(means)
    assert sum(m < 750 for m in means) > 0.15 * len(means)


@pytest.mark.parametrize(("kind", "seconds"), [("wigig", 10.0), ("wifi-los", 0.001)])
def test_impossible_traces_are_refused(kind: str, seconds: float) -> None:
    with pytest.raises(ValueError, match="trace"):
        generate(kind, 1, seconds)
