"""What `sumrate-lab access run|sweep|figure` do."""

import argparse
import csv
import json
import os
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sumrate.access import words
from sumrate.access.budget import make_pool
from sumrate.access.command import MINI_SLOTS, protocols
from sumrate.access.curves import CURVES, Curve, curve_named
from sumrate.access.equations import exact_failure_probability, failure_probability
from sumrate.access.errors import AccessError, whole, within
from sumrate.access.figures import FIGURES, Effort, Figure, figure_named
from sumrate.access.figures.cells import fairness_rows
from sumrate.access.figures.table import QUICK
from sumrate.access.interval import SlottedAbft
from sumrate.access.kernel import Contest, lost_shares
from sumrate.access.power import PowerControl, good_beams, starved
from sumrate.access.scenes import SCENES, Scene, scene_named, with_patterns
from sumrate.access.simulation import Setting, confidence, simulate
from sumrate.access.tasks import Row, SweepError, Task, evaluate
from sumrate.atomic import replacing
from sumrate.lab.results import Progress
from sumrate.phy.codebook import PatternError
from sumrate.phy.parameters import ParameterError

REFUSED = (AccessError, ParameterError, PatternError)
FAILURES = (SweepError, OSError)
MOST_CLIENTS = 1000
"""Of a cell; the standard numbers 254 clients of an AP."""
CELL_S = 0.02
"""About what a realisation of a cell takes."""


def run(args: argparse.Namespace) -> int:
    """One protocol, or several side by side, in one condition."""
    within("capture margin", args.capture_margin, 0.0, 60.0, "dB")
    chosen = protocols(args)
    documents = [_contest(args) if name == MINI_SLOTS else _cell(args, name) for name in chosen]
    if args.json:
        print(json.dumps(documents if args.compare else documents[0], indent=1))
    else:
        print(words.table(documents))
    return 0


def _contest(args: argparse.Namespace) -> dict[str, Any]:
    """The A-BFT alone."""
    if args.good_beams is None or args.mini_slots is None:
        raise AccessError("--protocol mini-slots needs --good-beams and --mini-slots")
    beams = whole("--good-beams", args.good_beams, 1)
    clients = whole("--clients", args.clients, 1, MOST_CLIENTS)
    slots = whole("--mini-slots", args.mini_slots, 1, 1_000_000)
    if beams > slots:
        raise AccessError(
            f"--good-beams must be at most the {slots} mini-slots, each beam has one of its own, "
            f"not {beams}"
        )
    rounds = whole("--rounds", args.rounds, 2, 1_000_000_000)
    capture = args.capture == "on"
    contest = Contest(beams, clients, slots, capture, 10 ** (args.capture_margin / 10),
                      args.decode, max(args.decode, args.target_snr + 3.0))  # fmt: skip
    shares = lost_shares(np.random.default_rng(args.seed), contest, rounds)
    return {
        "schema": "sumrate.access-run.v1",
        "protocol": MINI_SLOTS,
        "good_beams": beams, "clients": clients, "mini_slots": slots, "capture": args.capture,
        "rounds": rounds, "seed": args.seed,
        "failure_probability": float(shares.mean()),
        "standard_error": float(shares.std(ddof=1) / np.sqrt(rounds)),
        "equation_3_6": failure_probability(beams, clients, slots),
        "exact_without_capture": exact_failure_probability(beams, clients, slots),
    }  # fmt: skip


def _scene(args: argparse.Namespace) -> Scene:
    """The scene, with the clients' beams from a file if one is given."""
    found = scene_named(args.scene)
    return with_patterns(found, args.patterns) if args.patterns else found


def _cell(args: argparse.Namespace, protocol: str) -> dict[str, Any]:
    """A whole cell."""
    setting = _setting(args, protocol)
    whole("--clients", args.clients, 1, MOST_CLIENTS)
    whole("--realisations", args.realisations, 2, 1_000_000)
    scene = _scene(args)
    progress = _on_a_terminal(args, f"{protocol}, compiling the simulation (only once)")
    pool = make_pool(scene, max(2000, args.clients), args.seed)
    found = simulate(
        pool, setting, clients=args.clients, realisations=args.realisations, seed=args.seed,
        progress=partial(_realisations, progress, protocol),
    )  # fmt: skip
    failures = found.failure_probability[np.isfinite(found.failure_probability)]
    control = setting.power_control
    lost = starved(pool, control, setting.decode_db).mean() if control else 0.0
    error = failures.std(ddof=1) / np.sqrt(failures.size) if failures.size > 1 else None
    means = {name: confidence(values)[0] for name, values in found.values().items()}
    return {
        "schema": "sumrate.access-run.v1",
        "protocol": protocol, "scene": scene.name, "clients": args.clients,
        "blockage": args.blockage, "capture": args.capture,
        "realisations": args.realisations, "intervals": args.intervals, "seed": args.seed,
        **{name: None if np.isnan(value) else value for name, value in means.items()},
        "standard_error": None if error is None else float(error),
        "jain_standard_error": float(found.jain.std(ddof=1) / np.sqrt(found.jain.size)),
        "mean_good_beams": float(good_beams(pool, control, setting.decode_db).mean()),
        "starved_by_power_control": float(lost),
    }  # fmt: skip


