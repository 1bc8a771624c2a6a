"""`sumrate-lab access run|sweep|figure`: initial access simulated."""

import argparse
import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sumrate.access.budget import make_pool
from sumrate.access.curves import CURVES, curve_named
from sumrate.access.equations import exact_failure_probability, failure_probability
from sumrate.access.errors import AccessError, whole, within
from sumrate.access.figures import FIGURES, Effort, figure_named
from sumrate.access.figures.cells import fairness_rows
from sumrate.access.figures.table import QUICK
from sumrate.access.interval import SlottedAbft
from sumrate.access.kernel import Contest, lost_shares
from sumrate.access.power import PowerControl, good_beams, starved
from sumrate.access.scenes import SCENES, scene_named
from sumrate.access.simulation import Setting, confidence, simulate
from sumrate.access.tasks import Row, SweepError, Task, evaluate
from sumrate.phy.parameters import ParameterError

USAGE, FAILED, INTERRUPTED = 2, 1, 130
MINI_SLOTS = "mini-slots"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `access` and its three actions."""
    parser = commands.add_parser(
        "access", help="initial access at 60 GHz: 802.11ad/ay and JPOC", description=__doc__
    )
    actions = parser.add_subparsers(dest="action", required=True)
    _add_run(actions)
    _add_sweep(actions)
    _add_figure(actions)


def _add_run(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = actions.add_parser(
        "run",
        help="one protocol in one condition",
        epilog="example: sumrate-lab access run --protocol mini-slots --good-beams 6 --clients 16 "
        "--mini-slots 82 --capture off --rounds 100000 --seed 1 --json",
    )
    sub.add_argument("--protocol", required=True, choices=(MINI_SLOTS, "jpoc", "dot11ad"),
                     help="mini-slots: only the A-BFT, with good beams as (3.6) has them; "
                     "jpoc, dot11ad: a whole cell")  # fmt: skip
    sub.add_argument("--clients", type=int, default=16, help="in the cell (16)")
    sub.add_argument(
        "--good-beams",
        type=float,
        metavar="K",
        help="mini-slots: of every client; jpoc: what the AP takes for K (measured)",
    )
    sub.add_argument(
        "--mini-slots",
        type=int,
        metavar="M",
        help="mini-slots: length of the A-BFT; jpoc: fixed length instead of the loop",
    )
    sub.add_argument("--capture", choices=("on", "off"), default="on")
    sub.add_argument("--capture-margin", type=float, default=3.0, metavar="DB")
    sub.add_argument("--decode", type=float, default=1.0, metavar="DB", help="threshold (1)")
    sub.add_argument("--rounds", type=int, default=10_000, help="mini-slots: A-BFTs (10000)")
    sub.add_argument("--realisations", type=int, default=200, help="of a whole cell (200)")
    sub.add_argument("--intervals", type=int, default=100, help="beacon intervals of each (100)")
    sub.add_argument("--scene", default="office-aligned", help=", ".join(SCENES))
    sub.add_argument("--blockage", type=float, default=0.2, help="probability in an interval (0.2)")
    sub.add_argument("--target-snr", type=float, default=4.0, metavar="DB", help="jpoc: gamma (4)")
    sub.add_argument("--power-control", choices=("on", "off"), help="on for jpoc, off for dot11ad")
    sub.add_argument("--slots", type=int, default=8, help="dot11ad: of the A-BFT (8)")
    sub.add_argument("--frames-per-slot", type=int, default=36, help="dot11ad: FSS (36)")
    sub.add_argument("--multiplier", type=int, default=0, help="802.11ay's A-BFT multiplier (0)")
    sub.add_argument("--retry-limit", type=int, help="dot11ad: RSSRetryLimit (none; standard: 8)")
    sub.add_argument("--rss-backoff", type=int, default=8, help="dot11ad: RSSBackoff (8)")
    sub.add_argument("--beam-order", choices=("common", "random"), default="common")
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--json", action="store_true")
    sub.set_defaults(run=_guarded(run))


def _add_sweep(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = actions.add_parser(
        "sweep",
        help="protocols over scenes, clients and blockage",
        epilog="example: sumrate-lab access sweep --curve jpoc dot11ad --scene los-aligned "
        "--clients 8 16 --blockage 0.1 0.5 0.9 --output out/sweep.csv",
    )
    sub.add_argument("--curve", nargs="+", default=["jpoc", "dot11ad", "dot11ad-random"],
                     help=", ".join(CURVES))  # fmt: skip
    sub.add_argument("--scene", nargs="+", default=["office-aligned"], help=", ".join(SCENES))
    sub.add_argument("--clients", nargs="+", type=int, default=[16])
    sub.add_argument("--blockage", nargs="+", type=float, default=[0.0, 0.2, 0.5, 0.9])
    _add_effort(sub)
    sub.add_argument("--output", type=Path, help="table as CSV")
    sub.set_defaults(run=_guarded(sweep))


def _add_figure(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = actions.add_parser(
        "figure",
        help="a figure of the thesis, or a study beyond it",
        epilog="example: sumrate-lab access figure 3.7a --output out/access",
    )
    sub.add_argument("names", nargs="+", metavar="NAME", help=", ".join(FIGURES) + "; or all")
    _add_effort(sub)
    sub.add_argument("--quick", action="store_true", help="a tenth of the realisations")
    sub.add_argument(
        "--output", type=Path, default=Path("out/access"), help="folder for pictures and tables"
    )
    sub.set_defaults(run=_guarded(figure))


def _add_effort(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--realisations", type=int, default=400, help="of every point (400)")
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--workers", type=int, help="local processes (one per core)")
    sub.add_argument(
        "--scheduler",
        metavar="ADDR",
        help="address of a Dask scheduler instead, such as tcp://10.0.0.1:8786",
    )
    sub.add_argument("--json", action="store_true", help="print the table as JSON")


def _guarded(action: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The action with its errors as messages and exit codes."""

    def guarded(args: argparse.Namespace) -> int:
        try:
            whole("seed", args.seed, 0)
            return action(args)
        except (AccessError, ParameterError) as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE
        except (SweepError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return FAILED
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED

    return guarded


def run(args: argparse.Namespace) -> int:
    """One protocol in one condition."""
    within("capture margin", args.capture_margin, 0.0, 60.0, "dB")
    document = _contest(args) if args.protocol == MINI_SLOTS else _cell(args)
    if args.json:
        print(json.dumps(document, indent=1))
        return 0
    for name, value in document.items():
        print(
            f"{name.replace('_', ' '):36} {f'{value:.6g}' if isinstance(value, float) else value}"
        )
    return 0


def _contest(args: argparse.Namespace) -> dict[str, Any]:
    """The A-BFT alone."""
    if args.good_beams is None or args.mini_slots is None:
        raise AccessError("--protocol mini-slots needs --good-beams and --mini-slots")
    beams = whole("--good-beams", args.good_beams, 1)
    clients = whole("--clients", args.clients, 1, 10_000)
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


def _cell(args: argparse.Namespace) -> dict[str, Any]:
    """A whole cell."""
    setting = _setting(args)
    pool = make_pool(scene_named(args.scene), max(2000, args.clients), args.seed)
    whole("--realisations", args.realisations, 2, 1_000_000)
    found = simulate(
        pool, setting, clients=args.clients, realisations=args.realisations, seed=args.seed
    )
    failures = found.failure_probability[np.isfinite(found.failure_probability)]
    control = setting.power_control
    lost = starved(pool, control, setting.decode_db).mean() if control else 0.0
    error = failures.std(ddof=1) / np.sqrt(failures.size) if failures.size > 1 else None
    means = {name: confidence(values)[0] for name, values in found.values().items()}
    return {
        "schema": "sumrate.access-run.v1",
        "protocol": args.protocol, "scene": args.scene, "clients": args.clients,
        "blockage": args.blockage, "capture": args.capture,
        "realisations": args.realisations, "intervals": args.intervals, "seed": args.seed,
        **{name: None if np.isnan(value) else value for name, value in means.items()},
        "standard_error": None if error is None else float(error),
        "jain_standard_error": float(found.jain.std(ddof=1) / np.sqrt(found.jain.size)),
        "mean_good_beams": float(good_beams(pool, control, setting.decode_db).mean()),
        "starved_by_power_control": float(lost),
    }  # fmt: skip


def _setting(args: argparse.Namespace) -> Setting:
    """What the options say."""
    controlled = args.power_control == "on" or (not args.power_control and args.protocol == "jpoc")
    setting = Setting(
        args.protocol,
        intervals=args.intervals,
        blockage=args.blockage,
        power_control=PowerControl(args.target_snr) if controlled else None,
        abft=SlottedAbft(args.slots, args.frames_per_slot, args.multiplier),
        beam_order=args.beam_order,
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
    effort = Effort(args.realisations).checked()
    for name in args.curve:
        curve_named(name)
    for name in args.scene:
        scene_named(name)
    for blockage in args.blockage:
        within("--blockage", blockage, 0.0, 1.0)
    for clients in args.clients:
        whole("--clients", clients, 1, effort.pool)
    tasks = [
        Task(sweep_rows, {"scene": scene, "curve": curve, "clients": clients, "effort": effort,
                          "blockages": tuple(args.blockage), "seed": args.seed})
        for scene, clients, curve in product(args.scene, args.clients, args.curve)
    ]  # fmt: skip
    rows = _evaluate(tasks, args)
    if args.output:
        write_csv(rows, args.output)
        print(args.output, file=sys.stderr)
    if args.json:
        _print_tables({"sweep": rows}, args.seed, effort)
    else:
        _print_table(rows, ("jain", "failure_probability", "mini_slots"))
    return 0


def sweep_rows(
    scene: str, curve: str, clients: int, effort: Effort, *, blockages: tuple[float, ...], seed: int
) -> list[Row]:  # fmt: skip
    """One scene, curve and number of clients of a sweep."""
    rows = fairness_rows(scene, curve, effort, seed, clients=clients, blockages=blockages)
    return [{"clients": clients, **row} for row in rows]


def figure(args: argparse.Namespace) -> int:
    """Tables and pictures."""
    from sumrate.report.access import draw  # noqa: PLC0415 (loads matplotlib)

    wanted = list(FIGURES) if args.names == ["all"] else args.names
    chosen = [figure_named(name) for name in wanted]
    effort = (QUICK if args.quick else Effort(args.realisations)).checked()
    tables: dict[str, list[Row]] = {}
    for one in chosen:
        rows = one.table(effort, args.seed, partial(_evaluate, args=args, name=one.name))
        tables[one.name] = rows
        write_csv(rows, args.output / f"{one.name}.csv")
        pictures = draw(one, rows, args.output)
        if not args.json:
            print("\n".join(str(picture) for picture in pictures))
    if args.json:
        _print_tables(tables, args.seed, effort)
    return 0


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


def _evaluate(tasks: list[Task], args: argparse.Namespace, name: str = "") -> list[Row]:
    """The tasks' rows, with their progress on a terminal."""
    shown = sys.stderr.isatty() and not args.json

    def progress(done: int, total: int) -> None:
        if shown:
            end = "\n" if done == total else ""
            print(f"\r{name} {done} of {total} tasks", end=end, file=sys.stderr, flush=True)

    return evaluate(tasks, workers=args.workers, scheduler=args.scheduler, progress=progress)


def write_csv(rows: list[Row], path: Path) -> None:
    """The table as CSV, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(path.suffix + ".part")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    unfinished.replace(path)


def _print_table(rows: list[Row], metrics: tuple[str, ...]) -> None:
    print(f"{'scene':20}{'clients':>8} {'protocol':18}{'blockage':>9} {'':20}{'mean':>9}  95 %")
    for row in rows:
        if row["metric"] in metrics:
            where = f"{row['panel']:20}{row['clients']:8} {row['curve']:18}{row['x']:9.2f}"
            band = f"{row['low']:.4f} to {row['high']:.4f}"
            print(f"{where} {row['metric']:20}{row['mean']:9.4f}  {band}")
