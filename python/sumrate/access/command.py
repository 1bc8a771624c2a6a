"""`sumrate-lab access run|sweep|figure`: initial access simulated.

Only the command line: the actions are imported when a command runs.
"""

import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from sumrate.access.errors import AccessError, whole
from sumrate.lab.options import Json, Seed, Several

USAGE, FAILED, INTERRUPTED = 2, 1, 130
MINI_SLOTS = "mini-slots"
Protocol = Literal["mini-slots", "jpoc", "dot11ad"]
Switch = Literal["on", "off"]
Compared = Annotated[
    tuple[str, ...], Parameter(name=["--compare", "--curve"], consume_multiple=True)
]

_CELL, _SLOTS = ("jpoc", "dot11ad"), ("dot11ad",)
DEFAULTS = {
    "good_beams": (None, (MINI_SLOTS, "jpoc")),
    "mini_slots": (None, (MINI_SLOTS, "jpoc")),
    "rounds": (10_000, (MINI_SLOTS,)),
    "target_snr": (4.0, (MINI_SLOTS, *_CELL)),
    "realisations": (200, _CELL),
    "intervals": (100, _CELL),
    "scene": ("office-aligned", _CELL),
    "patterns": (None, _CELL),
    "blockage": (0.2, _CELL),
    "power_control": (None, _CELL),
    "slots": (8, _SLOTS),
    "frames_per_slot": (36, _SLOTS),
    "multiplier": (0, _SLOTS),
    "retry_limit": (None, _SLOTS),
    "rss_backoff": (8, _SLOTS),
    "beam_order": ("common", _SLOTS),
}
"""Defaults of options that only some protocols have, and those protocols."""


def protocols(args: Namespace) -> list[str]:
    """The protocols of a run: one, or several to compare.

    Raises:
        AccessError: neither or both options were given, or the A-BFT alone is to be compared.

    """
    if bool(args.protocol) == bool(args.compare):
        raise AccessError("give --protocol with one protocol, or --compare with several")
    chosen = list(dict.fromkeys(args.compare or [args.protocol]))
    if MINI_SLOTS in chosen and len(chosen) > 1:
        raise AccessError(
            f"--compare takes whole cells, jpoc and dot11ad; {MINI_SLOTS} has no cell"
        )
    return chosen


def completed(args: Namespace) -> Namespace:
    """Fills in the defaults of the options.

    Raises:
        AccessError: an option was given that applies to none of the protocols.

    """
    chosen = protocols(args)
    for name, (default, having) in DEFAULTS.items():
        given = getattr(args, name) is not None
        if given and not set(chosen) & set(having):
            raise AccessError(
                f"--{name.replace('_', '-')} must go with --protocol {' or '.join(having)}, "
                f"not {' and '.join(chosen)}"
            )
        if not given:
            setattr(args, name, default)
    return args