def _setting(args: argparse.Namespace, protocol: str) -> Setting:
    """What the options say."""
    controlled = args.power_control == "on" or (not args.power_control and protocol == "jpoc")
    known: Literal["dot11ad", "jpoc"] = "jpoc" if protocol == "jpoc" else "dot11ad"
    setting = Setting(
        known,
        intervals=args.intervals,
        blockage=args.blockage,
        power_control=PowerControl(args.target_snr) if controlled else None,
        abft=SlottedAbft(args.slots, args.frames_per_slot, args.multiplier),
        beam_order=args.beam_order if protocol == "dot11ad" else "common",
        retry_limit=args.retry_limit,
        rss_backoff=args.rss_backoff,
        decode_db=args.decode,
        capture_db=args.capture_margin,
        capture=args.capture == "on",
        warm_up=min(10, max(0, args.intervals - 1)),
    )
    slots = setting.mini_slots
    if args.good_beams is not None:
        slots = replace(slots, good_beams=within("--good-beams", args.good_beams, 0.1, 1000.0))
    if args.mini_slots is not None:
        size = whole("--mini-slots", args.mini_slots, 36)
        slots = replace(slots, adapt=False, initial=size, minimum=size)
    return replace(setting, mini_slots=slots)


def sweep(args: argparse.Namespace) -> int:
    """All combinations."""
    if args.list:
        _list("protocols (--curve)", {name: curve.title for name, curve in CURVES.items()})
        _list("scenes (--scene)", {name: scene.title for name, scene in SCENES.items()})
        return 0
    effort = Effort(args.realisations).checked()
    curves = [curve_named(name) for name in args.curve]
    for name in args.scene:
        scene_named(name)
    for blockage in args.blockage:
        within("--blockage", blockage, 0.0, 1.0)
    for clients in args.clients:
        whole("--clients", clients, 1, min(MOST_CLIENTS, effort.pool))
    if args.slots and not any(curve.setting.protocol == "dot11ad" for curve in curves):
        raise AccessError("--slots needs a curve of 802.11ad, such as dot11ad; see --list")
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(sweep_rows, {"scene": scene, "curve": curve.name, "clients": clients,
                          "effort": effort, "blockages": tuple(args.blockage), "seed": args.seed,
                          "slots": slots})
        for scene, clients, curve in product(args.scene, args.clients, curves)
        for slots in _slots(curve, args.slots)
    ]  # fmt: skip
    progress = _on_a_terminal(args, "sweep")
    rows = evaluate(tasks, workers=args.workers, scheduler=args.scheduler,
                    progress=partial(_tasks, progress, "sweep", time.monotonic()))  # fmt: skip
    if args.output:
        write_csv(rows, args.output)
        print(args.output, file=sys.stderr)
    if args.json:
        _print_tables({"sweep": rows}, args.seed, effort)
    else:
        _print_table(rows, ("jain", "failure_probability", "mini_slots"))
    return 0


def _slots(curve: Curve, wanted: list[int] | None) -> list[int | None]:
    """The numbers of slots that a curve is swept over; None is its own.

    Raises:
        AccessError: the standard has no such number.

    """
    if not wanted or curve.setting.protocol != "dot11ad":
        return [None]
    for slots in wanted:
        replace(curve.setting.abft, slots=slots)
    return list(wanted)


def sweep_rows(
    scene: str, curve: str, clients: int, effort: Effort, *, blockages: tuple[float, ...],
    seed: int, slots: int | None = None,
) -> list[Row]:  # fmt: skip
    """One scene, curve, number of clients and of slots of a sweep."""
    rows = fairness_rows(
        scene, curve, effort, seed, clients=clients, blockages=blockages, slots=slots
    )
    return [{"clients": clients, **row} for row in rows]


