"""The actions of `sumrate-lab access run|sweep|figure`."""

import argparse
import csv
import json
import os
import sys
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
from sumrate.access.figures import FIGURES, Effort, figures_named
from sumrate.access.figures.cells import fairness_rows
from sumrate.access.figures.table import QUICK
from sumrate.access.interval import SlottedAbft
from sumrate.access.kernel import Contest, lost_shares
from sumrate.access.power import PowerControl, good_beams, starved
from sumrate.access.progress import COMPILE_S, Clock, compile_simulation, is_compiled
from sumrate.access.scenes import SCENES, scene_named
from sumrate.access.simulation import Setting, confidence, simulate
from sumrate.access.tasks import Row, SweepError, Task, evaluate, watch
from sumrate.atomic import replacing
from sumrate.lab.results import Progress
from sumrate.phy.codebook import PatternError
from sumrate.phy.parameters import ParameterError

REFUSED = (AccessError, ParameterError, PatternError)
FAILURES = (SweepError, OSError)
MOST_CLIENTS = 1000
"""Most clients of a cell; the standard has identifiers for 254 clients of an AP."""
CELL_S, SCENE_S = 0.02, 2.0
"""Expected time of a realisation of a cell, and of the channels of a scene."""


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
    """Simulates the A-BFT alone."""
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
    progress = Progress(COMPILE_S / 5)
    if not is_compiled(lost_shares):
        progress.show("compiling the A-BFT, which later runs reuse")
    contest = Contest(beams, clients, slots, capture, 10 ** (args.capture_margin / 10),
                      args.decode, max(args.decode, args.target_snr + 3.0))  # fmt: skip
    shares = lost_shares(np.random.default_rng(args.seed), contest, rounds)
    progress.clear()
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


def _cell(args: argparse.Namespace, protocol: str) -> dict[str, Any]:
    """Simulates a whole cell."""
    setting = _setting(args, protocol)
    whole("--clients", args.clients, 1, MOST_CLIENTS)
    whole("--realisations", args.realisations, 2, 1_000_000)
    scene = scene_named(args.scene, args.patterns)
    progress = Progress(args.realisations * CELL_S)
    compile_simulation(progress)
    pool = make_pool(scene, max(2000, args.clients), args.seed)
    found = simulate(
        pool, setting, clients=args.clients, realisations=args.realisations, seed=args.seed,
        progress=watch(progress, protocol, "realisations"),
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
    """The setting of a cell by the options."""
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
    """Simulates all combinations of the options."""
    if args.list:
        _list("protocols (--compare)", {name: curve.title for name, curve in CURVES.items()})
        _list("scenes (--scene)", {name: scene.title for name, scene in SCENES.items()})
        return 0
    effort = Effort(args.realisations).checked()
    curves = [curve_named(name) for name in args.curve]
    for name in args.scene:
        scene_named(name, args.patterns)
    for blockage in args.blockage:
        within("--blockage", blockage, 0.0, 1.0)
    for clients in args.clients:
        whole("--clients", clients, 1, min(MOST_CLIENTS, effort.pool))
    if args.slots and not any(curve.setting.protocol == "dot11ad" for curve in curves):
        raise AccessError("--slots needs a protocol of 802.11ad, such as dot11ad; see --list")
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(sweep_rows, {"scene": scene, "curve": curve.name, "clients": clients,
                          "effort": effort, "blockages": tuple(args.blockage), "seed": args.seed,
                          "slots": slots, "patterns": args.patterns})
        for scene, clients, curve in product(args.scene, args.clients, curves)
        for slots in _slots(curve, args.slots)
    ]  # fmt: skip
    workers = args.workers or os.cpu_count() or 1
    each_s = SCENE_S + CELL_S * effort.realisations * len(args.blockage)
    progress = Progress(len(tasks) * each_s / workers)
    compile_simulation(progress)
    rows = evaluate(tasks, workers=args.workers, scheduler=args.scheduler,
                    progress=watch(progress, "sweep", "tasks"))  # fmt: skip
    if args.output:
        write_csv(rows, args.output)
        print(args.output, file=sys.stderr)
    if args.json:
        _print_tables({"sweep": rows}, args.seed, effort)
    else:
        print(words.sweep(rows, ("jain", "failure_probability", "mini_slots")))
    return 0


def _slots(curve: Curve, wanted: list[int] | None) -> list[int | None]:
    """The numbers of slots for a curve; None keeps the curve's own number.

    Raises:
        AccessError: a number of slots is out of range.

    """
    if not wanted or curve.setting.protocol != "dot11ad":
        return [None]
    for slots in wanted:
        replace(curve.setting.abft, slots=slots)
    return list(wanted)


def sweep_rows(
    scene: str, curve: str, clients: int, effort: Effort, *, blockages: tuple[float, ...],
    seed: int, slots: int | None = None, patterns: Path | None = None,
) -> list[Row]:  # fmt: skip
    """One scene, curve, number of clients and of slots of a sweep."""
    rows = fairness_rows(
        scene, curve, effort, seed, clients=clients, blockages=blockages, slots=slots,
        patterns=patterns,
    )  # fmt: skip
    return [{"clients": clients, **row} for row in rows]


def figure(args: argparse.Namespace) -> int:
    """Computes figures and writes their tables and pictures."""
    if args.list:
        _list("figures", {name: one.title for name, one in FIGURES.items()})
        return 0
    if not args.names:
        raise AccessError("figure needs a name, or all; see --list")
    from sumrate.report.access import draw  # noqa: PLC0415 (loads matplotlib)

    named = {one.name: one for name in args.names for one in figures_named(name)}
    chosen = list(named.values())
    args.output.mkdir(parents=True, exist_ok=True)
    effort = (QUICK if args.quick else Effort(args.realisations)).checked()
    tables: dict[str, list[Row]] = {}
    clock = Clock(chosen, effort, args.workers)
    compute = partial(evaluate, workers=args.workers, scheduler=args.scheduler, progress=clock.show)
    for one in chosen:
        rows = one.table(effort, args.seed, compute)
        tables[one.name] = rows
        write_csv(rows, args.output / f"{one.name}.csv")
        pictures = draw(one, rows, args.output)
        clock.done(one)
        if not args.json:
            print("\n".join(str(picture) for picture in pictures), flush=True)
    if args.json:
        _print_tables(tables, args.seed, effort)
    return 0


def _list(head: str, titles: dict[str, str]) -> None:
    print(f"{head}:")
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"  {name:{width}}  {title}")


def _print_tables(tables: dict[str, list[Row]], seed: int, effort: Effort) -> None:
    """Prints tables as JSON; NaN becomes null."""
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


def write_csv(rows: list[Row], path: Path) -> None:
    """Writes the table as CSV; a partial file never has the final name."""
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