def run(
    *,
    protocol: Protocol | None = None,
    compare: Annotated[tuple[Protocol, ...], Several] = (),
    clients: int = 16,
    capture: Switch = "on",
    capture_margin: float = 3.0,
    decode: float = 1.0,
    good_beams: float | None = None,
    mini_slots: int | None = None,
    rounds: int | None = None,
    target_snr: float | None = None,
    realisations: int | None = None,
    intervals: int | None = None,
    scene: str | None = None,
    patterns: Path | None = None,
    blockage: float | None = None,
    power_control: Switch | None = None,
    slots: int | None = None,
    frames_per_slot: int | None = None,
    multiplier: int | None = None,
    retry_limit: int | None = None,
    rss_backoff: int | None = None,
    beam_order: Literal["common", "random"] | None = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> int:
    """Simulate one protocol, or compare several, in one condition.

    Example: sumrate-lab access run --compare jpoc dot11ad --clients 10 --slots 8

    Args:
        protocol: mini-slots: only the A-BFT, with good beams as in equation (3.6); jpoc, dot11ad:
            a whole cell.
        compare: Compare several whole cells in one table.
        clients: Clients in the cell.
        capture: Radio capture: decode a strong frame despite a collision.
        capture_margin: Least margin over all other frames together, in dB.
        decode: Least SINR that can be decoded, in dB.
        good_beams: mini-slots, jpoc: K, good beams of every client; jpoc: the K that the AP
            assumes (measured).
        mini_slots: mini-slots, jpoc: mini-slots of the A-BFT; jpoc: a fixed number (the AP adapts
            it).
        rounds: mini-slots: number of A-BFTs (10000).
        target_snr: mini-slots, jpoc, dot11ad: gamma, the SNR in dB that power control aims at (4).
        realisations: jpoc, dot11ad: realisations, each with its own clients (200).
        intervals: jpoc, dot11ad: beacon intervals of a realisation (100).
        scene: jpoc, dot11ad: scene; see `access sweep --list` (office-aligned).
        patterns: jpoc, dot11ad: beams of all clients, CSV with the columns
            beam,azimuth_deg,elevation_deg,gain_dbi (36 beams).
        blockage: jpoc, dot11ad: probability of a blockage in a beacon interval (0.2).
        power_control: jpoc, dot11ad: power control of clients (on for jpoc, off for dot11ad).
        slots: dot11ad: slots of the A-BFT (8).
        frames_per_slot: dot11ad: FSS, frames in a slot; the standard allows 1 to 16 (36).
        multiplier: dot11ad: 802.11ay's A-BFT multiplier (0).
        retry_limit: dot11ad: RSSRetryLimit (none; the standard: 8).
        rss_backoff: dot11ad: RSSBackoff (8).
        beam_order: dot11ad: one order for all clients, or a random one for each (common).

    """
    return _guarded("run", {**locals(), "json": as_json})


def sweep(
    *,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    compare: Compared = ("jpoc", "dot11ad", "dot11ad-random"),
    scene: Annotated[tuple[str, ...], Several] = ("office-aligned",),
    clients: Annotated[tuple[int, ...], Several] = (16,),
    blockage: Annotated[tuple[float, ...], Several] = (0.0, 0.2, 0.5, 0.9),
    slots: Annotated[tuple[int, ...], Several] = (),
    patterns: Path | None = None,
    realisations: int = 400,
    seed: Seed = 1,
    workers: int | None = None,
    scheduler: str | None = None,
    output: Path | None = None,
    as_json: Json = False,
) -> int:
    """Simulate protocols over scenes, clients and blockage.

    Example: sumrate-lab access sweep --compare jpoc dot11ad --scene los-aligned --clients 8 16
    --slots 4 8 --blockage 0.1 0.5 0.9 --output out/sweep.csv

    Args:
        list_: Only list the protocols and scenes.
        compare: Protocols to compare; see --list.
        scene: Scenes; see --list.
        clients: Clients in the cell.
        blockage: Probabilities of a blockage.
        slots: Slots of 802.11ad's A-BFT (8); JPOC ignores them.
        patterns: Beams of all clients: CSV with the columns
            beam,azimuth_deg,elevation_deg,gain_dbi (the scene's devices).
        realisations: Realisations of every point.
        workers: Number of local processes (one per core).
        scheduler: Address of a Dask scheduler instead, such as tcp://10.0.0.1:8786.
        output: Table as CSV.

    """
    return _guarded("sweep", {**locals(), "curve": compare, "json": as_json, "list": list_})


def figure(
    names: list[str] | None = None,
    /,
    *,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    quick: bool = False,
    realisations: int = 400,
    seed: Seed = 1,
    workers: int | None = None,
    scheduler: str | None = None,
    output: Path = Path("out/access"),
    as_json: Json = False,
) -> int:
    """Draw a figure of the thesis, or a study beyond it.

    Example: sumrate-lab access figure 3.7a --quick --output out/access

    Args:
        names: Figures (see --list), or all.
        list_: Only list the figures.
        quick: Simulate a tenth of the realisations.
        realisations: Realisations of every point.
        workers: Number of local processes (one per core).
        scheduler: Address of a Dask scheduler instead, such as tcp://10.0.0.1:8786.
        output: Folder for pictures and tables.

    """
    return _guarded("figure", {**locals(), "json": as_json, "list": list_, "names": names or []})


def _guarded(action: str, given: dict[str, object]) -> int:
    """The action of this name; its errors become messages and exit codes."""
    actions = import_module("sumrate.access.actions")
    args = Namespace(**given)
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