def figure(args: argparse.Namespace) -> int:
    """Tables and pictures."""
    if args.list:
        _list("figures", {name: one.title for name, one in FIGURES.items()})
        return 0
    if not args.names:
        raise AccessError("figure needs a name, or all; see --list")
    from sumrate.report.access import draw  # noqa: PLC0415 (loads matplotlib)

    named = [figure_named(name) for name in args.names if name != "all"]
    chosen = list(FIGURES.values()) if "all" in args.names else named
    args.output.mkdir(parents=True, exist_ok=True)
    effort = (QUICK if args.quick else Effort(args.realisations)).checked()
    tables: dict[str, list[Row]] = {}
    clock = _Clock(args, chosen, effort)
    for one in chosen:
        rows = one.table(effort, args.seed, clock.evaluate)
        tables[one.name] = rows
        write_csv(rows, args.output / f"{one.name}.csv")
        pictures = draw(one, rows, args.output)
        clock.done(one)
        if not args.json:
            print("\n".join(str(picture) for picture in pictures), flush=True)
    if args.json:
        _print_tables(tables, args.seed, effort)
    return 0


class _Clock:
    """Shows which figure of how many is computed, and for how long all still take."""

    def __init__(self, args: argparse.Namespace, chosen: list[Figure], effort: Effort) -> None:
        self._args, self._chosen = args, chosen
        workers = args.workers or os.cpu_count() or 1
        self._scale = effort.realisations / Effort().realisations / workers
        self._left = sum(one.seconds for one in chosen)
        self._begun, self._before = time.monotonic(), 0.0
        self._place = 0
        self._progress = Progress(self._left * self._scale)

    def evaluate(self, tasks: list[Task]) -> list[Row]:
        """The tasks of the next figure."""
        return evaluate(tasks, workers=self._args.workers, scheduler=self._args.scheduler,
                        progress=self._show)  # fmt: skip

    def done(self, one: Figure) -> None:
        """Learns from a figure how fast this machine is."""
        self._place += 1
        self._before += one.seconds
        self._left -= one.seconds
        self._scale = (time.monotonic() - self._begun) / self._before
        self._progress.clear()

    def _show(self, done: int, total: int) -> None:
        one = self._chosen[self._place]
        self._progress.left_s = self._scale * (self._left - one.seconds * done / max(total, 1))
        where = f"figure {self._place + 1} of {len(self._chosen)}"
        self._progress.show(f"{where}: {one.name}, {done} of {total} tasks")


def _list(head: str, titles: dict[str, str]) -> None:
    print(f"{head}:")
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"  {name:{width}}  {title}")


def _print_tables(tables: dict[str, list[Row]], seed: int, effort: Effort) -> None:
    """As JSON; what has no value, such as a mean of nothing, is null."""
    plain = {
        name: [
            {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()}
            for row in rows
        ]
        for name, rows in tables.items()
    }
    document = {
        "schema": "sumrate.access-tables.v1", "seed": seed, "realisations": effort.realisations,
        "tables": plain,
    }  # fmt: skip
    print(json.dumps(document, indent=1, allow_nan=False))


def _on_a_terminal(args: argparse.Namespace, what: str) -> Progress | None:
    """A line of progress on a terminal, unless JSON is wanted."""
    if args.json or not sys.stderr.isatty():
        return None
    progress = Progress(args.realisations * CELL_S)
    progress.show(what)
    return progress


def _realisations(progress: Progress | None, what: str, done: int, total: int) -> None:
    if progress:
        progress.left_s = (total - done) * CELL_S
        progress.show(f"{what}: {done} of {total} realisations")
        if done == total:
            progress.clear()


def _tasks(progress: Progress | None, what: str, begun: float, done: int, total: int) -> None:
    if progress and done:
        progress.left_s = (time.monotonic() - begun) / done * (total - done)
        progress.show(f"{what}: {done} of {total} tasks")
        if done == total:
            progress.clear()


def write_csv(rows: list[Row], path: Path) -> None:
    """The table as CSV, whole or not at all."""
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def _print_table(rows: list[Row], metrics: tuple[str, ...]) -> None:
    width = max(18, *(len(row["curve"]) for row in rows))
    print(
        f"{'scene':20}{'clients':>8} {'protocol':{width}}{'blockage':>9} {'':20}{'mean':>9}  95 %"
    )
    for row in rows:
        if row["metric"] in metrics:
            where = f"{row['panel']:20}{row['clients']:8} {row['curve']:{width}}{row['x']:9.2f}"
            band = f"{max(row['low'], 0.0):.4f} to {row['high']:.4f}"
            print(f"{where} {row['metric']:20}{row['mean']:9.4f}  {band}")
    for name in metrics:
        meaning = words.MEANINGS[name]
        print(f"{name}: {', '.join(filter(None, meaning))}")
