"""`sumrate-lab access run|sweep|figure`: initial access simulated.

Only the command line: what does the work is loaded once it is asked for.
"""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from sumrate.access.errors import AccessError, whole

USAGE, FAILED, INTERRUPTED = 2, 1, 130
MINI_SLOTS = "mini-slots"
PROTOCOLS = (MINI_SLOTS, "jpoc", "dot11ad")


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
           "K, good beams of every client; jpoc: the K that the AP assumes (measured)", "K"),
    Option("--mini-slots", int, None, (MINI_SLOTS, "jpoc"),
           "mini-slots of the A-BFT; jpoc: a fixed number (the AP adapts it)", "M"),
    Option("--rounds", int, 10_000, _ALONE, "number of A-BFTs", "R"),
    Option("--target-snr", float, 4.0, (MINI_SLOTS, *_CELL),
           "gamma, the SNR that power control aims at", "DB"),
    Option("--realisations", int, 200, _CELL, "realisations, each with its own clients", "R"),
    Option("--intervals", int, 100, _CELL, "beacon intervals of a realisation"),
    Option("--scene", str, "office-aligned", _CELL, "scene; see `access sweep --list`", "SCENE"),
    Option("--patterns", Path, None, _CELL, "beams of all clients, a CSV file with the columns "
           "beam,azimuth_deg,elevation_deg,gain_dbi (36 beams)", "FILE"),
    Option("--blockage", float, 0.2, _CELL, "probability of a blockage in a beacon interval", "P"),
    Option("--power-control", str, None, _CELL,
           "power control of clients (on for jpoc, off for dot11ad)",
           choices=("on", "off")),
    Option("--slots", int, 8, _SLOTS, "slots of the A-BFT"),
    Option("--frames-per-slot", int, 36, _SLOTS,
           "FSS, frames in a slot; the standard allows 1 to 16"),
    Option("--multiplier", int, 0, _SLOTS, "802.11ay's A-BFT multiplier"),
    Option("--retry-limit", int, None, _SLOTS, "RSSRetryLimit (none; the standard: 8)"),
    Option("--rss-backoff", int, 8, _SLOTS, "RSSBackoff"),
    Option("--beam-order", str, "common", _SLOTS,
           "one order for all clients, or a random one for each",
           choices=("common", "random")),
)  # fmt: skip


def protocols(args: argparse.Namespace) -> list[str]:
    """The one that is run, or those that are compared.

    Raises:
        AccessError: neither or both was asked for, or the A-BFT alone is compared with a cell.

    """
    if bool(args.protocol) == bool(args.compare):
        raise AccessError("give --protocol with one protocol, or --compare with several")
    chosen = list(dict.fromkeys(args.compare or [args.protocol]))
    if MINI_SLOTS in chosen and len(chosen) > 1:
        raise AccessError(
            f"--compare takes whole cells, jpoc and dot11ad; {MINI_SLOTS} has no cell"
        )
    return chosen


