"""Processor time of the programs under test: all of it, and what the kernel took of it."""

import sys
from pathlib import Path

import pytest

from sumrate.lab.experiment.record import Run, add_benchmark
from sumrate.lab.process import Process, processor_time

SPEND = {
    "itself": "while sum(os.times()[:2]) < 0.3: sum(range(1 << 16))",
    "the kernel": """
with open("/dev/zero", "rb", buffering=0) as zeros:
    while sum(os.times()[:2]) < 0.3:
        zeros.read(1 << 20)
""",
}


@pytest.mark.parametrize("where", SPEND)
def test_the_kernel_is_told_from_the_program(where: str, tmp_path: Path) -> None:
    with Process([sys.executable, "-c", f"import os\n{SPEND[where]}"], log=tmp_path / "log") as one:
        assert one.wait(60) == 0, one.tail()
    found = processor_time(client=[one, one], server=[])
    spent, in_kernel = found["cpu_seconds"], found["kernel_cpu_seconds"]
    assert spent["client"] >= 0.6
    assert spent["server"] == in_kernel["server"] == 0.0
    assert (in_kernel["client"] > spent["client"] / 2) == (where == "the kernel")


def test_both_are_recorded_per_gigabyte() -> None:
    run = Run("sumrate", "unshaped", "cubic", "default", 0, 1, void=False)
    both = {"client": 1.0, "server": 2.0}
    add_benchmark(run, {"bytes": 2e9, "cpu_seconds": both, "kernel_cpu_seconds": {"client": 0.5}})
    assert run.value("cpu_s_per_gb") == pytest.approx(1.5)
    assert run.value("kernel_cpu_s_per_gb") == pytest.approx(0.25)
