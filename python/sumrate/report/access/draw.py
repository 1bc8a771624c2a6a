"""One picture for each figure: lines with bands, bars with intervals, or maps."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill, wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator, NullLocator

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
MOST_TICKS = 10
"""Where curves have no more points than this along x, each of them has its tick."""
NOTE_LETTERS, LEGEND_LETTERS = 118, 110
NAMES_IN = 1.0
"""Room below bars for names that stand aslant."""
MAP_COLOURS = "PuOr_r"
"""Violet below 1, white at 1, orange above: told apart with any colour vision."""


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
        below = NAMES_IN * _crowded(figure, shown) + 0.18 * (
            _legend_lines(shown) + len(_note(figure, shown))
        )
        picture = Picture(figsize=(WIDTH_IN, lines * PANEL_IN + 0.5 + below), layout="constrained")
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


def _note(figure: Figure, rows: Sequence[Row]) -> list[str]:
    """What is written below the figure, in lines."""
    if figure.kind == "heatmap" or all(r["low"] == r["high"] for r in rows):
        return wrap(figure.note, NOTE_LETTERS)
    band = "Shaded" if figure.kind == "lines" else "Error bars"
    text = f"{figure.note} {band}: 95 % confidence interval of the {figure.statistic}."
    return wrap(text, NOTE_LETTERS)


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
        letters = (66 if figure.kind == "heatmap" else 76) // columns
        # A number stays with its unit.
        title = _title(panels[place]).replace(" dB", "\u00a0dB").replace(" beams", "\u00a0beams")
        one.set_title(fill(title, letters), loc="left")
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
        _x_axis(figure, axes, sorted({r["x"] for r in rows}))
        if figure.limits:
            axes.set_ylim(*figure.limits)
        _marks(figure, axes)
    _legend(figure, picture, grid[0], rows)


def _x_axis(figure: Figure, axes: Axes, values: Sequence[float]) -> None:
    """Ticks where there are points, if these are few."""
    if figure.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    if len(values) <= MOST_TICKS:
        axes.set_xticks(values, [f"{value:g}" for value in values])


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


def _legend_columns(rows: Sequence[Row]) -> int:
    labels = [_label(curve) for curve in _names(rows, "curve")]
    longest = max((len(label) for label in labels), default=0)
    return max(1, min(len(labels), LEGEND_LETTERS // (longest + 12)))


def _legend_lines(rows: Sequence[Row]) -> int:
    return -(-len(_names(rows, "curve")) // _legend_columns(rows))


def _legend(figure: Figure, picture: Picture, axes: Axes, rows: Sequence[Row]) -> None:
    """The curves, and what is to be said of all of them."""
    handles, labels = axes.get_legend_handles_labels()
    legend = picture.legend(handles, labels, loc="outside lower left", frameon=False,
                            ncols=_legend_columns(rows), handlelength=3.2, alignment="left",
                            title="\n".join(_note(figure, rows)))  # fmt: skip
    legend.get_title().set_fontsize(8)


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
        crowded = _crowded(figure, rows)
        axes.set_xticks(range(len(names)), names, rotation=60 if crowded else 0,
                        ha="right" if crowded else "center")  # fmt: skip
        if figure.limits is None:
            axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel(figure.x_label)
        axes.grid(visible=True, axis="y")
        if place % figure.columns == 0:
            axes.set_ylabel(figure.y_label)
        if figure.limits:
            axes.set_ylim(*figure.limits)
    _legend(figure, picture, grid[0], rows)


def _crowded(figure: Figure, rows: Sequence[Row]) -> bool:
    """Whether the names of bars have no room beside each other."""
    if figure.kind != "bars":
        return False
    names = [_category(figure, x) for x in {r["x"] for r in rows}]
    return sum(map(len, names)) > 80 // min(figure.columns, len(_names(rows, "panel")))


def _category(figure: Figure, value: float) -> str:
    if figure.name == "3.2a":
        return list(SITUATIONS.values())[int(value)].title
    if figure.name == "signalling":
        return ("power at the AP", "gains and power", "mini-slots", "all")[int(value)]
    last = dict(BRACKETS).get(int(value))
    return f"{value:g}-{last}" if last else f"{value:g}"


def _maps(figure: Figure, rows: Sequence[Row], picture: Picture) -> None:
    """Cells of the office grid; the AP is in the lower left corner. White is fair."""
    panels = _names(rows, "panel")
    grid = _grid(figure, picture, panels, share_y=False)
    low, high = figure.limits or (1 / 8, 8.0)
    shades = LogNorm(low, high, clip=True)
    image = None
    for axes, panel in zip(grid, panels, strict=True):
        inside = [r for r in rows if r["panel"] == panel]
        size = int(max(r["x"] for r in inside)) + 1
        values = np.full((size, size), np.nan)
        for r in inside:
            values[int(r["y"]), int(r["x"])] = r["mean"]
        image = axes.imshow(np.clip(values, low, high), origin="lower", cmap=MAP_COLOURS,
                            norm=shades)  # fmt: skip
        for (y, x), value in np.ndenumerate(values):
            colour = "white" if abs(np.log2(np.clip(value, low, high))) > 2 else "black"
            text = "∞" if np.isinf(value) else f"{value:.1f}"
            axes.text(x, y, text, ha="center", va="center", fontsize=6, color=colour)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.plot(-0.5, -0.5, "^", color="#d55e00", ms=9, clip_on=False)
        axes.set_xlabel("AP in the corner; cells of 1.25 m", loc="left")
    if image is not None:
        bar = picture.colorbar(image, ax=grid, label=f"{figure.y_label}, median", shrink=0.8,
                               extend="both")  # fmt: skip
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.set_ticks([1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8],
                      labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])  # fmt: skip
    picture.supxlabel("\n".join(_note(figure, rows)), fontsize=8, x=0.01, ha="left")
