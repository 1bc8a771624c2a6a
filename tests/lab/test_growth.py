"""Growth is told from noise: a planted leak is found, and what merely comes and goes is not."""

import itertools
import random
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from sumrate.lab.faults.growth import FEWEST_BINS, TOLERANCE, Growth, Slope, TooShortError, slope
from sumrate.lab.process import Process

HOURS = 2.0
MIB = float(1 << 20)


def samples(seed: int, leak_per_hour: float) -> tuple[list[float], list[float]]:
    """Resident size over two hours: a floor, bursts of up to 300 MiB, and the leak."""
    generator = random.Random(seed)
    times, values, burst = [], [], 0.0
    for number in range(int(HOURS * 3600)):
        burst = generator.uniform(0, 300 * MIB) if generator.random() < 0.1 else burst * 0.8
        floor = 60 * MIB + generator.gauss(0, MIB)
        times.append(float(number))
        values.append(floor + burst + leak_per_hour * number / 3600)
    return times, values


@pytest.mark.parametrize("seed", range(10))
def test_a_planted_leak_is_found(seed: int) -> None:
    found = slope(*samples(seed, 20 * MIB))
    assert found.grows(TOLERANCE["memory_bytes"])
    assert found.low < 20 * MIB < found.high


@pytest.mark.parametrize("seed", range(10))
def test_what_comes_and_goes_does_not_grow(seed: int) -> None:
    found = slope(*samples(seed, 0.0))
    assert not found.grows(TOLERANCE["memory_bytes"])
    assert found.low < 0 < found.high


def test_descriptors_that_leak_slowly_are_found() -> None:
    times = [float(number) for number in range(7200)]
    steady = [20.0 + number % 7 for number in range(7200)]
    assert not slope(times, steady).grows(TOLERANCE["descriptors"])
    leaking = [value + number // 600 for number, value in enumerate(steady)]
    assert slope(times, leaking).grows(TOLERANCE["descriptors"])


def test_an_interval_is_as_wide_as_a_table_of_students_t_says() -> None:
    # 24 points, residuals +1 and -1 in turn: 22 degrees of freedom, t = 2.819 at 99 %.
    times = [float(number) for number in range(24)]
    values = [(-1.0) ** number for number in range(24)]
    found = slope(times, values)
    spread = sum((at - 11.5) ** 2 for at in times)
    estimate = found.per_hour / 3600
    rest = sum((v - estimate * (at - 11.5)) ** 2 for at, v in zip(times, values, strict=True))
    half = (found.high - found.low) / 2 / 3600
    assert half == pytest.approx(2.819 * (rest / 22 / spread) ** 0.5, rel=1e-3)


@pytest.mark.parametrize("count", [0, 1, FEWEST_BINS - 1])
def test_a_short_series_is_refused(count: int) -> None:
    with pytest.raises(TooShortError):
        slope([float(n) for n in range(count)], [0.0] * count)


def test_a_sample_taken_meanwhile_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = Growth({})
    seconds = SimpleNamespace(monotonic=partial(next, itertools.count(0.0)))
    monkeypatch.setattr("sumrate.lab.faults.growth.time", seconds)

    def sample() -> None:
        growth._note("it", 1, {"memory_bytes": 1 << 20, "descriptors": 9})

    def beside_the_sampler(times: Sequence[float], values: Sequence[float]) -> Slope:
        sample()
        return slope(times, values)

    for _ in range(1000):
        sample()
    monkeypatch.setattr("sumrate.lab.faults.growth.slope", beside_the_sampler)
    assert growth.slopes()["it"]["descriptors"]["mean"] == 9


LEAKS = """
import sys, time
held = []
print("ready", flush=True)
while True:
    time.sleep(0.01)
    if sys.argv[1] == "leak":
        held.append((open("/dev/null"), bytearray(1 << 18)))
"""


@pytest.mark.parametrize("kind", ["leak", "keep"])
def test_a_process_that_leaks_is_told_from_one_that_does_not(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Process([sys.executable, "-c", LEAKS, kind], log=log) as process:
        process.wait_until(lambda: "ready" in log.read_text(encoding="ascii"), "it runs")
        with Growth({"it": process}) as growth:
            subprocess.run(["sleep", "4"], check=True)
            found = growth.slopes()["it"]
    assert {quantity: seen["grows"] for quantity, seen in found.items()} == {
        "memory_bytes": kind == "leak",
        "descriptors": kind == "leak",
    }
