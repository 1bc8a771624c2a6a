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
from typing import Any, NamedTuple

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
MOST_CLIENTS = 1000
"""Of a cell; the standard numbers 254 clients of an AP."""


class Option(NamedTuple):
    """An option of `run` that only some protocols have."""

    flag: str
    kind: type
    default: Any
    protocols: tuple[str, ...]
    help: str
    metavar: str = "N"
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In the parsed arguments."""
        return self.flag.removeprefix("--").replace("-", "_")


_ALONE, _CELL, _SLOTS = (MINI_SLOTS,), ("jpoc", "dot11ad"), ("dot11ad",)
OPTIONS = (
    Option("--good-beams", float, None, (MINI_SLOTS, "jpoc"),
           "K: of every client; jpoc: what the AP takes for K (measured)", "K"),
    Option("--mini-slots", int, None, (MINI_SLOTS, "jpoc"),
           "of the A-BFT; jpoc: fixed, instead of the AP's loop", "M"),
    Option("--rounds", int, 10_000, _ALONE, "A-BFTs", "R"),
    Option("--target-snr", float, 4.0, (MINI_SLOTS, *_CELL), "gamma", "DB"),
    Option("--realisations", int, 200, _CELL, "each with clients of its own", "R"),
    Option("--intervals", int, 100, _CELL, "beacon intervals of a realisation"),
    Option("--scene", str, "office-aligned", _CELL, ", ".join(SCENES), "SCENE"),
    Option("--blockage", float, 0.2, _CELL, "probability in a beacon interval", "P"),
    Option("--power-control", str, None, _CELL, "on for jpoc, off for dot11ad",
           choices=("on", "off")),
    Option("--slots", int, 8, _SLOTS, "of the A-BFT"),
    Option("--frames-per-slot", int, 36, _SLOTS, "FSS; the standard has 1 to 16"),
    Option("--multiplier", int, 0, _SLOTS, "802.11ay's A-BFT multiplier"),
    Option("--retry-limit", int, None, _SLOTS, "RSSRetryLimit (none; the standard: 8)"),
    Option("--rss-backoff", int, 8, _SLOTS, "RSSBackoff"),
    Option("--beam-order", str, "common", _SLOTS, "of all clients, or of each its own",
           choices=("common", "random")),
)  # fmt: skip


def _completed(args: argparse.Namespace) -> argparse.Namespace:
    """The options with their defaults.

    Raises:
        AccessError: one was given that the protocol does not have.

    """
    for option in OPTIONS:
        given = getattr(args, option.name) is not None
        if given and args.protocol not in option.protocols:
            raise AccessError(
                f"{option.flag} must go with --protocol {' or '.join(option.protocols)}, "
                f"not {args.protocol}"
            )
        if not given:
            setattr(args, option.name, option.default)
    return args


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
    sub.add_argument("--clients", type=int, default=16, metavar="N", help="in the cell (16)")
    sub.add_argument("--capture", choices=("on", "off"), default="on", help="(on)")
    sub.add_argument("--capture-margin", type=float, default=3.0, metavar="DB", help="(3)")
    sub.add_argument("--decode", type=float, default=1.0, metavar="DB",
                     help="threshold of decoding, SINR (1)")  # fmt: skip
    for option in OPTIONS:
        choices = {"choices": option.choices} if option.choices else {"metavar": option.metavar}
        shown = "" if option.default is None else f" ({option.default})"
        text = f"{', '.join(option.protocols)}: {option.help}{shown}"
        sub.add_argument(option.flag, type=option.kind, help=text, **choices)
    sub.add_argument("--seed", type=int, default=1, metavar="S", help="of everything random (1)")
    sub.add_argument("--json", action="store_true", help="print JSON")
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
    _completed(args)
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


def _cell(args: argparse.Namespace) -> dict[str, Any]:
    """A whole cell."""
    setting = _setting(args)
    whole("--clients", args.clients, 1, MOST_CLIENTS)
    pool = make_pool(scene_named(args.scene), max(2000, args.clients), args.seed)
    whole("--realisations", args.realisations, 2, 1_000_000)
    found = simulate(
        pool, setting, clients=args.clients, realisations=args.realisations, seed=args.seed,
        progress=partial(_show_progress, args, "realisations"),
    )  # fmt: skip
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
        whole("--clients", clients, 1, min(MOST_CLIENTS, effort.pool))
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
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

    named = [figure_named(name) for name in args.names if name != "all"]
    chosen = list(FIGURES.values()) if "all" in args.names else named
    args.output.mkdir(parents=True, exist_ok=True)
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
    progress = partial(_show_progress, args, f"{name} tasks".strip())
    return evaluate(tasks, workers=args.workers, scheduler=args.scheduler, progress=progress)


def _show_progress(args: argparse.Namespace, what: str, done: int, total: int) -> None:
    """On a terminal, unless JSON is wanted."""
    if sys.stderr.isatty() and not args.json:
        end = "\r\033[K" if done == total else ""
        print(f"\r{what}: {done} of {total}{end}", end="", file=sys.stderr, flush=True)


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
