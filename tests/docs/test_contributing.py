"""What is said of CI is what it runs."""

import re
from pathlib import Path


def test_how_long_ci_soaks_and_fuzzes(repository: Path) -> None:
    steps = (repository / ".ci/run").read_text(encoding="utf-8")
    found = {
        command: re.findall(rf"make {command} (?:SEEDS|TIME)=(\d+)", steps)
        for command in ("soak", "soak-real", "fuzz")
    }
    [seeds], [soaked], [fuzzed] = found.values()
    said = " ".join((repository / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert f"{int(seeds):,} simulated seeds" in said
    assert f"{soaked} s of real faults and {fuzzed} s of each fuzz target" in said
    reliability = (repository / "docs/reliability.md").read_text(encoding="utf-8")
    assert f"CI runs {soaked} s, " in reliability
