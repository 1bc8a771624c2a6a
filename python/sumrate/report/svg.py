"""Small charts as inline SVG: lines against time, and bars with a range."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 960
LEFT, RIGHT, TOP, BOTTOM = 64, 132, 16, 44


@dataclass(frozen=True)
class Line:
    """A series: identifier, label drawn at its end, colour, points (x, y), stroke width."""

    key: str
    label: str
    colour: str
    points: Sequence[tuple[float, float]]
    width: float = 1.75


@dataclass(frozen=True)
class Axes:
    """What both axes span and say, and the shaded interval of x."""

    x_max: float
    y_max: float
    x_label: str
    y_label: str
    shade: tuple[float, float] | None = None
    shade_label: str = ""
    height: int = 380

    def x(self, value: float) -> float:
        """Horizontal position of a value."""
        return LEFT + value / self.x_max * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Vertical position of a value."""
        return self.height - BOTTOM - value / self.y_max * (self.height - TOP - BOTTOM)


def step_for(span: float, most: int = 8) -> float:
    """A round distance between ticks that gives at most `most` of them."""
    step = 10.0**-6
    while True:
        for factor in (1, 2, 5):
            if span / (step * factor) <= most:
                return step * factor
        step *= 10


def ticks(limit: float, most: int = 8) -> list[float]:
    """Round values from 0 to the limit."""
    step = step_for(limit, most)
    return [i * step for i in range(int(limit / step + 1e-9) + 1)]


def frame(axes: Axes) -> str:
    """Grid, ticks, axis labels and the shaded interval."""
    right, bottom = WIDTH - RIGHT, axes.height - BOTTOM
    parts = []
    if axes.shade:
        x0, x1 = axes.x(axes.shade[0]), axes.x(min(axes.shade[1], axes.x_max))
        parts.append(
            f'<rect class="shade" x="{x0:.1f}" y="{TOP}" width="{x1 - x0:.1f}" '
            f'height="{bottom - TOP}" fill="var(--shade)"/>'
            f'<text x="{x0 + 6:.1f}" y="{bottom - 8}">{escape(axes.shade_label)}</text>'
        )
    for value in ticks(axes.y_max, 6):
        y = axes.y(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--rule)"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    for value in ticks(axes.x_max, 12):
        x = axes.x(value)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" '
            'stroke="var(--soft)"/>'
            f'<text x="{x:.1f}" y="{bottom + 19}" text-anchor="middle">{value:g}</text>'
        )
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text x="{(LEFT + right) / 2:.0f}" y="{axes.height - 6}" text-anchor="middle">'
        f"{escape(axes.x_label)}</text>"
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(axes.y_label)}</text>"
    )
    return "".join(parts)


def spread(wanted: Sequence[float], distance: float) -> list[float]:
    """Moves positions apart, so that labels at them keep at least `distance`; keeps their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for before, after in itertools.pairwise(order):
        placed[after] = max(placed[after], placed[before] + distance)
    return placed


def line_chart(identifier: str, title: str, lines: Sequence[Line], axes: Axes) -> str:
    """A chart of lines, each labelled directly beside its last point."""
    parts = [
        f'<svg id="{identifier}" viewBox="0 0 {WIDTH} {axes.height}" role="img" '
        f'aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title>",
        frame(axes),
    ]
    ends = [(line.points[-1] if line.points else (0.0, 0.0)) for line in lines]
    labels = spread([axes.y(y) for _, y in ends], 17)
    for line, (end_x, _), label_y in zip(lines, ends, labels, strict=True):
        points = " ".join(
            f"{axes.x(x):.1f},{axes.y(min(y, axes.y_max)):.1f}" for x, y in line.points
        )
        parts.append(
            f'<polyline class="series" data-scheme="{escape(line.key)}" points="{points}" '
            f'fill="none" stroke="{line.colour}" stroke-width="{line.width}" '
            'stroke-linejoin="round"/>'
            f'<text class="name" x="{axes.x(end_x) + 8:.1f}" y="{label_y + 4:.1f}" '
            f'style="fill:{line.colour}">{escape(line.label)}</text>'
        )
    parts.append("</svg>")
    return "".join(parts)
