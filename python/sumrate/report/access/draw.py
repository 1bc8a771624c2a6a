"""One picture for each figure: lines named at their ends, dots, or maps; a finding above it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator, NullLocator

from sumrate.access.curves import CURVES
from sumrate.access.figures import Figure
from sumrate.access.figures.cells import BRACKETS
from sumrate.access.figures.places import CELL_M
from sumrate.access.participation import SITUATIONS
from sumrate.access.scenes import SCENES
from sumrate.access.tasks import Row
from sumrate.report.access.findings import sentence, share
from sumrate.report.lab.canvas import NOTE_PT, WIDTH_IN, Label, drawing, finding, label_ends, save
from sumrate.report.lab.palette import INK, SOFT, STYLES, Style

PANEL_IN, MAP_IN = 2.2, 2.75
MOST_MARKERS = 12
MOST_TICKS, MOST_NAMED = 10, 6
"""Most points along x with a tick each, and with a number each."""
LABEL_LETTERS = 18
"""Length of a line in a curve's label."""
MANY = 5
"""Number of curves from which on panels without differences are omitted."""
SAME = 0.03
"""Largest distance of curves without a difference."""
MAP_COLOURS = "PuOr_r"
"""Violet below one half, white at it, orange above: told apart with any colour vision."""
LOOKS = {"jpoc": 0, "dot11ad": 1, "dot11ad-random": 2}
"""Curves with the same style in every figure."""
SHORT = {"dot11ad": "802.11ad", "dot11ad-random": "802.11ad, random\nbeam order"}
WORDS = {
    "product": "as products do",
    "restrained": "after listening",
    "phy": "PHY rate",
    "tcp": "TCP",
    "udp": "UDP",
    "T = 1": "one round",
    "T = 5": "mean of 5",
    "T = 10": "mean of 10",
    "T = 5, two-K": "mean of 5,\ntwo-K form",
    "first link, udp": "first link",
    "later link, udp": "later link",
    "later link, tcp": "later link, TCP",
    "exact": "exact settings",
    "aci": "another link on the next channel",
    "cci": "another link on the same channel",
} | {
    f"{signal}-{mtu}": f"{signal} signal, MTU {mtu}"
    for signal in ("strong", "weak")
    for mtu in (1500, 7912)
}
SIGNALLING = ("power at the AP", "gains and power", "mini-slots", "all fields")
MARKS = {"3.1b": (0.0,), "3.3": (1.0, 4.0), "estimator": (8.0, 24.0)}
"""Reference levels of a figure, drawn dotted."""


def draw(
    figure: Figure, rows: Sequence[Row], folder: Path, titles: Mapping[str, str] | None = None
) -> list[Path]:
    """Draws a figure from its table into `folder`: NAME.svg and NAME.png.

    Args:
        figure: to draw.
        rows: its table.
        folder: created if missing.
        titles: names of panels and curves that have no title.

    Returns:
        The files.

    """
    folder.mkdir(parents=True, exist_ok=True)
    with drawing():
        picture = plot(figure, rows, titles)
        paths = [folder / f"{figure.name}.{kind}" for kind in ("svg", "png")]
        for path in paths:
            save(picture, path)
    return paths


