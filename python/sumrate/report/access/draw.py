"""One picture for each figure: lines with bands, bars with intervals, or maps."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture

from sumrate.access.curves import CURVES
from sumrate.access.figures import Figure
from sumrate.access.figures.cells import BRACKETS
from sumrate.access.participation import SITUATIONS
from sumrate.access.scenes import SCENES
from sumrate.access.tasks import Row
from sumrate.report.lab.canvas import WIDTH_IN, drawing
from sumrate.report.lab.palette import INK, STYLES, Style

PANEL_IN = 2.5
DPI = 150
MOST_MARKERS = 12


def draw(
    figure: Figure, rows: Sequence[Row], folder: Path, titles: Mapping[str, str] | None = None
) -> list[Path]:
    """Draws a figure from its table into `folder`: NAME.svg and NAME.png.

    Args:
        figure: what it is.
        rows: its table.
        folder: made if it is not there.
        titles: what panels and curves without a title of their own are called.

    Returns:
        The files.

    """
    kinds: dict[str, Callable[[Figure, Sequence[Row], Picture], None]] = {
        "lines": _lines, "bars": _bars, "heatmap": _maps,
    }  # fmt: skip
    shown = [_titled(row, titles or {}) for row in rows if row["metric"] in figure.metrics]
    folder.mkdir(parents=True, exist_ok=True)
    with drawing():
        panels = len(_names(shown, "panel"))
        columns = min(figure.columns, panels)
        lines = -(-panels // columns)
        picture = Picture(figsize=(WIDTH_IN, lines * PANEL_IN + 1.1), layout="constrained")
        FigureCanvasAgg(picture)
        kinds[figure.kind](figure, shown, picture)
        picture.suptitle(fill(f"{figure.name}  {figure.title}", 90), fontsize=10, x=0.01, ha="left")
        paths = [folder / f"{figure.name}.{kind}" for kind in ("svg", "png")]
        picture.savefig(paths[0], metadata={"Date": None})
        picture.savefig(paths[1], dpi=DPI)
    return paths


def _titled(row: Row, titles: Mapping[str, str]) -> Row:
    """The row with its panel and curve as the experiment calls them; scenes keep their own."""
    panel, curve = str(row["panel"]), str(row["curve"])
    shown_panel = panel if panel.partition(", ")[0] in SCENES else titles.get(panel, panel)
    shown_curve = curve if curve in CURVES else titles.get(curve, curve)
    return row | {"panel": shown_panel, "curve": shown_curve}


def _names(rows: Sequence[Row], key: str) -> list[str]:
    """In the order in which they come."""
    return list(dict.fromkeys(str(row[key]) for row in rows))


def _title(panel: str) -> str:
    scene, _, rest = panel.partition(", ")
    if scene in SCENES:
        return SCENES[scene].title + (f", {rest}" if rest else "")
    return panel


def _label(curve: str) -> str:
    return CURVES[curve].title if curve in CURVES else curve


def _looks(rows: Sequence[Row]) -> dict[str, Style]:
    return {name: STYLES[i % len(STYLES)] for i, name in enumerate(_names(rows, "curve"))}


def _grid(figure: Figure, picture: Picture, panels: Sequence[str], *, share_y: bool) -> list[Axes]:
    columns = min(figure.columns, len(panels))
    lines = -(-len(panels) // columns)
    axes = picture.subplots(lines, columns, squeeze=False, sharey=share_y)
    for place, one in enumerate(axes.ravel()):
        if place >= len(panels):
            one.set_axis_off()
            continue
        one.set_title(fill(_title(panels[place]), 76 // columns), loc="left")
    return list(axes.ravel()[: len(panels)])


def _lines(figure: Figure, rows: Sequence[Row], picture: Picture) -> None:
    panels, looks = _names(rows, "panel"), _looks(rows)
    grid = _grid(figure, picture, panels, share_y=True)
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        for index, (curve, look) in enumerate(looks.items()):
            _line(
                axes, [r for r in rows if r["panel"] == panel and r["curve"] == curve], look, index
            )
        axes.grid(visible=True)
        axes.set_xlabel(figure.x_label)
        if place % figure.columns == 0:
            axes.set_ylabel(figure.y_label)
        if figure.log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        if figure.limits:
            axes.set_ylim(*figure.limits)
        _marks(figure, axes)
    _legend(picture, grid[0], len(looks))


def _line(axes: Axes, rows: Sequence[Row], look: Style, index: int) -> None:
    """A line with its band; what has no value leaves a gap."""
    if not rows:
        return
    x, mean, low, high = (
        np.array([r[k] for r in rows], float) for k in ("x", "mean", "low", "high")
    )
    every = max(1, x.size // MOST_MARKERS)
    axes.fill_between(x, low, high, color=look.line, alpha=0.18, lw=0)
    axes.plot(
        x, mean, color=look.line, ls=look.dash, marker=look.marker, ms=4,
        markevery=(index % every, every), markerfacecolor=look.colour,
        label=_label(str(rows[0]["curve"])),
    )  # fmt: skip


def _marks(figure: Figure, axes: Axes) -> None:
    """What the figure is judged by."""
    marks = {"3.1b": (0.0,), "3.3": (1.0, 4.0), "3.7b": (9.0, 1.0), "estimator": (8.0, 24.0)}
    for level in marks.get(figure.name, ()):
        axes.axhline(level, color=INK, lw=0.6, ls=":")


def _legend(picture: Picture, axes: Axes, curves: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    longest = max((len(label) for label in labels), default=0)
    columns = max(1, min(curves, int(100 / (longest + 10))))
    picture.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False,
                   handlelength=3.2)  # fmt: skip


def _bars(figure: Figure, rows: Sequence[Row], picture: Picture) -> None:
    panels, looks = _names(rows, "panel"), _looks(rows)
    grid = _grid(figure, picture, panels, share_y=figure.limits is not None)
    width = 0.8 / len(looks)
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        inside = [r for r in rows if r["panel"] == panel]
        positions = sorted({r["x"] for r in inside})
        for index, (curve, look) in enumerate(looks.items()):
            mine = sorted((r for r in inside if r["curve"] == curve), key=lambda r: r["x"])
            at = np.array([positions.index(r["x"]) for r in mine]) + (index + 0.5) * width - 0.4
            mean, low, high = (
                np.array([r[k] for r in mine], float) for k in ("mean", "low", "high")
            )
            axes.bar(at, mean, width * 0.92, color=look.colour, hatch=look.hatch, edgecolor=INK,
                     lw=0.4, label=_label(curve))  # fmt: skip
            band = [mean - low, high - mean]
            axes.errorbar(at, mean, band, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5)
        names = [_category(figure, value) for value in positions]
        longest = max(map(len, names))
        axes.set_xticks(range(len(names)), names, rotation=60 if longest > 6 else 0,
                        ha="right" if longest > 6 else "center")  # fmt: skip
        axes.set_xlabel(figure.x_label)
        axes.grid(visible=True, axis="y")
        if place % figure.columns == 0:
            axes.set_ylabel(figure.y_label)
        if figure.limits:
            axes.set_ylim(*figure.limits)
    _legend(picture, grid[0], len(looks))


def _category(figure: Figure, value: float) -> str:
    if figure.name == "3.2a":
        return list(SITUATIONS.values())[int(value)].title
    if figure.name == "signalling":
        return ("target", "term", "slots", "all")[int(value)]
    last = dict(BRACKETS).get(int(value))
    return f"{value:g}-{last}" if last else f"{value:g}"


def _maps(figure: Figure, rows: Sequence[Row], picture: Picture) -> None:
    """Cells of the office grid; the AP is in the lower left corner."""
    panels = _names(rows, "panel")
    grid = _grid(figure, picture, panels, share_y=False)
    image = None
    for axes, panel in zip(grid, panels, strict=True):
        inside = [r for r in rows if r["panel"] == panel]
        size = int(max(r["x"] for r in inside)) + 1
        values = np.full((size, size), np.nan)
        for r in inside:
            values[int(r["y"]), int(r["x"])] = r["mean"]
        low, high = figure.limits or (0.0, 1.0)
        image = axes.imshow(np.clip(values, low, high), origin="lower", cmap="cividis", vmin=low,
                            vmax=high)  # fmt: skip
        for (y, x), value in np.ndenumerate(values):
            colour = "white" if value < (low + high) / 2 else "black"
            axes.text(x, y, f"{value:.1f}", ha="center", va="center", fontsize=6, color=colour)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.plot(-0.5, -0.5, "^", color="#d55e00", ms=9, clip_on=False)
        axes.set_xlabel("AP in the corner; cells of 1.25 m", loc="left")
    if image is not None:
        picture.colorbar(image, ax=grid, label=f"{figure.y_label}, median", shrink=0.8)
