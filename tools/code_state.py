"""Which code a report is of: git's tree of each directory that it describes, at the time it ran.

`python3 tools/code_state.py REPORT -- COMMAND ...` runs a command that writes a JSON report, and
adds a field `code` to it: the commit, its date, and the tree of every directory, as it was in the
working tree with what was not committed. A report that was made while the code changed says so.
Exit status: the command's own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DIRECTORIES = (
    "crates/fbdt",
    "crates/fbdt-proto",
    "crates/fbdt-sim",
    "crates/sumrate-capture",
    "crates/sumrate-cli",
    "crates/sumrate-link",
    "fuzz",
    "python/sumrate/lab/faults",
)
"""All that a table can be of."""


def git(*arguments: str, root: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a git command prints; CalledProcessError if it fails, with git's words in it."""
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(env or {})},
    )
    return done.stdout.strip()


def state(root: Path = ROOT, directories: Sequence[str] = DIRECTORIES) -> dict[str, Any] | None:
    """Commit, its date and the trees of the working tree; None outside a repository."""
    present = [name for name in directories if (root / name).is_dir()]
    try:
        index = Path(git("rev-parse", "--path-format=absolute", "--git-path", "index", root=root))
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "index"
            if index.exists():
                copy.write_bytes(index.read_bytes())
            own = {"GIT_INDEX_FILE": str(copy)}
            if present:
                git("add", "--all", "--", *present, root=root, env=own)
            whole = git("write-tree", root=root, env=own)
        return {
            "commit": git("rev-parse", "HEAD", root=root),
            "date": git("show", "-s", "--format=%cs", "HEAD", root=root),
            "trees": {name: git("rev-parse", f"{whole}:{name}", root=root) for name in present},
        }
    except (OSError, subprocess.CalledProcessError):
        return None


def run(report: Path, command: Sequence[str]) -> int:
    """Runs the command and notes in its report which code it was of."""
    before, began = state(), time.time()
    try:
        status = _waited(command)
    except FileNotFoundError as error:
        print(f"{command[0]}: {error.strerror}: build it, or name another program", file=sys.stderr)
        return 127
    if before is not None and report.exists() and report.stat().st_mtime >= began - 1:
        document = json.loads(report.read_text(encoding="utf-8"))
        after = state()
        changed = after is None or after["trees"] != before["trees"]
        document["code"] = {**before, "changed_meanwhile": changed}
        report.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return status


def _waited(command: Sequence[str]) -> int:
    """Runs it to its end, also after Ctrl-C, which it gets itself and tidies up after."""
    with subprocess.Popen(list(command)) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue


def main(argv: Sequence[str] | None = None) -> int:
    """The command's exit status; 2 without a report and a command, 130 if interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) < 3 or words[1] != "--":
        print("usage: python3 tools/code_state.py REPORT -- COMMAND ...", file=sys.stderr)
        return 2
    try:
        return run(Path(words[0]), words[2:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
