"""The demo's picture as inline SVG: one strip of goodput against time for each scheme.

It is drawn twice, wide for 800 px and narrow for a telephone, in light and dark colours.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import Any

from sumrate.report.style import CSS

Entry = Mapping[str, Any]
TITLES = {
    "wifi": "WiFi alone",
    "wigig": "WiGig alone",
    "mptcp": "Kernel MPTCP",
    "sumrate": "Sumrate",
}
STALL_S = 1.0
"""A stall from this length on is marked by a line along it."""
BACK_SHARE = 0.9
"""A scheme is back when it reaches this share of its undisturbed goodput."""
LATE_BACK_S = 0.3
"""A scheme that is back later than this after the blockage has it said."""


@dataclass(frozen=True)
class Layout:
    """Sizes of the picture in its own pixels."""

    width: int
    left: int
    right: int
    top: int
    strip: int
    gap: int
    wide: bool


WIDE = Layout(width=800, left=136, right=116, top=84, strip=78, gap=22, wide=True)
NARROW = Layout(width=360, left=8, right=8, top=112, strip=64, gap=44, wide=False)


def duration(seconds: float) -> str:
    """A time for people: `36 ms`, `4.3 s`, `28 s`."""
    if seconds < 1.0:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.1f}".removesuffix(".0") + " s" if seconds < 10.0 else f"{seconds:.0f} s"


def finished(document: Entry) -> dict[str, Entry]:
    """The schemes with a curve, the fastest first."""
    found = {name: entry for name, entry in document["schemes"].items() if "series" in entry}
    return dict(sorted(found.items(), key=lambda item: -float(item[1]["goodput_mbps"])))


def size_words(document: Entry) -> str:
    """The size of the file, such as `2 GiB` or `384 MiB`."""
    entries = finished(document).values()
    known = document.get("file", {}).get("bytes")
    size = known or max((e["goodput_mbps"] * e["duration_s"] * 125e3 for e in entries), default=0)
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 * 0.999 else f"{size / 2**20:.0f} MiB"


def finding(document: Entry) -> str:
    """The picture's title: what was seen, as a sentence."""
    blockage = document["blockage"]
    length = duration(blockage["end_s"] - blockage["start_s"])
    entries = finished(document)
    pause = entries.get("sumrate", {}).get("longest_stall_ms")
    if pause is None:
        return f"A download with WiGig blocked for {length}"
    first = next(iter(entries)) == "sumrate" and len(entries) > 1
    return f"WiGig blocked for {length}: Sumrate pauses for {duration(pause / 1e3)}" + (
        " and finishes first" if first else ""
    )


def back_after(entry: Entry, blocked_until_s: float) -> float | None:
    """Seconds from the end of the blockage to the old goodput; None where it is not reached."""
    usual = entry.get("goodput_outside_blockage_mbps")
    if not usual:
        return None
    reached = (t for t, g in entry["series"] if t > blocked_until_s and g >= BACK_SHARE * usual)
    first = next(reached, None)
    return None if first is None else max(0.0, first - blocked_until_s)


def note(name: str, document: Entry) -> str:
    """The words beside the curve of one scheme."""
    entry = document["schemes"][name]
    if name == "wifi":
        return "slow, never blocked"
    pause = entry["longest_stall_ms"] / 1e3
    if pause >= STALL_S:
        return f"no data for {duration(pause)}"
    back = back_after(entry, document["blockage"]["end_s"])
    words = f"pauses for {duration(pause)}"
    if back is not None and back > LATE_BACK_S:
        words += f", back {duration(back)} late"
    return words


def _x_max(entries: Mapping[str, Entry]) -> float:
    """Just beyond the end of the second fastest."""
    ends = sorted(float(entry["duration_s"]) for entry in entries.values())
    return (ends[min(1, len(ends) - 1)] if ends else 1.0) * 1.04 or 1.0


@dataclass(frozen=True)
class Plot:
    """Where times and rates are in the picture."""

    layout: Layout
    x_max: float
    y_max: float
    strips: int

    @property
    def right(self) -> float:
        """Where the strips end."""
        return float(self.layout.width - self.layout.right)

    @property
    def bottom(self) -> float:
        """The lowest strip's base."""
        return self.base(self.strips - 1)

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return self.bottom + 48

    def x(self, at_s: float) -> float:
        """Horizontal position of a time."""
        width = self.right - self.layout.left
        return self.layout.left + min(at_s, self.x_max) / self.x_max * width

    def base(self, strip: int) -> float:
        """Vertical position of goodput 0 in a strip."""
        return self.layout.top + (strip + 1) * (self.layout.strip + self.layout.gap) - 8.0

    def y(self, strip: int, mbps: float) -> float:
        """Vertical position of a goodput in a strip."""
        return self.base(strip) - min(mbps, self.y_max) / self.y_max * self.layout.strip


