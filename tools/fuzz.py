"""Builds the fuzz targets and runs each for a while under libFuzzer, one per core.

The targets are compiled with the stable compiler: `fuzz/instrument.sh` adds libFuzzer's counters
to this workspace's crates and to nothing else, so that coverage is that of our own code. Inputs
that fail are kept under the output folder, and the command that runs them again is said.

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


def targets() -> list[str]:
    """Names of the fuzz targets."""
    return sorted(path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs"))


def build() -> None:
    """Compiles all targets with counters; CalledProcessError after cargo's own words."""
    environment = os.environ | {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / "fuzz/instrument.sh")}
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "sumrate-fuzz"]
    command += ["--features", "libfuzzer", "--bins"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def outcome(target: str, text: str, status: int) -> dict[str, Any]:
    """What libFuzzer says: executions, edges and features covered, and what failed."""
    linked = re.search(r"\((\d+) inline 8-bit counters\)", text)
    covered = re.findall(r"cov: (\d+) ft: (\d+)", text)
    executed = re.search(r"stat::number_of_executed_units:\s+(\d+)", text)
    edges, features = (int(number) for number in covered[-1]) if covered else (0, 0)
    artifact = re.search(r"Test unit written to (\S+)", text)
    return {
        "target": target,
        "executions": int(executed[1]) if executed else 0,
        "edges": edges,
        "edges_linked": int(linked[1]) if linked else 0,
        "features": features,
        "failed": status != 0,
        "input": artifact[1] if artifact else None,
    }


def fuzz(target: str, seconds: int, output: Path) -> dict[str, Any]:
    """Runs one target; its own finds go under `output`, the kept corpus stays as it is."""
    folder = output / target
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    command = [
        str(ROOT / "target/release" / f"fuzz_{target}"),
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
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    (folder / "log.txt").write_text(done.stderr, encoding="utf-8")
    found = outcome(target, done.stderr, done.returncode)
    words = f"FAILED: {found['input']}" if found["failed"] else "nothing found"
    print(
        f"{target}: {found['executions']} executions, {found['edges']} edges of our code, {words}",
        file=sys.stderr,
        flush=True,
    )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if any target failed, 2 if they do not build, 130 if interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time", type=int, default=30, metavar="S", help="seconds per target")
    parser.add_argument("--only", nargs="+", choices=targets(), help="run these targets only")
    parser.add_argument("--output", type=Path, default=ROOT / "out/fuzz", help="where finds go")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report to this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at a time")
    arguments = parser.parse_args(argv)
    if arguments.time < 1:
        parser.error(f"--time is {arguments.time}: use at least 1 second")
    try:
        build()
    except subprocess.CalledProcessError as error:
        print(f"the targets do not build: exit status {error.returncode}", file=sys.stderr)
        return 2
    chosen = arguments.only or targets()
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
            again = f"target/release/fuzz_{run['target']} {run['input'] or ''}"
            print(f"run it again: {again}", file=sys.stderr)
    return int(any(run["failed"] for run in runs))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
