"""Figures 3.1, 3.3, 3.5(b, c) and 3.6: a near and another client of one AP, beam by beam.

AP and clients stand at the same height.
"""

from dataclasses import replace

import numpy as np

from sumrate.access.budget import budgets
from sumrate.access.errors import whole
from sumrate.access.fairness import balance, competition_index
from sumrate.access.figures.table import Effort, median_row, row
from sumrate.access.power import PowerControl, controlled_snr_db
from sumrate.access.scenes import Scene, scene_named
from sumrate.access.tasks import Row, Task
from sumrate.phy.parameters import Floats

CELL_M = 1.25
"""Side of a cell of the office grid: the client at (4, 3) of the diagonal is 5 m away."""
GRID = 8
NEAR_M = 1.0
FAR_M = 5.0
TARGETS: dict[str, PowerControl | None] = {
    "no power control": None,
    "target 10 dB": PowerControl(10.0),
    "target 4 dB": PowerControl(4.0),
}


def _snr_db(
    scene: Scene, place: tuple[float, float], control: PowerControl | None, draws: int, seed: int
) -> Floats:
    """SNR of every beam of a client at a place, (draws, beams), dB."""
    key = (3, round(place[0] * 100) + 10_000, round(place[1] * 100) + 10_000)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    places = np.tile([place[0], place[1], 0.0], (draws, 1))
    turned = rng.uniform(-scene.turned, scene.turned, draws)
    return controlled_snr_db(budgets(scene, places, turned, rng), control)


def beam_rows(
    scene: str, curve: str, effort: Effort, seed: int, devices: str = "36-beams"
) -> list[Row]:
    """SNR of each beam of a client 1 m and of one 5 m away, median over draws."""
    where = replace(scene_named(scene), devices=(devices,), height_m=0.0)
    control = TARGETS[curve]
    draws = whole("realisations", effort.realisations, 2)
    far = _snr_db(where, (FAR_M / np.sqrt(2), FAR_M / np.sqrt(2)), control, draws, seed)
    near = _snr_db(where, (NEAR_M / np.sqrt(2), NEAR_M / np.sqrt(2)), control, draws, seed)
    panel = f"{scene}, {curve}"
    found = []
    for name, values in (("near client, 1 m", near), ("far client, 5 m", far)):
        for beam in range(values.shape[1]):
            found.append(median_row(panel, name, "snr_db", values[:, beam], x=float(beam)))
        best = values.max(axis=1)
        found += [
            row(panel, name, "share_at_least_0_db", (values >= 0).mean(axis=1)),
            row(panel, name, "good_beams", (values >= 1).sum(axis=1).astype(float)),
            median_row(panel, name, "best_db", best),
            median_row(panel, name, "largest_db", best),
        ]
    found.append(row(panel, "far client, 5 m", "share_below_near", (far < near).mean(axis=1)))
    return found


def beams(scenes: tuple[str, ...], curve: str, effort: Effort, seed: int) -> list[Task]:
    """One task per scene."""
    return [
        Task(beam_rows, {"scene": scene, "curve": curve, "effort": effort, "seed": seed})
        for scene in scenes
    ]


def index_rows(
    scene: str, curve: str, column: int, effort: Effort, seed: int, *, devices: str = "36-beams"
) -> list[Row]:
    """Competition fairness index of a column of cells against the client next to the AP.

    The AP stands in the corner of cell (0, 0), and the near client in that cell. The index is 1
    where neither client ever wins.
    """
    where = replace(scene_named(scene), devices=(devices,), height_m=0.0)
    control = TARGETS[curve]
    draws = effort.realisations
    near = _snr_db(where, (NEAR_M / np.sqrt(2), NEAR_M / np.sqrt(2)), control, draws, seed)
    panel = f"{scene}, {curve}" + (", 64 beams" if devices == "64-beams" else "")
    found = []
    for line in range(GRID):
        place = ((column + 0.5) * CELL_M, (line + 0.5) * CELL_M)
        other = _snr_db(where, place, control, draws, seed + 1)
        for metric, decode in (("index", None), ("index_decodable", 1.0)):
            index = competition_index(near, other, decode_db=decode)
            for what, values in (
                (metric, np.where(np.isnan(index), 1.0, index)),
                (metric.replace("index", "balance"), balance(index)),
            ):
                found.append(
                    median_row(panel, "grid", what, values, x=float(column), y=float(line))
                )
    return found


def heatmap(
    scenes: tuple[str, ...], curves: tuple[str, ...], effort: Effort, seed: int,
    devices: str = "36-beams",
) -> list[Task]:  # fmt: skip
    """One task per scene, target and column of cells."""
    fewer = effort._replace(realisations=max(20, effort.realisations // 4))
    return [
        Task(index_rows, {"scene": scene, "curve": curve, "column": column, "effort": fewer,
                          "seed": seed, "devices": devices})
        for scene in scenes for curve in curves for column in range(GRID)
    ]  # fmt: skip


def summary(rows: list[Row]) -> list[Row]:
    """Fairness of the cells of each map: medians and shares of cells.

    The near client's own cell is excluded. Cells are fair (index at least 0.5), starved (at most
    0.1) or ahead of the near client (at least 2).
    """
    found = []
    for panel in dict.fromkeys(r["panel"] for r in rows):
        for metric in ("index", "index_decodable"):
            cells = [r for r in rows if r["panel"] == panel and r["metric"] == metric]
            values = np.array([r["mean"] for r in cells])
            own = next(r for r in cells if r["x"] == r["y"] == 0.0)
            others = np.array([r["mean"] for r in cells if r is not own])
            found += [
                median_row(panel, "grid", f"median_{metric}", values),
                row(panel, "grid", f"{metric}_of_near_cell", np.array([own["mean"]])),
                row(panel, "grid", f"cells_fair_by_{metric}", (others >= 0.5).astype(float)),
                row(panel, "grid", f"cells_starved_by_{metric}", (others <= 0.1).astype(float)),
                row(panel, "grid", f"cells_ahead_by_{metric}", (others >= 2.0).astype(float)),
            ]
            even = metric.replace("index", "balance")
            balances = np.array(
                [r["mean"] for r in rows if r["panel"] == panel and r["metric"] == even]
            )
            found.append(median_row(panel, "grid", f"median_{even}", balances))
    return found
