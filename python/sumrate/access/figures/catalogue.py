"""All figures by name."""

import re
from collections.abc import Callable
from itertools import product

from sumrate.access.errors import AccessError
from sumrate.access.figures import cells, places, variations
from sumrate.access.figures.table import Effort, Figure
from sumrate.access.participation import SITUATIONS
from sumrate.access.tasks import Row, Task

GRID_SCENES = ("office-aligned", "office-spread")
SIGHTS = ("los-aligned", "office-aligned")
CELL_SCENES = ("los-aligned", "office-aligned", "los-spread", "office-random")
MAIN = ("jpoc", "dot11ad", "dot11ad-random")
PARTS = (*MAIN, "dot11ad-standard", "dot11ad-power", "mini-slots")
VARIANTS = ("jpoc", "jpoc-literal", "jpoc-10", "jpoc-two-k", "jpoc-ramp", "jpoc-10-ramp",
            "jpoc-feedback", "jpoc-7-bits")  # fmt: skip
SWEPT = (0.1, 0.3, 0.5, 0.7, 0.9)
BEAM, SNR = "number of the beam", "SNR at the AP, dB"
INDEX = "competition fairness index"
JAIN = "Jain's index of air time"
IN_COMMON = f"{variations.CLIENTS} clients, blockage {variations.BLOCKAGE:g}."
MAP = "Colour: median of a client at that place; white is fair. Triangle: AP."


def _beams(curve: str) -> Callable[[Effort, int], list[Task]]:
    return lambda effort, seed: places.beams(GRID_SCENES, curve, effort, seed)


def _heatmap(
    curves: tuple[str, ...], devices: str = "36-beams"
) -> Callable[[Effort, int], list[Task]]:
    return lambda effort, seed: places.heatmap(GRID_SCENES, curves, effort, seed, devices)


def _participation(effort: Effort, seed: int) -> list[Task]:
    return [
        Task(variations.participation_rows, {"situation": name, "effort": effort, "seed": seed})
        for name in SITUATIONS
    ]


def _signalling(effort: Effort, seed: int) -> list[Task]:
    return [Task(variations.signalling_rows, {})]


def _compared(rows: Callable[..., list[Row]]) -> Callable[[Effort, int], list[Task]]:
    """Tasks of a study over the protocols in two scenes."""
    pairs = list(product(SIGHTS, variations.COMPARED))
    return lambda effort, seed: variations.over(rows, pairs, effort, seed)


def _thresholds(effort: Effort, seed: int) -> list[Task]:
    return [
        Task(variations.threshold_rows, {"scene": scene, "curve": curve, "decode_db": decode,
                                         "effort": effort, "seed": seed})
        for scene in SIGHTS for curve in variations.COMPARED
        for decode in (1.0, -4.0, -12.0)
    ]  # fmt: skip