def step_for(span: float, most: int) -> float:
    """A round distance between ticks that gives at most `most` of them."""
    step = 1e-6
    while True:
        for factor in (1, 2, 5):
            if span / (step * factor) <= most:
                return step * factor
        step *= 10


def rate_words(mbps: float) -> str:
    """A rate in the unit that suits it."""
    return f"{mbps / 1e3:.2g} Gbit/s" if mbps >= 1e3 else f"{mbps:.3g} Mbit/s"


def text(x: float, y: float, words: str, *kinds: str, anchor: str = "start") -> str:
    """A line of text."""
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}{at}>{escape(words)}</text>'


def _head(document: Entry, plot: Plot) -> list[str]:
    layout = plot.layout
    lines = [finding(document)]
    size = size_words(document)
    if layout.wide:
        small = f"Goodput of one {size} download over time, by each way of carrying it"
    else:
        lines = wrap(lines[0], 34)
        small = f"Goodput of a {size} download"
    if document.get("approximate"):
        small = small.removesuffix(", by each way of carrying it") + " (approximate)"
    parts = [text(8, 26 + 22 * i, line, "title") for i, line in enumerate(lines)]
    parts.append(text(8, 26 + 22 * len(lines), small))
    return parts


def _frame(document: Entry, plot: Plot) -> list[str]:
    layout, blockage = plot.layout, document["blockage"]
    x0, x1 = plot.x(blockage["start_s"]), plot.x(blockage["end_s"])
    top = layout.top - 8.0
    parts = [
        f'<rect class="shade" x="{x0:.1f}" y="{top:.1f}" width="{max(0.0, x1 - x0):.1f}" '
        f'height="{plot.bottom - top:.1f}"/>'
    ]
    if x1 > x0:
        parts.append(
            text((x0 + x1) / 2, top + 16.0, "WiGig blocked", "strong", anchor="middle")
            if layout.wide
            else text(x0 + 5, top + 16.0, "WiGig blocked", "strong")
        )
    step = step_for(plot.x_max, 12 if layout.wide else 6)
    for i in range(int(plot.x_max / step) + 1):
        x = plot.x(i * step)
        parts.append(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{plot.bottom:.1f}" '
            f'y2="{plot.bottom + 5:.1f}"/>'
        )
        parts.append(text(x, plot.bottom + 20, f"{i * step:g}", anchor="middle"))
    middle = (layout.left + plot.right) / 2
    parts.append(text(middle, plot.bottom + 40, "seconds since the first byte", anchor="middle"))
    if layout.wide:
        x = plot.right + 12
        parts.append(text(x, top + 16, "finished after"))
    return parts


def _area(strip: int, name: str, entry: Entry, plot: Plot) -> list[str]:
    """The filled curve of one scheme, cut at the right edge."""
    points = [(t, g) for t, g in entry["series"] if t <= plot.x_max]
    if not points:
        return []
    base = plot.base(strip)
    line = [(plot.x(0.0), plot.y(strip, points[0][1]))]
    line += [(plot.x(t), plot.y(strip, g)) for t, g in points]
    line.append((plot.x(entry["duration_s"]), plot.y(strip, points[-1][1])))
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
    closed = f"{line[0][0]:.1f},{base:.1f} {drawn} {line[-1][0]:.1f},{base:.1f}"
    return [
        f'<polygon class="area {name}" points="{closed}"/>',
        f'<polyline class="series {name}" data-scheme="{escape(name)}" points="{drawn}"/>',
    ]


def _stall(strip: int, entry: Entry, document: Entry, plot: Plot) -> list[str]:
    """A line along a long stall."""
    if entry["longest_stall_ms"] / 1e3 < STALL_S:
        return []
    zeros = [t for t, g in entry["series"] if g <= 0 and t > document["blockage"]["start_s"]]
    ends = [b for a, b in pairwise(zeros) if b - a < 0.11]
    if not ends:
        return []
    x0, x1, y = plot.x(zeros[0]), plot.x(ends[-1]), plot.base(strip) - 5.0
    return [f'<path class="stall" d="M{x0:.1f},{y - 4} v8 M{x0:.1f},{y} H{x1:.1f} m0,-4 v8"/>']