def completed(args: argparse.Namespace) -> argparse.Namespace:
    """The options with their defaults.

    Raises:
        AccessError: one was given that no chosen protocol has.

    """
    chosen = protocols(args)
    for option in OPTIONS:
        given = getattr(args, option.name) is not None
        if given and not set(chosen) & set(option.protocols):
            raise AccessError(
                f"{option.flag} must go with --protocol {' or '.join(option.protocols)}, "
                f"not {' and '.join(chosen)}"
            )
        if not given:
            setattr(args, option.name, option.default)
    return args


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares `access` and its three actions."""
    parser = commands.add_parser(
        "access",
        help="simulate initial access at 60 GHz: 802.11ad/ay and JPOC",
        description=__doc__,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    _add_run(actions)
    _add_sweep(actions)
    _add_figure(actions)


def _add_run(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = actions.add_parser(
        "run",
        help="simulate one protocol, or compare several, in one condition",
        epilog="example: sumrate-lab access run --compare jpoc dot11ad --clients 10 --slots 8",
    )
    sub.add_argument("--protocol", choices=PROTOCOLS,
                     help="mini-slots: only the A-BFT, with good beams as in equation (3.6); "
                     "jpoc, dot11ad: a whole cell")  # fmt: skip
    sub.add_argument("--compare", nargs="+", choices=PROTOCOLS, metavar="PROTOCOL",
                     help="compare several whole cells in one table")  # fmt: skip
    sub.add_argument(
        "--clients", type=int, default=16, metavar="N", help="clients in the cell (16)"
    )
    sub.add_argument(
        "--capture",
        choices=("on", "off"),
        default="on",
        help="radio capture: decode a strong frame despite a collision (on)",
    )
    sub.add_argument(
        "--capture-margin",
        type=float,
        default=3.0,
        metavar="DB",
        help="least margin over all other frames together (3)",
    )
    sub.add_argument("--decode", type=float, default=1.0, metavar="DB",
                     help="least SINR that can be decoded (1)")  # fmt: skip
    for option in OPTIONS:
        choices = {"choices": option.choices} if option.choices else {"metavar": option.metavar}
        shown = "" if option.default is None else f" ({option.default})"
        text = f"{', '.join(option.protocols)}: {option.help}{shown}"
        sub.add_argument(option.flag, type=option.kind, help=text, **choices)
    sub.add_argument("--seed", type=int, default=1, metavar="S", help="random seed (1)")
    sub.add_argument("--json", action="store_true",
                     help="print JSON; a list of runs with --compare")  # fmt: skip
    sub.set_defaults(run=_guarded("run"))


def _add_sweep(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = actions.add_parser(
        "sweep",
        help="simulate protocols over scenes, clients and blockage",
        epilog="example: sumrate-lab access sweep --curve jpoc dot11ad --scene los-aligned "
        "--clients 8 16 --slots 4 8 --blockage 0.1 0.5 0.9 --output out/sweep.csv",
    )
    sub.add_argument("--list", action="store_true", help="only list the protocols and scenes")
    sub.add_argument("--curve", nargs="+", default=["jpoc", "dot11ad", "dot11ad-random"],
                     help="protocols (jpoc, dot11ad, dot11ad-random); see --list")  # fmt: skip
    sub.add_argument("--scene", nargs="+", default=["office-aligned"],
                     help="scenes (office-aligned); see --list")  # fmt: skip
    sub.add_argument(
        "--clients", nargs="+", type=int, default=[16], help="clients in the cell (16)"
    )
    sub.add_argument("--blockage", nargs="+", type=float, default=[0.0, 0.2, 0.5, 0.9],
                     help="probabilities of a blockage (0 0.2 0.5 0.9)")  # fmt: skip
    sub.add_argument("--slots", nargs="+", type=int,
                     help="slots of 802.11ad's A-BFT (the curve's); JPOC ignores them")  # fmt: skip
    _add_effort(sub)
    sub.add_argument("--output", type=Path, help="table as CSV")
    sub.set_defaults(run=_guarded("sweep"))


def _add_figure(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = actions.add_parser(
        "figure",
        help="draw a figure of the thesis, or a study beyond it",
        epilog="example: sumrate-lab access figure 3.7a --quick --output out/access",
    )
    sub.add_argument("names", nargs="*", metavar="NAME", help="figure (see --list), or all")
    sub.add_argument("--list", action="store_true", help="only list the figures")
    sub.add_argument("--quick", action="store_true", help="simulate a tenth of the realisations")
    _add_effort(sub)
    sub.add_argument(
        "--output", type=Path, default=Path("out/access"), help="folder for pictures and tables"
    )
    sub.set_defaults(run=_guarded("figure"))


def _add_effort(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--realisations", type=int, default=400, help="realisations of every point (400)"
    )
    sub.add_argument("--seed", type=int, default=1, help="random seed (1)")
    sub.add_argument("--workers", type=int, help="number of local processes (one per core)")
    sub.add_argument(
        "--scheduler",
        metavar="ADDR",
        help="address of a Dask scheduler instead, such as tcp://10.0.0.1:8786",
    )
    sub.add_argument("--json", action="store_true", help="print the table as JSON")


def _guarded(action: str) -> Callable[[argparse.Namespace], int]:
    """The action of this name with its errors as messages and exit codes."""

    def guarded(args: argparse.Namespace) -> int:
        actions = import_module("sumrate.access.actions")
        try:
            whole("seed", args.seed, 0)
            if action == "run":
                completed(args)
            status: int = getattr(actions, action)(args)
        except actions.REFUSED as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE
        except actions.FAILURES as error:
            print(f"error: {error}", file=sys.stderr)
            return FAILED
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        return status

    return guarded