def plot(figure: Figure, rows: Sequence[Row], titles: Mapping[str, str] | None = None) -> Picture:
    """The picture, under a sentence that is computed from the rows."""
    kinds: dict[str, Callable[[Figure, Sequence[Row], Picture, Mapping[str, str]], None]] = {
        "lines": _lines, "dots": _dots, "heatmap": _maps,
    }  # fmt: skip
    shown = [r for r in rows if r["metric"] in figure.metrics]
    if figure.curves:
        shown = [r for r in shown if r["curve"] in figure.curves]
    shown, alike = _different(figure, shown)
    panels = len(_names(shown, "panel"))
    lines = -(-panels // min(figure.columns, panels))
    height = lines * (MAP_IN if figure.kind == "heatmap" else PANEL_IN) + 0.4
    picture = Picture(figsize=(WIDTH_IN, height), layout="constrained")
    FigureCanvasAgg(picture)
    finding(picture, sentence(figure, rows), _note(figure, shown, alike))
    kinds[figure.kind](figure, shown, picture, titles or {})
    return picture


def _different(figure: Figure, rows: list[Row]) -> tuple[list[Row], list[str]]:
    """The rows of panels with different curves, and the names of the other panels."""
    if figure.kind != "lines" or len(_names(rows, "curve")) < MANY:
        return rows, []
    alike = []
    for panel in _names(rows, "panel"):
        inside = [r for r in rows if r["panel"] == panel]
        spans = [
            np.ptp([r["mean"] for r in inside if r["x"] == x]) for x in {r["x"] for r in inside}
        ]
        if max(spans) < SAME:
            alike.append(panel)
    if len(alike) == len(_names(rows, "panel")):
        return rows, []
    return [r for r in rows if r["panel"] not in alike], alike


def _names(rows: Sequence[Row], key: str) -> list[str]:
    """Distinct values of a column, in their order."""
    return list(dict.fromkeys(str(row[key]) for row in rows))


def _title(panel: str, titles: Mapping[str, str]) -> str:
    scene, _, rest = panel.partition(", ")
    if scene in SCENES:
        return SCENES[scene].title + (f", {rest}" if rest else "")
    return titles.get(panel, WORDS.get(panel, panel))


def _note(figure: Figure, rows: Sequence[Row], alike: Sequence[str]) -> str:
    """The text below the sentence: title, conditions, meaning of bands and marks."""
    parts = [figure.title + ".", figure.note]
    if figure.kind != "heatmap" and any(r["low"] < r["high"] for r in rows):
        band = "Shaded" if figure.kind == "lines" else "Whiskers"
        parts.append(f"{band}: 95 % confidence interval of the {figure.statistic}.")
    if alike:
        places = " and ".join(_title(panel, {}) for panel in alike)
        parts.append(f"Not drawn: {places}; there no two curves differ by {SAME:g}.")
    return " ".join(filter(None, parts))


def _label(curve: str, titles: Mapping[str, str]) -> str:
    if curve in SHORT:
        return SHORT[curve]
    known = CURVES[curve].title if curve in CURVES else titles.get(curve, WORDS.get(curve, curve))
    if curve.startswith("jpoc-"):
        known = known.removeprefix("JPOC, ")
    return fill(known, LABEL_LETTERS)


def _looks(rows: Sequence[Row]) -> dict[str, Style]:
    names = _names(rows, "curve")
    free = iter([n for n in range(len(STYLES)) if n not in {LOOKS.get(name) for name in names}])
    return {name: STYLES[LOOKS[name] if name in LOOKS else next(free)] for name in names}


def _grid(
    figure: Figure, picture: Picture, panels: Sequence[str], titles: Mapping[str, str]
) -> list[Axes]:
    columns = min(figure.columns, len(panels))
    axes = picture.subplots(
        -(-len(panels) // columns), columns, squeeze=False, sharey=figure.kind != "heatmap"
    )
    for place, one in enumerate(axes.ravel()):
        if place >= len(panels):
            one.set_axis_off()
        elif len(panels) > 1:
            # No line break between a number and its unit.
            title = _title(panels[place], titles).replace(" dB", "\u00a0dB")
            letters = {"lines": 92, "heatmap": 76, "dots": 60}[figure.kind] // columns
            one.set_title(fill(title.replace(" beams", "\u00a0beams"), letters), loc="left")
    return list(axes.ravel()[: len(panels)])


def _lines(
    figure: Figure, rows: Sequence[Row], picture: Picture, titles: Mapping[str, str]
) -> None:
    panels, looks = _names(rows, "panel"), _looks(rows)
    grid = _grid(figure, picture, panels, titles)
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        inside = [r for r in rows if r["panel"] == panel]
        for index, (curve, look) in enumerate(looks.items()):
            _line(figure, axes, [r for r in inside if r["curve"] == curve], look, index)
        axes.grid(visible=True)
        if place + figure.columns >= len(panels):
            axes.set_xlabel(figure.x_label)
        if place % figure.columns == 0:
            axes.set_ylabel(figure.y_label)
        if figure.log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        _x_axis(figure, axes, sorted({r["x"] for r in rows}))
        for level in MARKS.get(figure.name, ()):
            axes.axhline(level, color=INK, lw=0.6, ls=":")
    # All panels share one y axis, so its limits are set after all curves.
    if figure.limits:
        grid[0].set_ylim(*figure.limits)
    elif not (figure.log_y or set(figure.metrics) & set(figure.signed)):
        grid[0].set_ylim(bottom=_bottom(rows))
    picture.draw_without_rendering()
    for axes, panel in zip(grid, panels, strict=True):
        label_ends(axes, [
            Label(last["x"], last["mean"],
                  _label(curve, titles) + _times(figure, rows, last), look.text)
            for curve, look in looks.items()
            if (last := _last(rows, panel, curve))
        ])  # fmt: skip
        _name_absent(figure, axes, [c for c in looks if not _last(rows, panel, c)], titles)


def _name_absent(
    figure: Figure, axes: Axes, curves: Sequence[str], titles: Mapping[str, str]
) -> None:
    """Writes into a panel which curves have no value there, and why."""
    if curves and figure.absent:
        names = ", ".join(_label(curve, titles).replace("\n", " ") for curve in curves)
        axes.text(0.97, 0.05, fill(f"{names}: {figure.absent}", 32), transform=axes.transAxes,
                  ha="right", size=NOTE_PT, color=SOFT)  # fmt: skip


def _times(figure: Figure, rows: Sequence[Row], last: Row) -> str:
    """On a logarithmic scale, the ratio of a curve's last value to JPOC's."""
    own = _last(rows, str(last["panel"]), "jpoc")
    if not figure.log_y or own is None or own is last or own["x"] != last["x"]:
        return ""
    return f"\n({last['mean'] / own['mean']:.1f} \N{MULTIPLICATION SIGN} JPOC)"


def _bottom(rows: Sequence[Row]) -> float:
    """Lower limit of an axis of positive values: 0, or higher if all values are far from 0."""
    least = min(r["low"] for r in rows)
    return 0.0 if least < 0.45 * max(r["high"] for r in rows) else np.floor(least * 10) / 10


def _last(rows: Sequence[Row], panel: str, curve: str) -> Row | None:
    """The last point with a value of a curve."""
    mine = [r for r in rows if r["panel"] == panel and r["curve"] == curve]
    known = [r for r in mine if np.isfinite(r["mean"])]
    return max(known, key=lambda r: r["x"], default=None)


def _x_axis(figure: Figure, axes: Axes, values: Sequence[float]) -> None:
    """Ticks at the points, if these are few."""
    if figure.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    if len(values) <= MOST_TICKS:
        every = 1 if len(values) <= MOST_NAMED else 2
        words = [_tick(figure, v) if n % every == 0 else "" for n, v in enumerate(values)]
        axes.set_xticks(values, words)


def _tick(figure: Figure, value: float) -> str:
    last = dict(BRACKETS).get(int(value)) if figure.name == "3.5a" else None
    return f"{value:g}-{last}" if last else f"{value:g}"


def _line(figure: Figure, axes: Axes, rows: Sequence[Row], look: Style, index: int) -> None:
    """A line with its band and gaps at missing values; steps for beams, which have no order."""
    if not rows:
        return
    x, mean, low, high = (
        np.array([r[k] for r in rows], float) for k in ("x", "mean", "low", "high")
    )
    if rows[0]["metric"] not in figure.signed:
        low = np.maximum(low, 0.0)
    if figure.steps:
        axes.fill_between(x, low, high, color=look.line, alpha=0.18, lw=0, step="mid")
        axes.step(x, mean, color=look.line, where="mid", lw=1.6)
        return
    every = max(1, x.size // MOST_MARKERS)
    axes.fill_between(x, low, high, color=look.line, alpha=0.18, lw=0)
    axes.plot(
        x, mean, color=look.line, ls=look.dash, marker=look.marker, ms=4,
        markevery=(index % every, every), markerfacecolor=look.colour,
    )  # fmt: skip


def _dots(figure: Figure, rows: Sequence[Row], picture: Picture, titles: Mapping[str, str]) -> None:
    """A row for each category, a dot for each curve, with its interval."""
    panels, looks = _names(rows, "panel"), _looks(rows)
    grid = _grid(figure, picture, panels, titles)
    places = sorted({r["x"] for r in rows})
    for axes, panel in zip(grid, panels, strict=True):
        for index, (curve, look) in enumerate(looks.items()):
            mine = [r for r in rows if r["panel"] == panel and r["curve"] == curve]
            at = [places.index(r["x"]) + 0.4 * (index - (len(looks) - 1) / 2) for r in mine]
            mean, low, high = (np.array([r[k] for r in mine], float) for k in
                               ("mean", "low", "high"))  # fmt: skip
            axes.hlines(at, np.maximum(low, 0), high, color=look.line, lw=1.2)
            axes.plot(mean, at, look.marker, color=look.line, ms=5)
            if panel == panels[-1]:
                axes.annotate(
                    _label(curve, titles), (1.0, at[_longest_row(rows, panel)]), xytext=(6, 0),
                    xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
                    size=NOTE_PT, weight="bold", color=look.text, annotation_clip=False,
                )  # fmt: skip
        axes.set_yticks(range(len(places)), [_category(figure, value) for value in places])
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.margins(x=0.12)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel(figure.x_label)
        axes.grid(visible=True)


def _longest_row(rows: Sequence[Row], panel: str) -> int:
    """Index of the category with the largest value of a panel: its dots get the curves' names."""
    inside = [r for r in rows if r["panel"] == panel]
    places = sorted({r["x"] for r in inside})
    return places.index(max(inside, key=lambda r: r["mean"])["x"])


def _category(figure: Figure, value: float) -> str:
    if figure.name == "3.2a":
        return list(SITUATIONS.values())[int(value)].title
    return SIGNALLING[int(value)]


def _maps(figure: Figure, rows: Sequence[Row], picture: Picture, titles: Mapping[str, str]) -> None:
    """Share of the contested beams, by the place of the other client; white is fair."""
    panels = _names(rows, "panel")
    grid = _grid(figure, picture, panels, titles)
    image = None
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        inside = [r for r in rows if r["panel"] == panel]
        size = int(max(r["x"] for r in inside)) + 1
        values = np.full((size, size), np.nan)
        for r in inside:
            values[int(r["y"]), int(r["x"])] = share(r["mean"])
        side = size * CELL_M
        image = axes.imshow(
            values, origin="lower", cmap=MAP_COLOURS, extent=(0, side, 0, side),
            norm=TwoSlopeNorm(0.5, 0.0, 1.0),
        )  # fmt: skip
        axes.set_xticks(np.arange(0, side + 0.1, 2.5), [f"{x:g}" for x in np.arange(0, 11, 2.5)])
        axes.set_yticks(np.arange(0, side + 0.1, 2.5), [f"{x:g}" for x in np.arange(0, 11, 2.5)])
        axes.plot(0, 0, "^", color="#d55e00", ms=9, clip_on=False, zorder=5)
        if place % figure.columns == 0:
            axes.set_ylabel("metres from the AP")
        if place + figure.columns >= len(panels):
            axes.set_xlabel("metres from the AP")
    if image is not None:
        bar = picture.colorbar(image, ax=grid, shrink=0.7)
        bar.set_label("beams that the other client wins", color=SOFT)
        bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0 %", "25 %", "50 %", "75 %", "100 %"])
    # The first layout resizes the squares; the second one, on saving, fits.
    picture.draw_without_rendering()
