"""Figures 3.5(a), 3.7 and the estimator: whole cells."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sumrate.access.budget import make_pool
from sumrate.access.curves import curve_named
from sumrate.access.equations import MINIMUM_MINI_SLOTS, optimal_mini_slots
from sumrate.access.figures.places import TARGETS
from sumrate.access.figures.table import Effort, row
from sumrate.access.overhead import least_size
from sumrate.access.power import good_beams, starved
from sumrate.access.scenes import scene_named
from sumrate.access.simulation import MiniSlots, Setting, run, simulate
from sumrate.access.tasks import Row, Task

BRACKETS = ((1, 6), (7, 12), (13, 18), (19, 24), (25, 30), (31, 36))
BLOCKAGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CLIENTS = (4, 8, 16, 32, 64)
BATCHES = 8
"""Independent searches of the least number of slots, for its confidence interval."""
STEP_AT, STEP_CLIENTS = 30, (8, 24)


def histogram_rows(scene: str, curve: str, effort: Effort, seed: int) -> list[Row]:
    """Histogram of good beams over the clients with at least one (Fig. 3.5a)."""
    pool = make_pool(scene_named(scene), effort.pool, seed)
    control = TARGETS[curve]
    counts = good_beams(pool, control, 1.0)
    reached = counts[counts > 0]
    found = []
    for first, last in BRACKETS:
        inside = ((reached >= first) & (reached <= last)).astype(float)
        found.append(row(scene, curve, "share", inside, x=float(first)))
    for metric, first, last in (
        ("share_1_12", 1, 12), ("share_1_6", 1, 6), ("share_1_24", 1, 24), ("share_7_18", 7, 18),
        ("share_18_up", 18, 99), ("share_31_up", 31, 99),
    ):  # fmt: skip
        inside = ((reached >= first) & (reached <= last)).astype(float)
        found.append(row(scene, curve, metric, inside))
    spread = [np.mean((reached >= a) & (reached <= b)) for a, b in BRACKETS]
    found.append(row(scene, curve, "largest_bracket", np.array([max(spread)])))
    found.append(row(scene, curve, "smallest_bracket", np.array([min(spread)])))
    found.append(row(scene, curve, "mean_good_beams", counts))
    if control:
        found.append(row(scene, curve, "starved", starved(pool, control, 1.0).astype(float)))
    return found


def histograms(scenes: Sequence[str], effort: Effort, seed: int) -> list[Task]:
    """One task per scene and target."""
    return [
        Task(histogram_rows, {"scene": scene, "curve": curve, "effort": effort, "seed": seed})
        for scene in scenes for curve in TARGETS
    ]  # fmt: skip


def fairness_rows(
    scene: str, curve: str, effort: Effort, seed: int, *, clients: int = 16,
    blockages: tuple[float, ...] = BLOCKAGES, slots: int | None = None,
    patterns: Path | None = None,
) -> list[Row]:  # fmt: skip
    """All results of a simulation, over the probability of blockage (Fig. 3.7a).

    `slots` replaces the slots of 802.11ad's A-BFT and is added to the curve's name. `patterns` is
    a file with the clients' beams.
    """
    pool = make_pool(scene_named(scene, patterns), effort.pool, seed)
    setting = curve_named(curve).setting
    if slots is not None:
        setting = replace(setting, abft=replace(setting.abft, slots=slots))
        curve = f"{curve}, {slots} slots"
    found = []
    for blockage in blockages:
        done = simulate(
            pool, replace(setting, blockage=blockage), clients=clients,
            realisations=effort.realisations, seed=seed,
        )  # fmt: skip
        found += [row(scene, curve, name, v, x=blockage) for name, v in done.values().items()]
    return found


def fairness(
    scenes: Sequence[str], curves: Sequence[str], effort: Effort, seed: int,
    blockages: tuple[float, ...] = BLOCKAGES,
) -> list[Task]:  # fmt: skip
    """One task per scene and curve."""
    return [
        Task(fairness_rows, {"scene": scene, "curve": curve, "effort": effort, "seed": seed,
                             "blockages": blockages})
        for scene in scenes for curve in curves
    ]  # fmt: skip


def overhead_rows(scene: str, clients: int, effort: Effort, seed: int) -> list[Row]:
    """Least numbers of mini-slots that meet 10 % at 20 % blockage, and their ratios (Fig. 3.7b)."""
    pool = make_pool(scene_named(scene), effort.pool, seed)
    each = max(4, effort.realisations // (2 * BATCHES))
    sizes: dict[str, list[float]] = {}
    for name in ("dot11ad", "dot11ad-random", "jpoc", "jpoc-10", "mini-slots"):
        setting = replace(curve_named(name).setting, blockage=0.2)
        slotted = setting.protocol == "dot11ad"
        factor = setting.abft.frames_per_slot if slotted else 1
        found = [
            least_size(
                pool, setting, clients=clients, realisations=each, seed=seed * 1000 + batch,
                least=1 if slotted else setting.mini_slots.minimum,
            )
            for batch in range(BATCHES)
        ]  # fmt: skip
        sizes[name] = [np.nan if size is None else float(size * factor) for size in found]
    x = float(clients)
    # No value where some batches miss the target at every size: the mean of the others is biased.
    known = {
        name: np.array(v) if np.isfinite(v).all() else np.full(BATCHES, np.nan)
        for name, v in sizes.items()
    }
    rows = [row(scene, name, "mini_slots", v, x=x) for name, v in known.items()]
    for over, under, curve in (
        ("dot11ad", "jpoc", "802.11ad over JPOC"),
        ("dot11ad-random", "jpoc", "802.11ad with random beam order over JPOC"),
        ("dot11ad", "mini-slots", "802.11ad over mini-slots at full power"),
    ):
        rows.append(row(scene, curve, "ratio", known[over] / known[under], x=x))
    for competing, curve in ((1.0, "without capture, all compete"),
                             (0.2, "without capture, a fifth competes")):  # fmt: skip
        ratio = ratio_without_capture(clients, competing)
        rows.append(row(scene, curve, "ratio", np.array([ratio]), x=x))
    return rows


def ratio_without_capture(
    clients: int, competing: float, good_beams: int = 6, target_failure: float = 0.1
) -> float:
    """802.11ad's mini-slots over JPOC's in closed form, for a client that competes.

    Without capture, two clients in one slot lose it, and (3.7) holds.

    Args:
        clients: of the cell, at least 2.
        competing: probability that another client competes in the same A-BFT.
        good_beams: K of every client.
        target_failure: P0.

    """
    others = clients - 1
    slots = np.ceil(competing / (1.0 - (1.0 - target_failure) ** (1.0 / others)))
    wanted = optimal_mini_slots(good_beams, 1.0 + competing * others, target_failure)
    return float(slots * 36 / max(MINIMUM_MINI_SLOTS, wanted))


def overhead(scenes: Sequence[str], effort: Effort, seed: int) -> list[Task]:
    """One task per scene and number of clients; the long ones first."""
    return [
        Task(overhead_rows, {"scene": scene, "clients": clients, "effort": effort, "seed": seed})
        for clients in CLIENTS[::-1] for scene in scenes
    ]  # fmt: skip


def step_rows(scene: str, averaging: int, two_k: bool, effort: Effort, seed: int) -> list[Row]:
    """Expected number of clients over a step from 8 to 24 competing clients."""
    pool = make_pool(scene_named(scene), effort.pool, seed)
    slots = MiniSlots(averaging=averaging, two_k=two_k)
    setting = Setting(intervals=60, always_compete=True, mini_slots=slots, warm_up=0)
    low, high = STEP_CLIENTS
    present = np.where(np.arange(setting.intervals) < STEP_AT, low, high)
    outcomes = run(
        pool, setting, clients=high, realisations=effort.realisations, seed=seed, present=present
    )
    expected = np.array([outcome.expected for outcome in outcomes])
    name = f"T = {averaging}" + (", two-K" if two_k else "")
    found = [
        row(scene, name, "expected_clients", expected[:, at], x=float(at))
        for at in range(setting.intervals)
    ]
    before = expected[:, STEP_AT - 10 : STEP_AT].mean()
    after = expected[:, -15:].mean()
    reached = (expected.mean(axis=0)[STEP_AT:] - before) >= 0.9 * (after - before)
    smooth = expected[:, -15:].std(axis=1)
    return [
        *found,
        row(scene, name, "intervals_to_90_percent", np.array([float(np.argmax(reached) + 1)])),
        row(scene, name, "deviation", smooth),
        row(scene, name, "settled_over_true", expected[:, -15:].mean(axis=1) / high),
    ]


def step(scenes: Sequence[str], effort: Effort, seed: int) -> list[Task]:
    """One task per scene and averaging window."""
    return [
        Task(step_rows, {"scene": scene, "averaging": averaging, "two_k": two_k, "effort": effort,
                         "seed": seed})
        for scene in scenes for averaging, two_k in ((1, False), (5, False), (10, False), (5, True))
    ]  # fmt: skip
