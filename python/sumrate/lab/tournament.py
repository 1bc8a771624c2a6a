"""`sumrate-lab tournament`: every scheduler over a matrix of conditions, simulated."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from sumrate.lab.experiment.kept import KEPT, path_of
from sumrate.lab.experiment.store import OUTPUT
from sumrate.lab.options import Runs
from sumrate.lab.programs import REPOSITORY, program
from sumrate.lab.results import commit
from sumrate.report.tournament.__main__ import main as standings
from sumrate.traces import generate, write

SECONDS = 20.0
SEEDS = (1, 2, 3, 4)
ON_SOCKETS = ("tournament-sample", "tournament-contrast")
"""Experiments that repeat a part of it on real sockets."""


def tournament(*, output: Runs = REPOSITORY / "out" / "tournament") -> int:
    """Rank all schedulers in simulated conditions: about 30 minutes on 2 cores.

    Makes traces of 60 GHz and WiFi links, runs every scheduler over a matrix of conditions, and
    writes the standings beside those on real sockets.

    Example: sumrate-lab tournament
    """
    players = program("fbdt-tournament", build="cargo build --release -p fbdt-tournament")
    traces = output / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    for path, kind, seed in pairs(traces):
        write(generate(kind, seed=seed, seconds=SECONDS), path)
    table = output / "published.json"
    subprocess.run([players, "--traces", traces, "--output", table], check=True)
    figure, summary = table.with_suffix(".svg"), table.with_suffix(".md")
    argv = [str(table), "--figure", str(figure), "--summary", str(summary), "--commit", commit()]
    for name in ON_SOCKETS:
        run = OUTPUT / name
        argv += ["--sockets", str(run if run.is_dir() else path_of(KEPT, name))]
    return standings(argv)


def pairs(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """The traces of both radios for each movement and seed: file, kind and seed."""
    for movement in ("los", "nlos", "mobility"):
        for seed in SEEDS:
            for kind in (f"wigig-{movement}", "wifi-los"):
                radio = kind.partition("-")[0]
                yield folder / f"{movement}-{seed}.{radio}.trace", kind, seed