def _strip(strip: int, name: str, document: Entry, plot: Plot) -> list[str]:
    layout, entry = plot.layout, document["schemes"][name]
    base, x0 = plot.base(strip), plot.x(document["blockage"]["start_s"])
    ended = float(entry["duration_s"])
    cut = ended > plot.x_max
    parts = [
        *_area(strip, name, entry, plot),
        f'<line class="base" x1="{layout.left}" x2="{plot.right:.1f}" y1="{base:.1f}" '
        f'y2="{base:.1f}"/>',
        *_stall(strip, entry, document, plot),
    ]
    after = f"{duration(ended)}"
    mean = rate_words(float(entry.get("goodput_outside_blockage_mbps") or entry["goodput_mbps"]))
    if layout.wide:
        middle = base - layout.strip / 2
        parts.append(text(8, middle, TITLES[name], "name", name))
        parts.append(text(8, middle + 19, mean))
        parts.append(text(plot.right + 12, middle + 8, after, "big", name))
        if cut:
            parts.append(text(plot.right + 68, middle + 8, "\u2192", "big", name))
        lift = 24.0 if entry["longest_stall_ms"] / 1e3 < STALL_S else 0.0
        parts.append(text(x0 + 6, base - 12 - lift, note(name, document), "note"))
    else:
        above = base - layout.strip - 9
        line = f"{mean}, {after}"
        parts.append(text(layout.left, above, TITLES[name], "name", name))
        parts.append(text(plot.right, above, line, anchor="end"))
        lift = 20.0 if entry["longest_stall_ms"] / 1e3 < STALL_S else 0.0
        parts.append(text(x0 + 5, base - 12 - lift, note(name, document), "note"))
    return parts


def picture(document: Entry, layout: Layout = WIDE, identifier: str = "plot") -> str:
    """The picture without its style, for a page that has `STYLE`."""
    entries = finished(document)
    highest = max((g for e in entries.values() for _, g in e["series"]), default=1.0)
    plot = Plot(layout, _x_max(entries), highest * 1.02 or 1.0, max(1, len(entries)))
    parts = [
        f'<svg id="{identifier}" viewBox="0 0 {layout.width} {plot.height:.0f}" role="img" '
        f'aria-label="{escape(finding(document))}" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(finding(document))}</title>",
        *_frame(document, plot),
        *_head(document, plot),
    ]
    for strip, name in enumerate(entries):
        parts += _strip(strip, name, document, plot)
    return "".join([*parts, "</svg>"])


def _colours(scheme: str) -> str:
    """The rules of one colour scheme, written out: not every viewer knows CSS variables."""
    found = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", scheme))
    rules = [
        f".paper {{ fill: {found['paper']}; }} text {{ fill: {found['soft']}; }}",
        f"svg text.title, svg text.strong, svg text.note {{ fill: {found['ink']}; }}",
        f"svg text.note, svg text.name {{ stroke: {found['paper']}; }}",
        f".shade {{ fill: {found['shade']}; }} .base, .tick {{ stroke: {found['soft']}; }}",
        f".stall {{ stroke: {found['ink']}; }}",
    ]
    for name in TITLES:
        rules.append(f"polyline.{name} {{ stroke: {found[name]}; }}")
        rules.append(f"svg text.{name}, polygon.{name} {{ fill: {found[name]}; }}")
    return " ".join(rules)


SHAPES = (
    "svg text { font: 15px system-ui, sans-serif; } "
    "svg text.title { font-size: 18px; font-weight: 650; } "
    "svg text.strong { font-weight: 600; } svg text.name { font-weight: 650; } "
    "svg text.big { font-size: 20px; font-weight: 650; } "
    "svg text.note, svg text.name { paint-order: stroke; stroke-width: 4px; "
    "stroke-linejoin: round; } "
    "polygon.area { fill-opacity: .28; } "
    "polyline.series { fill: none; stroke-width: 2; stroke-linejoin: round; } "
    ".base { stroke-width: 1; } .stall { fill: none; stroke-width: 1.5; } "
)
_LIGHT, _DARK = CSS.split("@media", maxsplit=1)
STYLE = f"{SHAPES} {_colours(_LIGHT)} @media (prefers-color-scheme: dark) {{ {_colours(_DARK)} }}"


def standing_alone(document: Entry) -> str:
    """The wide picture as a file of its own: it follows the reader's light or dark scheme."""
    drawn = picture(document)
    extra = f'<style>{STYLE}</style><rect class="paper" width="100%" height="100%"/>'
    return drawn.replace("</title>", f"</title>{extra}", 1)
