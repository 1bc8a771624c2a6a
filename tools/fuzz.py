"""Builds the fuzz targets and runs each for a while under libFuzzer, one per core.

The targets are compiled with the stable compiler: `fuzz/instrument.sh` adds libFuzzer's counters
to this workspace's crates and to nothing else, so that coverage is that of our own code. Inputs
that fail are kept under the output folder, and the command that runs them again is said. Files of
the laboratory, which Python reads, are drawn by hypothesis for the same time (tests/fuzz/timed.py).

A target that runs too few inputs, or reaches too little, has failed: it would find nothing.

Run: python3 tools/fuzz.py --time 30 --json out/fuzz/report.json
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LONGEST_INPUT = 4096
CORPUS = ROOT / "fuzz/corpus"
BUILT = Path("target/fuzz")
"""A target directory of its own below the root: the names of some libraries are the same with and
without counters, so other builds would link with what has them."""
FILE_TARGETS = ("experiment_file", "trace_file")
"""Read by Python: those of tests/fuzz/timed.py."""
LEAST_PER_S = 2
"""Inputs: the slowest target, whole simulations, runs about eighty on a quiet core."""
LEAST_EDGES = 20
"""The smallest target reaches about fifty."""


def targets() -> list[str]:
    """Names of the fuzz targets."""
    return sorted(path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs"))


def build() -> None:
    """Compiles all targets with counters; CalledProcessError after cargo's own words."""
    environment = os.environ | {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / "fuzz/instrument.sh")}
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "sumrate-fuzz"]
    command += ["--features", "libfuzzer", "--bins", "--target-dir", str(BUILT)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def outcome(target: str, text: str, status: int, seconds: int = 1) -> dict[str, Any]:
    """What libFuzzer says: executions, edges and features covered, and what failed."""
    linked = re.search(r"\((\d+) inline 8-bit counters\)", text)
    covered = re.findall(r"cov: (\d+) ft: (\d+)", text)
    executed = re.search(r"stat::number_of_executed_units:\s+(\d+)", text)
    edges, features = (int(number) for number in covered[-1]) if covered else (0, 0)
    artifact = re.search(r"Test unit written to (\S+)", text)
    found: dict[str, Any] = {
        "target": target,
        "executions": int(executed[1]) if executed else 0,
        "edges": edges,
        "edges_linked": int(linked[1]) if linked else 0,
        "counted": "edges",
        "features": features,
        "failed": status != 0,
        "input": artifact[1] if artifact else None,
    }
    return judged(found, seconds)


def judged(found: dict[str, Any], seconds: int) -> dict[str, Any]:
    """The report of a target, failed as well where it did too little to find anything."""
    least = LEAST_PER_S * seconds
    too_little = []
    if found["executions"] < least:
        too_little.append(f"{found['executions']} executions in {seconds} s, {least} are needed")
    if found["edges"] < LEAST_EDGES:
        words = f"{found['edges']} {found['counted']} reached, {LEAST_EDGES} are needed"
        too_little.append(f"{words}: is it built with counters?")
    why = "; ".join(too_little) or None
    return {**found, "failed": found["failed"] or bool(too_little), "too_little": why}


def fuzz(target: str, seconds: int, output: Path) -> dict[str, Any]:
    """Runs one target; its own finds go under `output`, the kept corpus stays as it is."""
    folder = output / target
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    if target in FILE_TARGETS:
        found = files(target, seconds, folder)
    else:
        command = [
            str(ROOT / BUILT / "release" / f"fuzz_{target}"),
            f"-max_total_time={seconds}",
            f"-max_len={LONGEST_INPUT}",
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            "-use_value_profile=1",
            f"-artifact_prefix={folder}/",
            str(folder / "corpus"),
            str(CORPUS / target),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
        (folder / "log.txt").write_text(done.stderr, encoding="utf-8")
        found = outcome(target, done.stderr, done.returncode, seconds)
    bad = found["input"] or found["too_little"] or folder / "log.txt"
    words = f"FAILED: {bad}" if found["failed"] else "nothing found"
    print(
        f"{target}: {found['executions']} executions, {found['edges']} of "
        f"{found['edges_linked']} {found['counted']} of our code, {words}",
        file=sys.stderr,
        flush=True,
    )
    return found


def files(target: str, seconds: int, folder: Path) -> dict[str, Any]:
    """Runs one target of files that Python reads; an input that fails is kept as a file."""
    python = ROOT / ".venv/bin/python"
    program = str(python) if python.exists() else sys.executable
    command = [program, "-m", "tests.fuzz.timed", target, "--time", str(seconds)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    (folder / "log.txt").write_text(done.stderr, encoding="utf-8")
    nothing = {"target": target, "executions": 0, "edges": 0, "edges_linked": 0, "features": 0}
    found: dict[str, Any] = {**nothing, "counted": "lines", "failed": True, "input": None}
    if done.stdout.startswith("{"):
        found = json.loads(done.stdout)
    if found["input"]:
        kept = folder / "failed-input"
        kept.write_bytes(bytes.fromhex(found["input"]))
        found["input"] = str(kept)
    return judged(found, seconds)


def again(run: dict[str, Any]) -> str:
    """The command that gives a target once more what failed; all inputs where none is known."""
    target, kept = run["target"], run["input"] or ""
    if target in FILE_TARGETS:
        words = f"PYTHONPATH=python .venv/bin/python -m tests.fuzz.timed {target} {kept}"
    else:
        words = f"{BUILT}/release/fuzz_{target} {kept}"
    return words.rstrip()


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if any target failed, 2 if they do not build, 130 if interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*targets(), *FILE_TARGETS]
    parser.add_argument("--time", type=int, default=30, metavar="S", help="seconds per target")
    parser.add_argument("--only", nargs="+", choices=every, help="run these targets only")
    parser.add_argument("--output", type=Path, default=ROOT / "out/fuzz", help="where finds go")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report to this file")
    parser.add_argument("--build-only", action="store_true", help="build the targets, run none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at a time")
    arguments = parser.parse_args(argv)
    if arguments.time < 1:
        parser.error(f"--time is {arguments.time}: use at least 1 second")
    chosen = arguments.only or every
    try:
        if not set(chosen) <= set(FILE_TARGETS):
            build()
    except subprocess.CalledProcessError as error:
        print(f"the targets do not build: exit status {error.returncode}", file=sys.stderr)
        return 2
    if arguments.build_only:
        return 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = list(pool.map(lambda t: fuzz(t, arguments.time, arguments.output), chosen))
    report = {"schema": "sumrate.fuzz.v1", "seconds": arguments.time, "targets": runs}
    text = json.dumps(report, indent=2) + "\n"
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    for run in runs:
        if run["failed"]:
            print(f"run it again: {again(run)}", file=sys.stderr)
    return int(any(run["failed"] for run in runs))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
