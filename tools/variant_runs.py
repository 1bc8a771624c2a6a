"""Builds variants of the core in a copy of the tree and keeps their outcomes.

The copy and its target directory are reused, so that cargo compiles only what a variant changes.
"""

import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from variants import Variant, edited

COPIED = ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates", "fuzz")
"""What cargo reads of the workspace to build one of its crates."""
JUDGED = ("Cargo.lock", "rust-toolchain.toml", "crates/fbdt-units", "crates/fbdt-wire",
          "crates/fbdt-coupling", "crates/fbdt-proto", "crates/fbdt-baselines",
          "crates/fbdt-sim", "crates/fbdt-world")  # fmt: skip
"""What outcomes depend on."""
CHUNK = 500
"""Draws of one call. After each, a variant that has changed no outcome is not run further."""
PATIENCE = 10.0
"""Times the unmodified code's time after which a variant counts as endless."""
PROFILE = {
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_LTO": "off",
}
FIELDS = ("goodput_mbps", "stall_ms", "in_order_p99_ms", "latency_p99_ms")
DOES_NOT_BUILD = "does not build"
DOES_NOT_FINISH = "does not finish"


class Row(NamedTuple):
    """The outcome of one draw."""

    values: tuple[float, ...]
    is_broken: bool


@dataclass
class Run:
    """A variant's outcomes, by seed from 0."""

    rows: list[Row]
    build_s: float = 0.0
    judge_s: float = 0.0
    failure: str = ""


def sources(root: Path, names: Sequence[str]) -> Iterator[Path]:
    """Files of these names and below these folders, relative to the root."""
    for name in names:
        for path in (root / name, *sorted((root / name).rglob("*"))):
            inside = path.relative_to(root)
            if path.is_file() and not {"target", "node_modules"} & {*inside.parts}:
                yield inside


class Judge:
    """Runs variants on the draws from seed 0, or reads what was run before."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        draws: int,
        threads: int | None = None,
        is_decided: Callable[[Run, Run], bool] = lambda _run, _base: False,
    ) -> None:
        """The copy of `root`, and all outcomes, are below `folder`.

        `is_decided` compares a variant with the unmodified code, and says whether more draws are
        needless.
        """
        self.is_decided = is_decided
        self.say: Callable[[str], None] = lambda _line: None
        self.root, self.folder, self.draws = root, folder, draws
        self.tree, self.target = folder / "tree", folder / "target"
        self.threads = ["--threads", str(threads)] if threads else []
        for name in ("runs", "logs", "tree"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        for path in sources(root, JUDGED):
            digest.update(str(path).encode() + b"\0" + (root / path).read_bytes())
        self.digest = digest.hexdigest()

    def source(self, variant: Variant) -> str:
        """A hash of what the variant's outcomes depend on."""
        return hashlib.sha256(f"{self.digest} {variant.edits}".encode()).hexdigest()

    def path_of(self, variant: Variant, kind: str) -> Path:
        """The file with the variant's outcomes (`runs`), or what its programs printed (`logs`)."""
        name = re.sub(r"[^\w.-]", "-", variant.title)
        return self.folder / kind / f"{name}.{'json' if kind == 'runs' else 'log'}"

    def kept(self, variant: Variant) -> Run:
        """Outcomes of an earlier run of the same source; empty if there are none."""
        path = self.path_of(variant, "runs")
        stored: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        if stored.pop("source", "") != self.source(variant):
            return Run([])
        rows = [Row(tuple(values), broken) for values, broken in stored.pop("rows")]
        return Run(rows, **stored)

    def keep(self, variant: Variant, run: Run) -> None:
        """Writes outcomes; a file of this name is always whole."""
        path = self.path_of(variant, "runs")
        text = json.dumps({"source": self.source(variant), **vars(run)})
        path.with_suffix(".part").write_text(text, encoding="utf-8")
        path.with_suffix(".part").replace(path)

    def is_known(self, variant: Variant, base: Run) -> bool:
        """Whether nothing of the variant is to be run."""
        return self._is_whole(self.kept(variant), base)

    def _is_whole(self, run: Run, base: Run) -> bool:
        """Whether all draws were run, or the first chunks decide."""
        if run.failure or len(run.rows) >= self.draws:
            return True
        if len(run.rows) < CHUNK or not base.rows:
            return False
        return run.rows == base.rows[: len(run.rows)] or self.is_decided(run, base)

    def run(self, variant: Variant, base: Run | None = None) -> Run:
        """The variant's outcomes: at most of all draws, of none if it does not build."""
        run = self.kept(variant)
        base = base or Run([])
        if self._is_whole(run, base):
            return run
        started = time.monotonic()
        built = self.build(variant)
        run.build_s = time.monotonic() - started
        if not built:
            return Run([], run.build_s, failure=DOES_NOT_BUILD)
        while not self._is_whole(run, base):
            count = min(CHUNK, self.draws - len(run.rows))
            started = time.monotonic()
            rows = self.outcomes(variant, len(run.rows), count, base)
            run.judge_s += time.monotonic() - started
            run.failure = "" if rows else DOES_NOT_FINISH
            run.rows += rows
            self.keep(variant, run)
            self.say(f"  {variant.title}: {len(run.rows)} of {self.draws} draws")
        return run

    def build(self, variant: Variant) -> bool:
        """Makes the copy the variant's tree and builds it; whether that succeeds."""
        changed = edited(self.root, variant)
        there = set(sources(self.root, COPIED))
        for path in there:
            new = changed.get(str(path), "").encode() or (self.root / path).read_bytes()
            copy = self.tree / path
            if not copy.is_file() or copy.read_bytes() != new:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(new)
        for gone in set(sources(self.tree, COPIED)) - there:
            (self.tree / gone).unlink()
        command = ["cargo", "build", "--release", "--locked", "--package", "fbdt-world"]
        command += ["--target-dir", str(self.target)]
        with self.path_of(variant, "logs").open("w", encoding="utf-8") as log:
            return subprocess.run(command, cwd=self.tree, env=os.environ | PROFILE, stdout=log,
                                  stderr=log, check=False).returncode == 0  # fmt: skip

    def outcomes(self, variant: Variant, first: int, count: int, base: Run) -> list[Row]:
        """Outcomes of `count` draws; none if the judge fails or takes far too long."""
        command = [str(self.target / "release/fbdt-world"), "outcomes", "--draws", str(count)]
        command += ["--from", str(first), *self.threads]
        limit = 60 + PATIENCE * base.judge_s / len(base.rows) * count if base.rows else None
        try:
            with self.path_of(variant, "logs").open("a", encoding="utf-8") as log:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=True,
                                      text=True, timeout=limit)  # fmt: skip
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return []
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return [Row(tuple(one[field] for field in FIELDS), bool(one["violation"])) for one in found]
