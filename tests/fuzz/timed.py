"""Files of the laboratory under hypothesis for a given time: `python -m tests.fuzz.timed TARGET`.

With a file behind it, one that failed, the target is given that file and nothing else.

The inputs and what must hold for each are those of the tests beside this file. What is reached is
counted in lines of the code that reads such files; the report is that of `tools/fuzz.py`.
"""

import argparse
import inspect
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz import test_experiment_files, test_trace_files

PACKAGE = Path(__file__).resolve().parents[2] / "python/sumrate"
EXAMPLES = 500
"""Of one run of hypothesis; it is run again with another seed until the time is over."""

Trace = Callable[[FrameType, str, Any], Any]


@dataclass(frozen=True)
class Target:
    """One kind of file."""

    files: st.SearchStrategy[bytes]
    check: Callable[[Path, bytes], None]
    """Raises AssertionError, or anything else, where the file is not read or refused as it should
    be; the path is a folder of its own."""
    code: tuple[Path, ...]
    """Modules whose lines are counted."""


TARGETS = {
    "experiment_file": Target(
        test_experiment_files.FILES,
        test_experiment_files.check,
        (PACKAGE / "lab/experiment/load.py", PACKAGE / "lab/experiment/model.py"),
    ),
    "trace_file": Target(
        test_trace_files.FILES, test_trace_files.check, (PACKAGE / "traces/trace.py",)
    ),
}


def lines_of(files: Sequence[Path]) -> set[tuple[str, int]]:
    """File and number of every line of functions there."""
    found = set()
    for file in files:
        whole = compile(file.read_text(encoding="utf-8"), str(file), "exec")
        for function in _functions(whole):
            found |= {(str(file), line) for _, _, line in function.co_lines() if line}
    return found


def _functions(code: CodeType) -> Iterator[CodeType]:
    """All code within this one, without itself: what runs on import is no input's work."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:  # a class's body runs on import, too
                yield constant
            yield from _functions(constant)


@contextmanager
def traced(wanted: set[tuple[str, int]], reached: set[tuple[str, int]]) -> Iterator[None]:
    """Notes which of these lines run."""
    files = {file for file, _ in wanted}

    def line(frame: FrameType, event: str, _argument: object) -> Trace:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, _event: str, _argument: object) -> Trace | None:
        if frame.f_code.co_filename not in files:
            return None
        reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def fuzz(name: str, seconds: float, first_seed: int = 1) -> dict[str, Any]:
    """Runs one target; the input that failed, shrunk, is the report's `input`."""
    target = TARGETS[name]
    wanted = lines_of(target.code)
    reached: set[tuple[str, int]] = set()
    executions, number, failed, last, broken = 0, first_seed, "", b"", False
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as scratch:

        def once(content: bytes) -> None:
            nonlocal executions, last, broken
            # One is tried however long a busy machine took to draw it; what failed is shrunk.
            if executions and time.monotonic() > deadline and not broken:
                return
            executions += 1
            last = content
            try:
                with traced(wanted, reached):
                    target.check(Path(scratch), content)
            except Exception:
                broken = True
                raise

        while not failed and (not executions or time.monotonic() < deadline):
            try:
                _drawn(target, once, number)()
            except Exception:  # whatever it is: an input brought it about
                failed = traceback.format_exc()
            number += 1
    print(failed, file=sys.stderr, end="")
    return {
        "target": name,
        "executions": executions,
        "edges": len(reached & wanted),
        "edges_linked": len(wanted),
        "counted": "lines",
        "features": 0,
        "failed": bool(failed),
        "input": last.hex() if failed else None,
    }


def _drawn(target: Target, once: Callable[[bytes], None], number: int) -> Callable[[], None]:
    """A run of hypothesis with a seed of its own."""
    chosen = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    drawn: Callable[[], None] = seed(number)(chosen(given(content=target.files)(once)))
    return drawn


def again(name: str, content: bytes) -> int:
    """Gives a target one file; exit status 1 and a traceback if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            TARGETS[name].check(Path(scratch), content)
        except Exception:  # whatever it is: the file brought it about
            traceback.print_exc()
            return 1
    print(f"{name}: {len(content)} bytes, nothing found", file=sys.stderr)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the report as JSON; exit status 1 if an input failed, 2 if a file cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("file", nargs="?", type=Path, help="run this file only, once")
    parser.add_argument("--time", type=float, default=30.0, help="seconds (30)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (1)")
    args = parser.parse_args(argv)
    if args.file is not None:
        try:
            content = args.file.read_bytes()
        except OSError as error:
            parser.error(str(error))
        return again(args.target, content)
    report = fuzz(args.target, args.time, args.seed)
    print(json.dumps(report))
    return int(report["failed"])


if __name__ == "__main__":
    sys.exit(main())
