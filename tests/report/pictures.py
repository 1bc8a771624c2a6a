"""Text of a picture and whether any of it is cut or overlaps: for the tests of figures."""

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text


def words(figure: Figure) -> list[str]:
    """All visible text, the lines of each joined."""
    return [text.get_text().replace("\n", " ") for text in _texts(figure)]


def title(figure: Figure) -> str:
    """The sentence above the picture."""
    return figure.texts[0].get_text().replace("\n", " ")


def problems(figure: Figure) -> list[str]:
    """Text that is smaller than 11 px at a width of 800, outside of the picture, or on other text.

    Tick labels count only against their edge: neighbours may touch.
    """
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    pixels = 800 / (figure.get_figwidth() * 72)
    found, boxes = [], []
    ticks = {label for axes in figure.axes for label in (*axes.get_xticklabels(),
                                                         *axes.get_yticklabels())}  # fmt: skip
    for text in _texts(figure):
        box = text.get_window_extent()
        said = text.get_text()
        if float(text.get_fontsize()) * pixels < 11:
            found.append(f"{said!r} is {float(text.get_fontsize()) * pixels:.1f} px")
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1:
            found.append(f"{said!r} is cut")
        if text not in ticks:
            boxes.append((said, box.shrunk(0.92, 0.7)))
    found += [
        f"{one!r} is on {other!r}"
        for (one, here), (other, there) in combinations(boxes, 2)
        if here.overlaps(there)
    ]
    return found


def _texts(figure: Figure) -> list[Text]:
    """Text that is drawn; ticks beyond the ends of their axis are not."""
    hidden = {
        tick.label1
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text not in hidden
        and text.get_visible()
        and text.get_text().strip()
    ]
