"""Times the README's way from an empty clone to a first download over two radios.

The clone, its package and the README are those of the last commit. The story of "Use it" is then
told word for word between two machines of tests/docs/world.py, by the packaged program alone; each
command is timed, and in the end `sumrate status` says what each radio carried. Debian packages that
this machine has already are not installed again, and crates that it has fetched not fetched again;
the package is unpacked instead of installed (`tests/system/test_package.py` installs it).

Run: PYTHONPATH=python:. python3 -m tests.docs.first_use [--json FILE]
Exit status: 0, or 1 if a command failed or a radio carried nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumrate.lab.namespaces import IsolationUnavailableError, run_isolated
from sumrate.lab.programs import BIN_DIR_VARIABLE
from tests.docs.blocks import ROOT, Block, Elsewhere, Run, blocks, mark
from tests.docs.world import World, world

README = "README.md"
PACKAGE = "make deb"
ON_THE_LAPTOP = "laptop"


class FirstUseError(RuntimeError):
    """A step of the README failed; the message has its output."""


@dataclass
class FirstUse:
    """What each step took, and what the radios carried."""

    steps: list[tuple[str, float]] = field(default_factory=list)
    """Command and seconds, in the README's order."""
    received_bytes: dict[str, int] = field(default_factory=dict)
    """Payload that arrived over each radio."""

    def time(self, command: str, began: float) -> None:
        """Enters a step that has ended now."""
        self.steps.append((command, time.monotonic() - began))

    def report(self) -> dict[str, Any]:
        """For a file."""
        return {
            "steps": [{"command": what, "seconds": round(s, 1)} for what, s in self.steps],
            "seconds": round(sum(s for _, s in self.steps), 1),
            "received_bytes": self.received_bytes,
        }


def story() -> list[Block]:
    """The README's blocks that a new user types, in their order."""
    text = (ROOT / README).read_text(encoding="utf-8")
    return [b for b in blocks(text, README) if b.language == "sh" and isinstance(mark(b), Run)]


def packaged(folder: Path, told: FirstUse) -> Path:
    """Clones, makes the package as the README says, and unpacks it; the program's folder.

    Raises:
        FirstUseError: a step failed.

    """
    made = list(blocks((ROOT / README).read_text(encoding="utf-8"), README))
    assert any(PACKAGE in b.text and isinstance(mark(b), Elsewhere) for b in made)
    clone = folder / "sumrate"
    bare = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    for argv in (["git", "clone", "--quiet", str(ROOT), str(clone)], PACKAGE.split()):
        began = time.monotonic()
        where = clone if clone.exists() else folder
        done = subprocess.run(argv, cwd=where, env=bare, check=False)
        if done.returncode:
            raise FirstUseError(f"`{' '.join(argv)}` ended with {done.returncode}")
        told.time(" ".join(argv[:2]), began)
    (package,) = (clone / "out/deb").glob("sumrate_*.deb")
    began = time.monotonic()
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "installed")], check=True)
    told.time(f"unpack {package.name}", began)
    os.environ[BIN_DIR_VARIABLE] = str(clone / "target/release")  # the emulator
    return folder / "installed/usr/bin"


def tell(installed: Path, folder: Path, told: FirstUse) -> None:
    """Types the README's commands, and asks what each radio carried.

    Raises:
        AssertionError: a command failed or said something else than the README.

    """
    with world(folder, README) as made, ExitStack() as running:
        program = made.folder / "bin/sumrate"
        program.unlink()
        program.symlink_to(installed / "sumrate")
        for number, block in enumerate(story()):
            how = mark(block)
            assert isinstance(how, Run)
            began = time.monotonic()
            if how.keeps_running:
                log = folder / f"{number}.log"
                running.enter_context(made.start(how.host, block.text, how.says, log))
            else:
                output = made.run(how.host, block.text)
                assert how.says in output, f"{block.place}: no `{how.says}` in\n{output}"
            told.time(block.text.strip().replace("\\\n", " "), began)
        told.received_bytes = received(made)


def received(made: World) -> dict[str, int]:
    """Payload bytes that arrived over each of the laptop's radios."""
    status = json.loads(made.run(ON_THE_LAPTOP, "sumrate status --json"))
    (session,) = status["sessions"]
    return {path["name"]: path["received_bytes"] for path in session["paths"]}


def tell_and_report(installed: Path, folder: Path, told: FirstUse, kept: Path | None) -> int:
    """Tells the story and prints what all steps took; the exit status."""
    folder.mkdir()
    try:
        tell(installed, folder, told)
    except AssertionError as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1
    for command, seconds in told.steps:
        print(f"{seconds:7.1f} s  {command}")
    report = told.report()
    print(f"{report['seconds']:7.1f} s  in all, without reading and typing")
    total = sum(told.received_bytes.values())
    for radio, count in told.received_bytes.items():
        print(f"{radio}: {count / 1e6:.0f} MB, {count / max(1, total):.0%}")
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if len(told.received_bytes) > 1 and all(told.received_bytes.values()) else 1


def main() -> int:
    """Makes the package here, tells the story in namespaces of its own; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    arguments = parser.parse_args()
    kept = arguments.json and arguments.json.absolute()
    told = FirstUse()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            installed = packaged(folder, told)
            return run_isolated(lambda: tell_and_report(installed, folder / "w", told, kept))
        except (FirstUseError, IsolationUnavailableError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