def _errors(effort: Effort, seed: int) -> list[Task]:
    return [
        Task(variations.error_rows, {"scene": scene, "effort": effort, "seed": seed})
        for scene in (*SIGHTS, "office-random")
    ]


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("3.1b", "SNR of each beam of two clients without power control", "lines", BEAM, SNR,
               _beams("no power control"), ("snr_db",), ("T-3.1b-near", "T-3.1b-far"),
               note="Dotted: 0 dB.", statistic="median", steps=True, seconds=3),
        Figure("3.1c", "Competition without power control", "heatmap", "", INDEX,
               _heatmap(("no power control",)), ("index",), ("T-3.1c",),
               summary=places.summary, note=MAP, statistic="median", seconds=11),
        Figure("3.2a", "Trainings by what happens to the client", "dots", "", "",
               _participation, ("trainings", "needless", "below_s"),
               ("T-3.2a-los", "T-3.2a-nlos", "T-3.2a-rot", "T-3.2a-mob", "T-3.2a-mobn",
                "T-3.2a-disc"), columns=3, seconds=3),
        Figure("3.3", "SNR of each beam of two clients with power control", "lines", BEAM, SNR,
               _beams("target 4 dB"), ("snr_db",), ("T-3.3",), statistic="median", steps=True,
               note="Dotted: the target of 4 dB and the decode threshold of 1 dB.", seconds=3),
        Figure("3.5a", "Good beams of clients by their power control", "lines", "good beams",
               "share of clients",
               lambda effort, seed: cells.histograms(
                   ("office-aligned", "office-random", "los-aligned", "near-random"), effort, seed),
               ("share",), ("T-3.5a-none", "T-3.5a-10", "T-3.5a-4"), limits=(0, 1),
               note="Of the clients that have a good beam: SNR of at least 1 dB at the AP.",
               seconds=14),
        Figure("3.5b", "Competition, power control to 10 dB", "heatmap", "", INDEX,
               _heatmap(("no power control", "target 10 dB")), ("index",), ("T-3.5b",),
               summary=places.summary, note=MAP, statistic="median", seconds=22),
        Figure("3.5c", "Competition, power control to 4 dB", "heatmap", "", INDEX,
               _heatmap(("target 10 dB", "target 4 dB")), ("index",), ("T-3.5c",),
               summary=places.summary, note=MAP, statistic="median", seconds=22),
        Figure("3.6", "Competition of clients with 64 beams", "heatmap", "", INDEX,
               _heatmap(("no power control", "target 4 dB"), "64-beams"), ("index",),
               ("T-3.6a", "T-3.6b"), summary=places.summary, note=MAP,
               statistic="median", seconds=25),
        Figure("3.7a", "Fairness over blockage, 16 clients", "lines", "probability of blockage",
               JAIN, lambda effort, seed: cells.fairness(CELL_SCENES, MAIN, effort, seed),
               ("jain",), ("T-3.7a-jpoc", "T-3.7a-80211"), seconds=70),
        Figure("3.7b", "Mini-slots at which 10 % of the A-BFTs fail, blockage 0.2", "lines",
               "clients", "size of the A-BFT, mini-slots",
               lambda effort, seed: cells.overhead(CELL_SCENES, effort, seed),
               ("mini_slots",), ("T-3.7b",), log_y=True, log_x=True, curves=MAIN,
               note="A curve ends where some searches met 10 % with no number of mini-slots.",
               absent="no number of mini-slots reaches 10 %",
               seconds=200),
        Figure("estimator", "The estimate after a step from 8 to 24 clients", "lines",
               "beacon interval", "expected clients",
               lambda effort, seed: cells.step(SIGHTS, effort, seed),
               ("expected_clients",), ("T-3-T5",),
               note="All compete in every beacon interval. Dotted: the true numbers.", seconds=8),
        Figure("signalling", "JPOC's fields in each frame of the AP's sweep", "dots", "bits", "",
               _signalling, ("bits",), ("T-3-bits",), seconds=1),
        Figure("ablation", "Fairness over blockage, one part of JPOC at a time", "lines",
               "probability of blockage", JAIN,
               lambda effort, seed: cells.fairness(CELL_SCENES, PARTS, effort, seed, SWEPT),
               ("jain",), note="16 clients.", seconds=70),
        Figure("variants", "Fairness over blockage, forms and extensions of JPOC", "lines",
               "probability of blockage", JAIN,
               lambda effort, seed: cells.fairness(CELL_SCENES, VARIANTS, effort, seed, SWEPT),
               ("jain",), note="16 clients.", seconds=55),
        Figure("orientation", "Fairness over how far clients are turned away", "lines",
               "turned by up to, degrees", JAIN, _compared(variations.orientation_rows), ("jain",),
               note=IN_COMMON, seconds=33),
        Figure("devices", "Fairness over the number of device models", "lines", "device models",
               JAIN, _compared(variations.device_rows), ("jain",),
               note=f"{variations.CLIENTS} clients, blockage {variations.DEVICES_BLOCKAGE:g}.",
               seconds=22),
        Figure("thresholds", "Fairness over the decode threshold", "lines",
               "decode threshold, dB", JAIN, _thresholds, ("jain",), note=IN_COMMON, seconds=17),
        Figure("capture", "Fairness over the capture margin", "lines", "capture margin, dB", JAIN,
               _compared(variations.capture_rows), ("jain",), note=IN_COMMON, seconds=17),
        Figure("access-points", "Fairness over the number of APs on one channel", "lines", "APs",
               JAIN, _compared(variations.cell_rows), ("jain",),
               note=f"Cells of 10 m radius side by side, in each {IN_COMMON}", seconds=56),
        Figure("power-error", "JPOC over the error of power settings", "lines",
               "error, standard deviation, dB", JAIN, _errors, ("jain",),
               note=IN_COMMON, seconds=22),
    )
}  # fmt: skip


def figures_named(name: str) -> list[Figure]:
    """The figures of a name: one of `FIGURES`, a part of one (3.6a), a group (3.7), or all.

    Raises:
        AccessError: no figure has this name.

    """
    if name == "all":
        return list(FIGURES.values())
    part = re.fullmatch(r"(\d+\.\d+)[a-c]", name)
    known = {name, part[1]} if part else {name}
    if name[-1:].isdigit():
        known |= {f"{name}{letter}" for letter in "abc"}
    found = [figure for key, figure in FIGURES.items() if key in known]
    if not found:
        raise AccessError(f"figure must be all or one of {', '.join(FIGURES)}, not {name}")
    return found
